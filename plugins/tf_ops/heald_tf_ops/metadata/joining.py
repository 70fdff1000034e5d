"""Metadata of ops that put tensors together, repeat, extend or reorder them, or make one of a single value."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np
from heald.api import Attrs, InvalidArgument, Shape, TensorMetadata, ValueInfo, geometry, info, shape_text

from .rules import rule
from .shapes import (
    Dims,
    Pairs,
    axis_in,
    check_rank,
    check_single,
    dims_of_rank,
    pairs_in,
    same_dim,
    same_shape,
    single_integer,
    vector,
)
from .values import LARGEST_FOLDED_ELEMENTS, move


@rule("Pack")
def pack(attrs: Attrs, *xs: ValueInfo) -> ValueInfo:
    shape = same_shape([x.shape for x in xs], "Shapes of all inputs must match")
    if shape is None:
        return info(xs[0].dtype, None)
    axis = axis_in(attrs["axis"], len(shape) + 1, "axis")
    meta = TensorMetadata(xs[0].dtype, (*shape[:axis], len(xs), *shape[axis:]))
    return move(lambda *parts: np.stack(parts, axis), meta, *xs)


@rule("ConcatV2", values=("axis",))
def concat(_: Attrs, *values_then_axis: ValueInfo) -> ValueInfo:
    *xs, axis = values_then_axis
    return _concatenation(xs, single_integer(axis, "axis", most_rank=1))


@rule("Concat", values=("concat_dim",))
def concat_by_dim(_: Attrs, concat_dim: ValueInfo, *xs: ValueInfo) -> ValueInfo:
    return _concatenation(xs, single_integer(concat_dim, "concat_dim", most_rank=1))


def _concatenation(xs: Sequence[ValueInfo], at: int | None) -> ValueInfo:
    rank = next((x.rank for x in xs if x.rank is not None), None)
    if rank is None:
        return info(xs[0].dtype, None)
    if rank == 0:
        raise InvalidArgument("Can't concatenate scalars (use tf.stack instead)")
    shapes = [dims_of_rank(x, rank, "every input of a concatenation") for x in xs]
    if at is None:
        return info(xs[0].dtype, (None,) * rank)
    at = axis_in(at, rank, "axis")
    shape = list(shapes[0])
    for other in shapes[1:]:
        shape = [None if i == at else same_dim(a, b, f"dimensions {i} of all inputs")
                 for i, (a, b) in enumerate(zip(shape, other, strict=True))]
    lengths = [s[at] for s in shapes]
    shape[at] = None if None in lengths else sum(n for n in lengths if n is not None)
    return move(lambda *parts: np.concatenate(parts, at), TensorMetadata(xs[0].dtype, tuple(shape)), *xs)


@rule("ConcatOffset", values=("concat_dim", "shape"))
def concat_offset(_: Attrs, concat_dim: ValueInfo, *shapes: ValueInfo) -> tuple[ValueInfo, ...]:
    """Return the offset of each of several tensors in their concatenation."""
    at = single_integer(concat_dim, "concat_dim")
    shape = same_shape([s.shape for s in shapes], "the shapes must have equal length")
    (rank,) = shape if shape is not None and len(shape) == 1 else dims_of_rank(shapes[0], 1, "shape")
    if rank is not None:
        check_rank(rank, "shape")
    axis = None if at is None or rank is None else axis_in(at, rank, "concat_dim")
    lengths = [s.value.tolist() for s in shapes if s.value is not None]
    if axis is not None:
        for i, other in enumerate(lengths[1:], 1):
            if any(a != b for n, (a, b) in enumerate(zip(lengths[0], other, strict=True)) if n != axis):
                raise InvalidArgument(f"All dimensions except {axis} must match. Input {i} has shape {other} and "
                                      f"doesn't match input 0 with shape {lengths[0]}")
    return (info(shapes[0].dtype, (rank,)),) * len(shapes)


@rule("Pad", values=("paddings",))
def pad(_: Attrs, x: ValueInfo, paddings: ValueInfo) -> ValueInfo:
    return info(x.dtype, _padded_shape(x.shape, _pairs(x, paddings)))


@rule("PadV2", values=("paddings",))
def pad_v2(attrs: Attrs, x: ValueInfo, paddings: ValueInfo, constant: ValueInfo) -> ValueInfo:
    dims_of_rank(constant, 0, "constant_values")
    return pad(attrs, x, paddings)


@rule("MirrorPad", values=("paddings",))
def mirror_pad(attrs: Attrs, x: ValueInfo, paddings: ValueInfo) -> ValueInfo:
    pairs = _pairs(x, paddings)
    unmirrored = 1 if attrs["mode"] == "REFLECT" else 0  # the border element is not mirrored
    if x.shape is not None and paddings.value is not None:
        for axis, (length, pair) in enumerate(zip(x.shape, pairs or (), strict=True)):
            if length is not None and pair is not None and max(pair) > length - unmirrored:
                raise InvalidArgument(f"paddings {pair} of dimension {axis} must be "
                                      f"{'less' if unmirrored else 'no greater'} than its size {length}")
    return info(x.dtype, _padded_shape(x.shape, pairs))


@rule("MirrorPadGrad", values=("paddings",))
def mirror_pad_grad(attrs: Attrs, x: ValueInfo, paddings: ValueInfo) -> ValueInfo:
    pairs = _pairs(x, paddings)
    if x.shape is None or pairs is None:
        return info(x.dtype, None if pairs is None else (None,) * len(pairs))
    unmirrored = 1 if attrs["mode"] == "REFLECT" else 0
    return info(x.dtype, tuple(_unpadded_length(i, n, p, unmirrored)
                               for i, (n, p) in enumerate(zip(x.shape, pairs, strict=True))))


def _unpadded_length(axis: int, length: int | None, pair: tuple[int, int] | None, unmirrored: int) -> int | None:
    if length is None or pair is None:
        return None
    inner = length - sum(pair)
    if inner < 1 or max(pair) > inner - unmirrored:
        raise InvalidArgument(f"paddings {pair} of dimension {axis} do not fit its size {length}")
    return inner


def _pairs(x: ValueInfo, paddings: ValueInfo) -> Pairs | tuple[None, ...] | None:
    """Return the padding before and after, by dimension; None for an unknown rank."""
    pairs = pairs_in(paddings, x.rank, "paddings")
    rank = x.rank if paddings.shape is None or x.rank is not None else paddings.shape[0]
    return pairs if pairs is not None or rank is None else (None,) * rank


def _padded_shape(shape: Shape, pairs: Pairs | tuple[None, ...] | None) -> Shape:
    if pairs is None:
        return None
    lengths = shape if shape is not None else (None,) * len(pairs)
    return tuple(None if n is None or p is None else n + sum(p) for n, p in zip(lengths, pairs, strict=True))


@rule("ConjugateTranspose", "Transpose", values=("perm",))
def transpose(_: Attrs, x: ValueInfo, perm: ValueInfo) -> ValueInfo:
    order = vector(perm, "perm")
    rank = same_dim(x.rank, None if order is None else len(order), "the rank of x and the length of perm")
    if rank is None:
        return info(x.dtype, None)
    if order is None or None in order:
        return info(x.dtype, x.shape if rank < 2 else (None,) * rank)
    axes = [axis_in(axis, rank, "perm") for axis in order if axis is not None]
    if len(set(axes)) < rank:
        raise InvalidArgument(f"perm {list(order)} does not name every dimension once")
    shape = x.shape if x.shape is not None else (None,) * rank
    return info(x.dtype, tuple(shape[axis] for axis in axes))


@rule("Tile", values=("multiples",))
def tile(_: Attrs, x: ValueInfo, multiples: ValueInfo) -> ValueInfo:
    times = vector(multiples, "multiples")
    rank = same_dim(x.rank, None if times is None else len(times), "the rank of input and the length of multiples")
    if rank is None:
        return info(x.dtype, None)
    times = times if times is not None else (None,) * rank
    for axis, count in enumerate(times):
        if count is not None and count < 0:
            raise InvalidArgument(f"Expected multiples[{axis}] >= 0, but got {count}")
    lengths = x.shape if x.shape is not None else (None,) * rank
    return info(x.dtype, tuple(_product(n, m) for n, m in zip(lengths, times, strict=True)))


def _product(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


@rule("Fill", values=("dims",))
def fill(_: Attrs, dims: ValueInfo, value: ValueInfo) -> ValueInfo:
    if dims.rank is not None and dims.rank > 1:
        raise InvalidArgument(f"dims must represent a vector, got shape {shape_text(dims.shape)}")
    dims_of_rank(value, 0, "value")
    shape: Dims | None = dims.vector() if dims.rank in (None, 0) else vector(dims, "dims")
    for length in shape or ():
        if length is not None and length < 0:
            raise InvalidArgument(f"Dimension {length} must be >= 0")
    meta = TensorMetadata(value.dtype, shape)
    return move(lambda v: np.full(meta.dims, v), meta, value) if meta.is_static else ValueInfo(meta)


@rule("Range", values=("start", "limit", "delta"))
def range_(_: Attrs, start: ValueInfo, limit: ValueInfo, delta: ValueInfo) -> ValueInfo:
    for x, name in ((start, "start"), (limit, "limit"), (delta, "delta")):
        check_single(x, name, most_rank=1)
    if start.value is None or limit.value is None or delta.value is None:
        return info(start.dtype, (None,))
    first, last, step = (value.reshape(())[()] for value in (start.value, limit.value, delta.value))
    count = _steps(start.dtype.kind == "f", first, last, step)
    meta = TensorMetadata(start.dtype, (count,))
    if start.dtype.kind == "f" or count > LARGEST_FOLDED_ELEMENTS:
        return ValueInfo(meta)
    return ValueInfo(meta, np.arange(count, dtype=np.int64).astype(start.dtype.numpy) * step + first)


def _steps(is_float: bool, first: Any, last: Any, step: Any) -> int:
    """Return the number of steps in [first, last). Float types count in their own precision, as in TensorFlow."""
    if step == 0:
        raise InvalidArgument(f"Requires delta != 0: {step}")
    if (step > 0 and first > last) or (step < 0 and first < last):
        raise InvalidArgument(f"start {first} does not lead to limit {last} by steps of {step}")
    if not is_float:
        return -((int(first) - int(last)) // int(step))
    count = float(np.ceil(np.abs((last - first) / step)))
    if not isfinite(count) or count >= 2**63:
        raise InvalidArgument(f"Requires a finite number of steps from {first} to {last} by {step}")
    return ceil(count)


@rule("Select")
def select(_: Attrs, condition: ValueInfo, then: ValueInfo, otherwise: ValueInfo) -> ValueInfo:
    shape = same_shape((then.shape, otherwise.shape), "'then' and 'else' must have the same shape")
    if shape is None or condition.shape is None or condition.rank == 0:
        return info(then.dtype, shape)
    if condition.rank == 1 and shape != ():
        same_dim(condition.shape[0], shape[0], "the elements of condition and the rows of 'then'")
        return info(then.dtype, shape)
    return info(then.dtype, same_shape((shape, condition.shape), "'then' and condition must have the same shape"))


@rule("SelectV2")
def select_v2(_: Attrs, condition: ValueInfo, then: ValueInfo, otherwise: ValueInfo) -> ValueInfo:
    shape = geometry.broadcast_shapes(geometry.broadcast_shapes(then.shape, otherwise.shape), condition.shape)
    return info(then.dtype, shape)
