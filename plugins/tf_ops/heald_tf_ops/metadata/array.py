"""Metadata of ops that forward a tensor, view it under another shape, or return its shape."""

from __future__ import annotations

from math import prod

import numpy as np
from heald.api import Attrs, DType, InvalidArgument, Shape, TensorMetadata, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import Dims, axis_in, dims_of_rank, elements_in, same_shape, single_integer, vector, view


@rule("PreventGradient", "Snapshot", "StopGradient")
def identity(_: Attrs, x: ValueInfo) -> ValueInfo:
    return x


@rule("IdentityN")
def identity_n(_: Attrs, *xs: ValueInfo) -> tuple[ValueInfo, ...]:
    return xs


@rule("DeepCopy", "OnesLike")
def like(_: Attrs, x: ValueInfo) -> ValueInfo:
    return ValueInfo(x.meta)


@rule("ZerosLike")
def zeros_like(_: Attrs, x: ValueInfo) -> ValueInfo:
    """A variant must be a scalar; the output's elements have the type and shape of the input's elements."""
    if x.dtype is dtypes.variant:
        dims_of_rank(x, 0, "ZerosLike's variant")
    return ValueInfo(x.meta, handle=x.handle)


@rule("EnsureShape")
def ensure_shape(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    shape = same_shape((attrs["shape"], x.shape), "the tensor does not have the expected shape")
    return ValueInfo(TensorMetadata(x.dtype, shape), x.value, x.dims, x.handle)


@rule("Bitcast")
def bitcast(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    """A cast between types of different sizes adds or removes the last dimension."""
    source, target = x.dtype, attrs["type"]
    if source.itemsize == target.itemsize or x.shape is None:
        return info(target, x.shape)
    if source.itemsize > target.itemsize:
        return info(target, (*x.shape, source.itemsize // target.itemsize))
    count = target.itemsize // source.itemsize
    if not x.shape or x.shape[-1] not in (count, None):
        raise InvalidArgument(f"Cannot bitcast {shape_text(x.shape)} from {source} to {target}: the last dimension "
                              f"must be {count}")
    return info(target, x.shape[:-1])


@rule("Reshape", values=("shape",))
def reshape(_: Attrs, x: ValueInfo, shape: ValueInfo) -> ValueInfo:
    if shape.rank is not None and shape.rank > 1:
        raise InvalidArgument(f"sizes input must be 1-D, not {shape_text(shape.shape)}")
    target = shape.vector() if shape.rank in (None, 0) else vector(shape, "shape")
    return view(x, None if target is None else _with_inferred_length(x.shape, target))


def _with_inferred_length(source: Shape, target: Dims) -> Dims:
    """Return `target`; its -1 (or its one unknown length) is computed if the number of elements allows it."""
    for i, length in enumerate(target):
        if length is not None and length < -1:
            raise InvalidArgument(f"Size {i} must be non-negative, not {length}")
    if target.count(-1) > 1:
        raise InvalidArgument(f"Only one input size may be -1, given {list(target)}")
    dims = tuple(None if length == -1 else length for length in target)
    size = elements_in(source)
    if size is None or dims.count(None) > 1:
        return dims
    if None in dims:
        unknown_index = dims.index(None)
        dims = (*dims[:unknown_index], _inferred_length(source, size, target, unknown_index),
                *dims[unknown_index + 1 :])
    known_size = elements_in(dims)
    if known_size is not None and known_size != size:
        raise InvalidArgument(f"a tensor of {size} elements, {shape_text(source)}, cannot have shape {list(target)}")
    return dims


def _inferred_length(source: Shape, size: int, target: Dims, unknown_index: int) -> int | None:
    """Return the length at `unknown_index`.

    A -1 among zeros is computed as if zeros in `target` and `source` were ones.
    """
    known_size = prod(length for i, length in enumerate(target) if i != unknown_index and length)
    if 0 not in target:
        if size % known_size:
            raise InvalidArgument(f"Input to reshape is a tensor with {size} values, but the requested shape "
                                  f"requires a multiple of {known_size}")
        return size // known_size
    if target[unknown_index] is None or source is None or None in source:
        return None
    return prod(length for length in source if length) // known_size


@rule("Squeeze")
def squeeze(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    squeeze_dims = attrs["squeeze_dims"]
    if x.shape is None or (not squeeze_dims and None in x.shape):
        return view(x, None)
    squeezed_axes = {axis_in(d, len(x.shape), "squeeze dimension") for d in squeeze_dims}
    for i in squeezed_axes:
        if x.shape[i] not in (1, None):
            raise InvalidArgument(f"Can not squeeze dim[{i}], expected a dimension of 1, got {x.shape[i]}")
    return view(x, tuple(d for i, d in enumerate(x.shape) if i not in squeezed_axes and (squeeze_dims or d != 1)))


@rule("ExpandDims", values=("dim",))
def expand_dims(_: Attrs, x: ValueInfo, dim: ValueInfo) -> ValueInfo:
    axis = single_integer(dim, "dim", most_rank=1)
    if x.shape is None or axis is None:
        return info(x.dtype, None)
    at = axis_in(axis, len(x.shape) + 1, "dim")
    return view(x, (*x.shape[:at], 1, *x.shape[at:]))


@rule("Shape")
def shape(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return shape_vector(attrs["out_type"], x.shape)


@rule("ShapeN")
def shape_n(attrs: Attrs, *xs: ValueInfo) -> tuple[ValueInfo, ...]:
    return tuple(shape_vector(attrs["out_type"], x.shape) for x in xs)


def shape_vector(dtype: DType, shape: Shape) -> ValueInfo:
    if shape is None:
        return info(dtype, (None,))
    _check_fits(dtype, shape)
    if None in shape:
        return ValueInfo(TensorMetadata(dtype, (len(shape),)), dims=shape)
    return ValueInfo(TensorMetadata(dtype, (len(shape),)), np.array(shape, dtype.numpy))


def _check_fits(dtype: DType, numbers: Dims) -> None:
    if dtype is dtypes.int32 and any(n is not None and n >= 2**31 for n in numbers):
        raise InvalidArgument(f"out_type is int32, but {shape_text(numbers)} needs int64")


@rule("Rank")
def rank(_: Attrs, x: ValueInfo) -> ValueInfo:
    return _scalar(dtypes.int32, x.rank)


@rule("Size")
def size(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return _scalar(attrs["out_type"], elements_in(x.shape))


def _scalar(dtype: DType, number: int | None) -> ValueInfo:
    _check_fits(dtype, (number,))
    return ValueInfo(TensorMetadata(dtype, ()), None if number is None else np.array(number, dtype.numpy))
