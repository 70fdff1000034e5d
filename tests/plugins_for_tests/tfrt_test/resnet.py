"""Kernels of dense tensors from TFRT's test of a residual network. They fill their second argument."""

from __future__ import annotations

import numpy as np
from heald.api import Chain, String, errors
from heald_mlir.kernels.host_tensors import HostTensor, Integers, check, list_text

PADDINGS = ("same", "valid")


def register(kernels):
    kernels.kernel("tfrt_test.flatten.f32", syntax="operands attr-dict")(flatten)
    kernels.kernel("tfrt_test.max_pooling_2d.f32", syntax="operands attr-dict")(max_pooling_2d)


def flatten(source: HostTensor, result: HostTensor, chain: Chain) -> Chain:
    """Copy a tensor into one of shape [first dimension, product of the others]."""
    array, out = check(source, "f32"), check(result, "f32")
    wanted = (array.shape[0], array[0].size)
    if out.shape != wanted:
        raise errors.InvalidArgument(f"Flatten output shape {list_text(out.shape)} does not match the expected "
                                     f"output shape {list_text(wanted)}")
    out[...] = array.reshape(wanted)


def max_pooling_2d(source: HostTensor, result: HostTensor, chain: Chain, *, padding: String, pool_size: Integers,
                   strides: Integers) -> Chain:
    """Fill with the largest elements of windows of an NHWC tensor. Elements beyond its edges do not count."""
    array, out = check(source, "f32", 4), check(result, "f32", 4)
    if padding not in PADDINGS:
        raise errors.InvalidArgument(f"MaxPool2D padding '{padding}' is not recognized")
    rows, columns = (_windows(size, pool, stride, padding) for size, pool, stride in zip(
        array.shape[1:3], pool_size, strides, strict=True))
    wanted = (array.shape[0], len(rows), len(columns), array.shape[3])
    if out.shape != wanted:
        raise errors.InvalidArgument(f"MaxPool2D output shape {list_text(out.shape)} does not match the expected "
                                     f"output shape {list_text(wanted)}")
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            out[:, i, j] = array[:, top:bottom, left:right].max((1, 2), initial=np.finfo(np.float32).tiny)


def _windows(size, pool, stride, padding):
    """The windows along a dimension, as bounds within it."""
    count = -(-size // stride) if padding == "same" else max(size - pool + stride, 0) // stride
    before = max((count - 1) * stride + pool - size, 0) // 2 if padding == "same" else 0
    return [(max(i * stride - before, 0), min(i * stride - before + pool, size)) for i in range(count)]
