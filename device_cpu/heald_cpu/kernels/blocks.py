"""Kernels that move blocks of space into batch or depth and back, or take patches out of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, geometry

from ..element_types import zero
from .const_inputs import integers, pairs
from .strided_view import strided_view

Run = Callable[..., None]


def space_to_depth(b: Bind) -> Run:
    n, h, w, depth = b.outputs[0].dims
    block = b.attrs["block_size"]
    apart, together = (n, h, block, w, block, depth // block**2), (n, h, w, block, block, depth // block**2)
    return lambda x, out: np.copyto(out.reshape(together), x.reshape(apart).swapaxes(2, 3))


def depth_to_space(b: Bind) -> Run:
    n, h, w, depth = b.inputs[0].meta.dims
    block = b.attrs["block_size"]
    apart, together = (n, h, block, w, block, depth // block**2), (n, h, w, block, block, depth // block**2)
    return lambda x, out: np.copyto(out.reshape(apart), x.reshape(together).swapaxes(2, 3))


def _block_shape(b: Bind) -> list[int]:
    return [b.attrs["block_size"]] * 2 if "block_size" in b.attrs else integers(b, 1)


def _blocks_view(batched: Any, blocks: Sequence[int], batch: int) -> Any:
    """A view of a tensor with blocks in its batch dimension. An axis for the index in the block follows each spatial
    dimension."""
    count = len(blocks)
    space, inner = batched.shape[1 : count + 1], batched.shape[count + 1 :]
    apart = batched.reshape(*blocks, batch, *space, *inner)
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i))]
    return apart.transpose(*order, *range(2 * count + 1, apart.ndim))


def _inner(margins: Sequence[tuple[int, int]], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of a tensor of this shape within a tensor with margins around the spatial dimensions."""
    spans = (slice(before, before + n) for (before, _), n in zip(margins, shape[1:], strict=False))
    return (slice(None), *spans, ...)


def space_to_batch(b: Bind) -> Run:
    shape, blocks, padding = b.inputs[0].meta.dims, _block_shape(b), pairs(b, len(b.inputs) - 1)
    inner = _inner(padding, shape)
    space = [n + sum(pair) for n, pair in zip(shape[1:], padding, strict=False)]
    padded = (shape[0], *space, *shape[1 + len(blocks) :])
    b.ask(prod(padded) * (b.inputs[0].dtype.itemsize or 8), "the padded tensor")
    split = (shape[0], *(d for n, block in zip(space, blocks, strict=True) for d in (n // block, block)),
             *shape[1 + len(blocks) :])
    blank = zero(b.outputs[0].dtype)
    if padded == shape:
        return lambda x, *shape_and_out: np.copyto(_blocks_view(shape_and_out[-1], blocks, shape[0]), x.reshape(split))

    def run(x: Any, *shape_and_out: Any) -> None:
        buffer = np.full(padded, blank, x.dtype)
        buffer[inner] = x
        np.copyto(_blocks_view(shape_and_out[-1], blocks, shape[0]), buffer.reshape(split))

    return run


def batch_to_space(b: Bind) -> Run:
    blocks, crops = _block_shape(b), pairs(b, len(b.inputs) - 1)
    shape = b.outputs[0].dims
    inner = _inner(crops, shape)
    spatial = (n + sum(pair) for n, pair in zip(shape[1:], crops, strict=False))
    uncropped = (shape[0], *spatial, *shape[1 + len(blocks) :])

    def run(x: Any, *crops_and_out: Any) -> None:
        np.copyto(crops_and_out[-1], _blocks_view(x, blocks, shape[0]).reshape(uncropped)[inner])

    return run


def extract_image_patches(b: Bind) -> Run:
    """Copies a strided view of the padded image's windows."""
    n, h, w, c = b.inputs[0].meta.dims
    taps, strides, rates = (b.attrs[name][1:3] for name in ("ksizes", "strides", "rates"))
    rows, columns = (geometry.patch_window(length, taps[i], strides[i], rates[i], b.attrs["padding"])
                     for i, length in enumerate((h, w)))
    shape = (n, rows.size, columns.size, *taps, c)
    padded = (n, rows.before + h + rows.after, columns.before + w + columns.after, c)
    b.ask(prod(padded) * b.inputs[0].dtype.itemsize, "the padded images")
    inner = (slice(None), slice(rows.before, rows.before + h), slice(columns.before, columns.before + w))

    def run(x: Any, out: Any) -> None:
        buffer = np.zeros(padded, x.dtype)
        buffer[inner] = x
        image, row, column, channel = buffer.strides
        steps = (image, row * strides[0], column * strides[1], row * rates[0], column * rates[1], channel)
        np.copyto(out.reshape(shape), strided_view(buffer, shape, steps))

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth}.items():
        kernels.kernel(op, when=lambda attrs: attrs["data_format"] == "NHWC")(bind)
    for op, bind in {
        "BatchToSpace": batch_to_space, "BatchToSpaceND": batch_to_space,
        "ExtractImagePatches": extract_image_patches, "SpaceToBatch": space_to_batch, "SpaceToBatchND": space_to_batch,
    }.items():
        kernels.kernel(op)(bind)
