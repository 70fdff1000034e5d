"""Metadata of ops that take a part of a tensor."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from heald.api import (
    Attrs,
    InvalidArgument,
    Shape,
    TensorMetadata,
    ValueInfo,
    constant_info,
    geometry,
    info,
    shape_text,
)

from .rules import rule
from .shapes import (
    Dims,
    axis_in,
    broadcast_into,
    dims_of_rank,
    elements_in,
    same_dim,
    same_shape,
    shape_in,
    single_integer,
    vector,
)
from .values import LARGEST_FOLDED_ELEMENTS, move

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@rule("StridedSlice", values=("begin", "end", "strides"))
def strided_slice(attrs: Attrs, x: ValueInfo, begin: ValueInfo, end: ValueInfo, strides: ValueInfo) -> ValueInfo:
    slice_dims = _slice_dims(attrs, x.shape, begin, end, strides)
    if slice_dims is None:
        return info(x.dtype, None)
    meta = TensorMetadata(x.dtype, slice_dims.shape)
    return ValueInfo(meta) if slice_dims.index is None else move(lambda a: a[slice_dims.index], meta, x)


def _slice_dims(
    attrs: Attrs, shape: Shape, begin: ValueInfo, end: ValueInfo, strides: ValueInfo
) -> geometry.Slicing | None:
    """Return the slice of a tensor of this shape; None if not even the slice's rank is known."""
    first, last, steps = vector(begin, "begin"), vector(end, "end"), vector(strides, "strides")
    known_vectors = [v for v in (first, last, steps) if v is not None]
    if len({len(v) for v in known_vectors}) > 1:
        raise InvalidArgument("begin, end and strides must have the same length, given "
                              f"{', '.join(str(len(v)) for v in known_vectors)}")
    if shape is None or first is None or last is None or steps is None:
        return None
    stride = [s for s in steps if s is not None]
    if len(stride) < len(steps):
        return None
    return geometry.strided_slice(shape, first, last, stride, **{m: attrs[m] for m in MASKS})


@rule("StridedSliceGrad", values=("shape", "begin", "end", "strides"))
def strided_slice_grad(
    attrs: Attrs, shape: ValueInfo, begin: ValueInfo, end: ValueInfo, strides: ValueInfo, dy: ValueInfo
) -> ValueInfo:
    target = shape_in(shape, "shape")
    slice_dims = _slice_dims(attrs, target, begin, end, strides)
    if slice_dims is not None:
        same_shape((slice_dims.shape, dy.shape), "dy must have the shape of the slice")
    return info(dy.dtype, target)


@rule("TensorStridedSliceUpdate", values=("begin", "end", "strides"))
def tensor_strided_slice_update(
    attrs: Attrs, x: ValueInfo, begin: ValueInfo, end: ValueInfo, strides: ValueInfo, value: ValueInfo
) -> ValueInfo:
    slice_dims = _slice_dims(attrs, x.shape, begin, end, strides)
    if slice_dims is not None and elements_in(slice_dims.shape) != 0:
        broadcast_into(value.shape, slice_dims.shape, "value must fit the slice")
    return ValueInfo(x.meta)


@rule("Slice", values=("begin", "size"))
def slice_(_: Attrs, x: ValueInfo, begin: ValueInfo, size: ValueInfo) -> ValueInfo:
    first, lengths = vector(begin, "begin"), vector(size, "size")
    ranks = [len(v) for v in (first, lengths, x.shape) if v is not None]
    if len(set(ranks)) > 1:
        raise InvalidArgument("begin and size must have one element for each dimension, given shapes "
                              f"{shape_text(begin.shape)} and {shape_text(size.shape)} for input "
                              f"{shape_text(x.shape)}")
    if not ranks:
        return info(x.dtype, None)
    unknown = (None,) * ranks[0]
    parts = list(zip(first or unknown, lengths or unknown, x.shape or unknown, strict=True))
    meta = TensorMetadata(x.dtype, tuple(_part(i, *part) for i, part in enumerate(parts)))
    starts = [b for b in first or unknown if b is not None]
    if len(starts) < len(parts) or not meta.is_static:
        return ValueInfo(meta)
    index = tuple(slice(b, b + n) for b, n in zip(starts, meta.dims, strict=True))
    return move(lambda a: a[index], meta, x)


def _part(axis: int, begin: int | None, size: int | None, length: int | None) -> int | None:
    """Return the number of elements taken from `length` elements; size -1 takes all from `begin` on."""
    if begin is not None and (begin < 0 or (length is not None and begin > length)):
        raise InvalidArgument(f"Expected begin[{axis}] in [0, {length}], but got {begin}")
    room = length - begin if length is not None and begin is not None else None
    if size is not None and (size < -1 or (room is not None and size > room)):
        raise InvalidArgument(f"Expected size[{axis}] in [0, {room}], but got {size}")
    return room if size == -1 else size


@rule("Unpack")
def unpack(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    count: int = attrs["num"]
    if x.shape is None:
        return (info(x.dtype, None),) * count
    axis = axis_in(attrs["axis"], len(x.shape), "axis")
    same_dim(x.shape[axis], count, f"dimension {axis} of the value and num")
    meta = TensorMetadata(x.dtype, x.shape[:axis] + x.shape[axis + 1 :])
    return tuple(move(partial(np.take, indices=i, axis=axis), meta, x) for i in range(count))


@rule("Split", values=("split_dim",))
def split(attrs: Attrs, split_dim: ValueInfo, x: ValueInfo) -> tuple[ValueInfo, ...]:
    count: int = attrs["num_split"]
    at = single_integer(split_dim, "split_dim")
    if x.shape is None or at is None:
        return (info(x.dtype, None if x.shape is None else (None,) * len(x.shape)),) * count
    axis = axis_in(at, len(x.shape), "split_dim")
    length = x.shape[axis]
    if length is not None and length % count:
        raise InvalidArgument(f"num_split {count} does not evenly divide dimension {axis} of {shape_text(x.shape)}")
    part = None if length is None else length // count
    meta = TensorMetadata(x.dtype, (*x.shape[:axis], part, *x.shape[axis + 1 :]))
    if not meta.is_static:
        return (ValueInfo(meta),) * count
    assert part is not None
    spans = (range(i * part, (i + 1) * part) for i in range(count))
    return tuple(move(partial(np.take, indices=span, axis=axis), meta, x) for span in spans)


@rule("SplitV", values=("size_splits", "split_dim"))
def split_v(attrs: Attrs, x: ValueInfo, size_splits: ValueInfo, split_dim: ValueInfo) -> tuple[ValueInfo, ...]:
    count: int = attrs["num_split"]
    same_dim(count, dims_of_rank(size_splits, 1, "size_splits")[0], "num_split and the length of size_splits")
    sizes, at = vector(size_splits, "size_splits", max_length=count), single_integer(split_dim, "split_dim")
    if x.shape is None or at is None:
        return (info(x.dtype, None if x.shape is None else (None,) * len(x.shape)),) * count
    axis = axis_in(at, len(x.shape), "split_dim")
    lengths = _split_lengths(x.shape[axis], sizes if sizes is not None else (None,) * count)
    metas = [TensorMetadata(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in lengths]
    if not all(meta.is_static for meta in metas):
        return tuple(ValueInfo(meta) for meta in metas)
    ends = accumulate(n for n in lengths if n is not None)
    spans = [range(end - meta.dims[axis], end) for end, meta in zip(ends, metas, strict=True)]
    return tuple(move(partial(np.take, indices=span, axis=axis), meta, x)
                 for span, meta in zip(spans, metas, strict=True))


def _split_lengths(length: int | None, sizes: Dims) -> Dims:
    """Return `sizes`; its -1, if any, is computed."""
    if sizes.count(-1) > 1 or any(n is not None and n < -1 for n in sizes):
        raise InvalidArgument(f"size_splits must be non-negative, with at most one -1, given {list(sizes)}")
    if None in sizes or length is None:
        return tuple(None if n == -1 else n for n in sizes)
    remainder = length - sum(n for n in sizes if n is not None and n != -1)
    if remainder < 0 or (remainder > 0 and -1 not in sizes):
        raise InvalidArgument(f"size_splits {list(sizes)} do not add up to the {length} elements along split_dim")
    return tuple(remainder if n == -1 else n for n in sizes)


@rule("Gather")
def gather_rows(_: Attrs, params: ValueInfo, indices: ValueInfo) -> ValueInfo:
    return gather({"batch_dims": 0}, params, indices, constant_info(np.zeros((), np.int32)))


@rule("GatherV2", values=("axis",))
def gather(attrs: Attrs, params: ValueInfo, indices: ValueInfo, axis: ValueInfo) -> ValueInfo:
    at, batch = single_integer(axis, "axis"), attrs["batch_dims"]
    if params.rank == 0:
        raise InvalidArgument("params must be at least 1 dimensional")
    if params.shape is None or indices.shape is None:
        return info(params.dtype, None)
    if not -len(indices.shape) <= batch <= len(indices.shape):
        raise InvalidArgument(f"batch_dims {batch} is not in [-{len(indices.shape)}, {len(indices.shape)}]")
    batch += len(indices.shape) if batch < 0 else 0
    if at is None:
        return info(params.dtype, (None,) * (len(params.shape) + len(indices.shape) - 1 - batch))
    at = axis_in(at, len(params.shape), "axis")
    meta = TensorMetadata(params.dtype, _gathered_shape(params.shape, indices.shape, at, batch))
    picked = indices.value
    small = meta.is_static and meta.size <= LARGEST_FOLDED_ELEMENTS
    if picked is None or not small or len(params.shape) != 1 or not _inside(picked, params.shape[0]):
        return ValueInfo(meta)
    return move(lambda a: a[picked], meta, params)


def _gathered_shape(params: Dims, indices: Dims, axis: int, batch: int) -> Shape:
    if batch > axis:
        raise InvalidArgument(f"batch_dims ({batch}) must be less than or equal to axis ({axis})")
    lead = tuple(same_dim(p, i, f"dimension {n} of params and indices")
                 for n, (p, i) in enumerate(zip(params[:batch], indices[:batch], strict=True)))
    return (*lead, *params[batch:axis], *indices[batch:], *params[axis + 1 :])


def _inside(indices: np.ndarray[Any, Any], length: int | None) -> bool:
    return length is not None and bool(((indices >= 0) & (indices < length)).all())
