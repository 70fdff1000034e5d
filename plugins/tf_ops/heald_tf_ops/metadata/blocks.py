"""Metadata of ops that move blocks of space into batch or depth and back, or take patches out of images."""

from __future__ import annotations

from math import prod

from heald.api import Attrs, InvalidArgument, ValueInfo, errors, geometry, info

from .rules import rule
from .shapes import Dims, Pairs, dims_of_rank, pairs_in, same_dim, vector


@rule("SpaceToDepth")
def space_to_depth(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return _between_space_and_depth(attrs, x, to_depth=True)


@rule("DepthToSpace")
def depth_to_space(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return _between_space_and_depth(attrs, x, to_depth=False)


def _between_space_and_depth(attrs: Attrs, x: ValueInfo, *, to_depth: bool) -> ValueInfo:
    block, layout = attrs["block_size"], attrs["data_format"]
    if layout == "NCHW_VECT_C":
        n, c, h, w, four = dims_of_rank(x, 5, "input")
        same_dim(four, 4, "the last dimension of NCHW_VECT_C and 4")
        depth = None if c is None else c * 4
    else:
        n, h, w, depth = (dims_of_rank(x, 4, "input")[layout.index(axis)] for axis in "NHWC")
    if to_depth:
        h, w, depth = _quotient(h, block), _quotient(w, block), _times(depth, block * block)
    else:
        h, w, depth = _times(h, block), _times(w, block), _quotient(depth, block * block)
    if layout == "NCHW_VECT_C":
        return info(x.dtype, (n, _quotient(depth, 4), h, w, 4))
    sizes = {"N": n, "H": h, "W": w, "C": depth}
    return info(x.dtype, tuple(sizes[axis] for axis in layout))


def _times(length: int | None, factor: int) -> int | None:
    return None if length is None else length * factor


def _quotient(length: int | None, by: int) -> int | None:
    if length is not None and length % by:
        raise InvalidArgument(f"Dimension size must be evenly divisible by {by} but is {length}")
    return None if length is None else length // by


@rule("SpaceToBatch", values=("paddings",))
def space_to_batch(attrs: Attrs, x: ValueInfo, paddings: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 4, "input")
    return _space_to_batch(x, (attrs["block_size"],) * 2, pairs_in(paddings, 2, "paddings"))


@rule("SpaceToBatchND", values=("block_shape", "paddings"))
def space_to_batch_nd(_: Attrs, x: ValueInfo, block_shape: ValueInfo, paddings: ValueInfo) -> ValueInfo:
    blocks = _blocks(x, block_shape)
    if blocks is None:
        return info(x.dtype, None)
    return _space_to_batch(x, blocks, pairs_in(paddings, len(blocks), "paddings"))


@rule("BatchToSpace", values=("crops",))
def batch_to_space(attrs: Attrs, x: ValueInfo, crops: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 4, "input")
    return _batch_to_space(x, (attrs["block_size"],) * 2, pairs_in(crops, 2, "crops"))


@rule("BatchToSpaceND", values=("block_shape", "crops"))
def batch_to_space_nd(_: Attrs, x: ValueInfo, block_shape: ValueInfo, crops: ValueInfo) -> ValueInfo:
    blocks = _blocks(x, block_shape)
    if blocks is None:
        return info(x.dtype, None)
    return _batch_to_space(x, blocks, pairs_in(crops, len(blocks), "crops"))


def _blocks(x: ValueInfo, block_shape: ValueInfo) -> Dims | None:
    """Return the block's length along each spatial dimension; None while their number is not known."""
    blocks = vector(block_shape, "block_shape")
    if blocks is not None and any(b is not None and b < 1 for b in blocks):
        raise InvalidArgument(f"All values in block_shape must be positive, got {list(blocks)}")
    if blocks is not None and x.rank is not None and x.rank <= len(blocks):
        raise InvalidArgument(f"input rank should be >= {len(blocks) + 1} instead of {x.rank}")
    return blocks


def _product(blocks: Dims) -> int | None:
    return None if None in blocks else prod(b for b in blocks if b is not None)


def _space_to_batch(x: ValueInfo, blocks: Dims, paddings: Pairs | None) -> ValueInfo:
    if x.shape is None:
        return info(x.dtype, None)
    count = _product(blocks)
    batch = None if x.shape[0] is None or count is None else x.shape[0] * count
    space: list[int | None] = [None] * len(blocks)
    for i, (pair, block) in enumerate(zip(paddings or (), blocks, strict=False)):
        length = x.shape[i + 1]
        if length is not None and block is not None:
            space[i] = _quotient(length + sum(pair), block)
    return info(x.dtype, (batch, *space, *x.shape[1 + len(blocks) :]))


def _batch_to_space(x: ValueInfo, blocks: Dims, crops: Pairs | None) -> ValueInfo:
    if x.shape is None:
        return info(x.dtype, None)
    count = _product(blocks)
    batch = None if x.shape[0] is None or count is None else _quotient(x.shape[0], count)
    space: list[int | None] = [None] * len(blocks)
    for i, (pair, block) in enumerate(zip(crops or (), blocks, strict=False)):
        length = x.shape[i + 1]
        if length is not None and block is not None:
            space[i] = length * block - sum(pair)
            if length * block < sum(pair):
                raise InvalidArgument(f"crops {pair} of dimension {i + 1} are more than its {length * block} elements")
    return info(x.dtype, (batch, *space, *x.shape[1 + len(blocks) :]))


@rule("ExtractImagePatches")
def extract_image_patches(attrs: Attrs, images: ValueInfo) -> ValueInfo:
    for name in ("ksizes", "strides", "rates"):
        steps = attrs[name]
        if len(steps) != 4:
            raise InvalidArgument(f"{name} must be 4 numbers, given {list(steps)}")
        if steps[0] != 1 or steps[3] != 1:
            raise errors.Unimplemented(f"Only support {name} across space, given {list(steps)}")
        if min(steps) < 1:
            raise errors.OutOfRange(f"{name} is out of range: {list(steps)}")
    n, h, w, c = dims_of_rank(images, 4, "images")
    taps, strides, rates = (attrs[name][1:3] for name in ("ksizes", "strides", "rates"))
    sizes = [geometry.patch_window(length, taps[i], strides[i], rates[i], attrs["padding"]).size
             for i, length in enumerate((h, w))]
    return info(images.dtype, (n, *sizes, _times(c, taps[0] * taps[1])))
