"""Metadata of ops on ragged tensors: flat values, and for each ragged dimension the bounds of its rows."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, elements_in, same_dim, same_shape, vector

PARTITIONS = ("FIRST_DIM_SIZE", "ROW_SPLITS", "VALUE_ROWIDS")


@rule("RaggedRange")
def ragged_range(attrs: Attrs, *bounds: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    """Return a range for each element of starts, limits and deltas: vectors of one length, or scalars."""
    for x in bounds:
        if x.rank is not None and x.rank > 1:
            raise InvalidArgument(f"starts, limits and deltas must be scalars or vectors, given {shape_text(x.shape)}")
    vectors = [x.shape for x in bounds if x.rank == 1]
    together = same_shape(vectors, "starts, limits and deltas must have the same shape")
    if together is not None:
        length = together[0]
    else:
        length = None if any(x.rank is None for x in bounds) else 1
    splits = None if length is None else length + 1
    return info(attrs["Tsplits"], (splits,)), info(attrs["T"], (None,))


@rule("RaggedGather")
def ragged_gather(attrs: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    *splits, values, indices = inputs
    _check_splits(splits, values)
    rank: int = attrs["OUTPUT_RAGGED_RANK"]
    if indices.rank is not None and rank != len(splits) + indices.rank - 1:
        raise InvalidArgument(f"OUTPUT_RAGGED_RANK must be {len(splits) + indices.rank - 1}, given {rank}")
    flat = None if values.shape is None else (None, *values.shape[1:])
    return (*(info(attrs["Tsplits"], (None,)) for _ in range(rank)), info(values.dtype, flat))


@rule("RaggedTensorToSparse")
def ragged_to_sparse(_: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    *splits, values = inputs
    _check_splits(splits, values)
    rank = None if values.rank is None else len(splits) + values.rank
    count = elements_in(values.shape)
    return info(dtypes.int64, (count, rank)), info(values.dtype, (count,)), info(dtypes.int64, (rank,))


@rule("RaggedTensorToVariant")
def ragged_to_variant(attrs: Attrs, *inputs: ValueInfo) -> ValueInfo:
    """Return a scalar, or with `batched_input` a vector with an element for each row."""
    *splits, values = inputs
    if splits or attrs["batched_input"]:
        _check_splits(splits, values)
    if not attrs["batched_input"]:
        return info(dtypes.variant, ())
    (length,) = (splits[0].shape if splits else values.shape[:1] if values.shape else None) or (None,)
    return info(dtypes.variant, (None if length is None else length - bool(splits),))


@rule("RaggedTensorFromVariant")
def ragged_from_variant(attrs: Attrs, encoded: ValueInfo) -> tuple[ValueInfo, ...]:
    """Return the splits and values of the stack of all elements. An `input_ragged_rank` of -1 is inferred."""
    inner, rank = attrs["input_ragged_rank"], attrs["output_ragged_rank"]
    if encoded.rank is not None and (rank != inner + encoded.rank if inner >= 0 else rank < encoded.rank - 1):
        raise InvalidArgument(f"output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
                              f"output_ragged_rank: {rank}, input_ragged_rank: {inner}, encoded_ragged.dims(): "
                              f"{encoded.rank}")
    return *(info(attrs["Tsplits"], (None,)) for _ in range(rank)), info(attrs["Tvalues"], None)


def _check_splits(splits: Sequence[ValueInfo], values: ValueInfo) -> None:
    for split in splits:
        if dims_of_rank(split, 1, "ragged splits") == (0,):
            raise InvalidArgument("ragged splits may not be empty")
    if values.rank == 0:
        raise InvalidArgument("the values of a ragged tensor must have at least rank 1, given a scalar")


@rule("RaggedTensorToTensor", values=("shape",))
def ragged_to_tensor(attrs: Attrs, *inputs: ValueInfo) -> ValueInfo:
    """Lengths of ragged dimensions that `shape` leaves open (-1) depend on the data."""
    shape, values, default_value, *partitions = inputs
    ragged = _ragged_rank(attrs["row_partition_types"], len(partitions))
    requested_shape = _requested_shape(shape)
    if values.shape is None:
        return info(values.dtype, requested_shape)
    if not values.shape:
        raise InvalidArgument("the values of a ragged tensor must have at least rank 1, given a scalar")
    inner = values.shape[1:]
    _check_default(default_value.shape, inner)
    requested_shape = requested_shape if requested_shape is not None else (None,) * (1 + ragged + len(inner))
    same_dim(len(requested_shape), 1 + ragged + len(inner), "the rank of shape and of the ragged tensor")
    inner = same_shape((requested_shape[1 + ragged :], inner), "shape must end with the shape of a value") or ()
    return info(values.dtype, (*requested_shape[: 1 + ragged], *inner))


def _ragged_rank(types: Sequence[str], count: int) -> int:
    same_dim(len(types), count, "the number of row partitions and of their types")
    for position, kind in enumerate(types):
        is_misplaced = (kind == "FIRST_DIM_SIZE" and position) or (kind == "VALUE_ROWIDS" and not position)
        if kind not in PARTITIONS or is_misplaced:
            raise InvalidArgument(f"a ragged tensor's partition {position} cannot be {kind}")
    return count - (types[0] == "FIRST_DIM_SIZE")


def _requested_shape(shape: ValueInfo) -> Shape:
    """Return the output's shape that input `shape` requests; the scalar -1 leaves even its rank open."""
    elements = shape.vector()
    if shape.rank == 0:
        if elements is not None and elements != (-1,):
            raise InvalidArgument(f"a scalar shape must be -1, unknown, given {elements[0]}")
        return None
    lengths = vector(shape, "shape")
    if any(length is not None and length < -1 for length in lengths or ()):
        raise InvalidArgument(f"dimensions must be >= -1, given {list(lengths or ())}")
    return None if lengths is None else tuple(None if length == -1 else length for length in lengths)


def _check_default(default: Shape, inner: Dims) -> None:
    """The default is broadcast to the shape of a value. TensorFlow also requires its leading dimensions to fit."""
    if default is None:
        return
    pairs = (*zip(reversed(default), reversed(inner), strict=False), *zip(default, inner, strict=False))
    if len(default) > len(inner) or any(d not in (1, None, n) and n is not None for d, n in pairs):
        raise InvalidArgument(f"default_value of shape {shape_text(default)} cannot be broadcast to "
                              f"{shape_text(inner)}")
