"""Kernels of uniform quantisation: a scale and a zero point for all numbers, or for each index along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from ..quantised import F32, integers_of, to_int32

Run = Callable[..., None]
TYPES = ("qint8", "quint8", "qint32")


def quantize(b: Bind) -> Run:
    """UniformQuantize rounds halves up. A float beyond int32, or NaN, counts as the lowest int32. The sum with the zero
    point wraps around, as in TensorFlow."""
    along = _along_axis(b)
    lowest, highest = (_int32_attribute(b, f"quantization_{end}_val") for end in ("min", "max"))

    def run(x: Array, scales: Array, zero_points: Array, out: Array) -> None:
        steps = np.floor(x * (F32(1) / scales.reshape(along)) + F32(0.5))
        numbers = np.add(to_int32(steps), zero_points.reshape(along))
        np.copyto(integers_of(out), np.maximum(np.minimum(numbers, highest), lowest), casting="unsafe")

    return run


def dequantize(b: Bind) -> Run:
    along = _along_axis(b)

    def run(x: Array, scales: Array, zero_points: Array, out: Array) -> None:
        if not (scales > 0).all():
            raise errors.InvalidArgument(f"scales must be all positive, given {scales.tolist()}")
        shifted = integers_of(x).astype(np.int32) - zero_points.reshape(along)
        np.multiply(shifted.astype(F32), scales.reshape(along), out=out)

    return run


def _int32_attribute(b: Bind, name: str) -> int:
    """The value of an attribute that the op keeps in 32 bits. Raises InvalidArgument for a value beyond them."""
    value: int = b.attrs[name]
    if value != np.int64(value).astype(np.int32):
        raise errors.InvalidArgument(f"attribute '{name}' is {value}, which int32 does not have")
    return value


def _along_axis(b: Bind) -> tuple[int, ...]:
    """The shape by which scales broadcast against the input."""
    axis, rank = b.attrs["quantization_axis"], len(b.inputs[0].meta.dims)
    return () if axis == -1 else tuple(-1 if i == axis else 1 for i in range(rank))


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("UniformQuantize", dtypes={"Tout": TYPES})(quantize)
    kernels.kernel("UniformDequantize", dtypes={"Tin": TYPES})(dequantize)
