"""Metadata of ops that read records: lines of CSV, tf.train.Example, serialized tensors."""

from __future__ import annotations

from math import prod

from heald.api import Attrs, DType, InvalidArgument, Shape, ValueInfo, dtypes, info, merge_shapes, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, elements_in, same_dim, same_shape
from .strings import scalar


@rule("DecodeCSV")
def decode_csv(attrs: Attrs, records: ValueInfo, *defaults: ValueInfo) -> tuple[ValueInfo, ...]:
    if len(attrs["field_delim"].encode("utf-8", "surrogateescape")) != 1:
        raise InvalidArgument(f"field_delim should be only 1 char, given '{attrs['field_delim']}'")
    _check_columns(attrs["select_cols"], len(defaults))
    for i, default in enumerate(defaults):
        if default.rank is not None and default.rank > 1:
            raise InvalidArgument(f"record default {i} must be at most of rank 1, given {shape_text(default.shape)}")
        if (elements_in(default.shape) or 0) > 1:
            raise InvalidArgument(f"There should only be 1 default per field but field {i} has "
                                  f"{shape_text(default.shape)}")
    return tuple(info(d.dtype, records.shape) for d in defaults)


def _check_columns(columns: tuple[int, ...], count: int) -> None:
    if columns and len(columns) != count:
        raise InvalidArgument(f"select_cols should match output size: {len(columns)} vs. {count}")
    if any(c < 0 for c in columns) or sorted(set(columns)) != list(columns):
        raise InvalidArgument(f"select_cols should be non-negative, strictly increasing indices, given {columns}")


@rule("ParseTensor")
def parse_tensor(attrs: Attrs, serialized: ValueInfo) -> ValueInfo:
    scalar(serialized, "serialized")
    return info(attrs["out_type"], None)


@rule("SerializeTensor")
def serialize_tensor(_: Attrs, __: ValueInfo) -> ValueInfo:
    return info(dtypes.string, ())


@rule("DecodeJSONExample")
def decode_json_example(_: Attrs, texts: ValueInfo) -> ValueInfo:
    return info(texts.dtype, texts.shape)


@rule("ParseExample")
def parse_example(
    attrs: Attrs, serialized: ValueInfo, names: ValueInfo, *keys_and_defaults: ValueInfo
) -> tuple[ValueInfo, ...]:
    keys = keys_and_defaults[: -len(attrs["Tdense"]) or None]
    defaults = keys_and_defaults[attrs["Nsparse"] + attrs["Ndense"] :]
    for key in keys:
        scalar(key, "a key")
    dims_of_rank(serialized, 1, "serialized")
    check_names(serialized, names)
    batch = serialized.shape if serialized.shape is not None else (None,)
    check_counts(attrs["Nsparse"], attrs["sparse_types"], what="sparse_types")
    check_counts(attrs["Ndense"], attrs["Tdense"], what="Tdense")
    return *sparse_features(attrs["sparse_types"], 2), *_dense(attrs, batch, defaults)


@rule("ParseExampleV2")
def parse_example_v2(
    attrs: Attrs, serialized: ValueInfo, names: ValueInfo, sparse_keys: ValueInfo, dense_keys: ValueInfo,
    ragged_keys: ValueInfo, *defaults: ValueInfo,
) -> tuple[ValueInfo, ...]:
    """A scalar `serialized` is a single example, a vector is a batch."""
    if serialized.rank not in (None, 0, 1):
        raise InvalidArgument(f"serialized must be a scalar or vector, given shape {shape_text(serialized.shape)}")
    check_names(serialized, names)
    for keys, count, what in (
        (sparse_keys, attrs["num_sparse"], "sparse_keys"), (dense_keys, len(attrs["Tdense"]), "dense_keys"),
        (ragged_keys, len(attrs["ragged_value_types"]), "ragged_keys"),
    ):
        same_dim(dims_of_rank(keys, 1, what)[0], count, f"the number of {what} and that of their types")
    check_counts(attrs["num_sparse"], attrs["sparse_types"], what="sparse_types")
    check_counts(len(attrs["ragged_value_types"]), attrs["ragged_split_types"], what="ragged_split_types")
    batch, rank = serialized.shape, serialized.rank
    return (
        *sparse_features(attrs["sparse_types"], None if rank is None else rank + 1), *_dense(attrs, batch, defaults),
        *(info(t, (None,)) for t in attrs["ragged_value_types"]),
        *(info(t, splits_of(batch)) for t in attrs["ragged_split_types"]),
    )


def splits_of(batch: Shape) -> Dims:
    """Return the shape of row splits: one more than the rows, none for a single example."""
    if batch is None:
        return (None,)
    return (0,) if not batch else (None if batch[0] is None else batch[0] + 1,)


@rule("ParseSingleExample")
def parse_single_example(attrs: Attrs, serialized: ValueInfo, *defaults: ValueInfo) -> tuple[ValueInfo, ...]:
    scalar(serialized, "serialized")
    check_counts(attrs["num_sparse"], attrs["sparse_types"], what="sparse_types")
    check_counts(attrs["num_sparse"], attrs["sparse_keys"], what="sparse_keys")
    check_counts(len(attrs["Tdense"]), attrs["dense_keys"], what="dense_keys")
    return *sparse_features(attrs["sparse_types"], 1), *_dense(attrs, (), defaults)


def check_names(serialized: ValueInfo, names: ValueInfo) -> None:
    if elements_in(names.shape) != 0:
        same_shape((names.shape, serialized.shape), "names must be as many as serialized examples, or none")


def check_counts(count: int, listed: tuple[object, ...], what: str) -> None:
    if len(listed) != count:
        raise InvalidArgument(f"{what} must have {count} elements, given {len(listed)}")


def sparse_features(types: tuple[DType, ...], rank: int | None) -> tuple[ValueInfo, ...]:
    """Return indices, values and dense shapes."""
    return (
        *(info(dtypes.int64, (None, rank)) for _ in types), *(info(t, (None,)) for t in types),
        *(info(dtypes.int64, (rank,)) for _ in types),
    )


def _dense(attrs: Attrs, batch: Shape, defaults: tuple[ValueInfo, ...]) -> tuple[ValueInfo, ...]:
    shapes = attrs["dense_shapes"]
    check_counts(len(defaults), shapes, what="dense_shapes")
    for i, (shape, default) in enumerate(zip(shapes, defaults, strict=True)):
        if shape is None or None in shape[1:]:
            raise InvalidArgument(f"dense_shapes[{i}] has unknown rank or unknown inner dimensions: "
                                  f"{shape_text(shape)}")
        _check_default(i, shape, default)
    return tuple(info(d.dtype, None if batch is None else (*batch, *shape))
                 for shape, d in zip(shapes, defaults, strict=True))


def _check_default(i: int, shape: Dims, default: ValueInfo) -> None:
    size = elements_in(default.shape)
    if shape[:1] == (None,):
        if size not in (None, 1):
            raise InvalidArgument(f"dense_shapes[{i}] is a variable length shape: {shape_text(shape)}, therefore its "
                                  f"default must be a single element, given {shape_text(default.shape)}")
    elif size != 0 or not prod(d or 0 for d in shape):
        try:
            merge_shapes(shape, default.shape)
        except ValueError as error:
            raise InvalidArgument(f"the default of dense feature {i} does not fit its shape: {error}") from None
