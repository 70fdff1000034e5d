"""Metadata of ops on lookup tables.

A handle carries the types of keys and values and the values' shape, if the op that made it gives them.
"""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, Shape, TensorMetadata, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import dims_of_rank, same_dim, same_shape


@rule("HashTableV2", "MutableHashTableV2", "AnonymousHashTable", "AnonymousMutableHashTable")
def table(attrs: Attrs) -> ValueInfo:
    return _handle(attrs, ())


@rule("MutableHashTableOfTensorsV2", "AnonymousMutableHashTableOfTensors")
def table_of_tensors(attrs: Attrs) -> ValueInfo:
    shape = attrs["value_shape"]
    if shape is None or len(shape) != 1 or None in shape:
        raise InvalidArgument(f"the values of a table of tensors are vectors of one length, given {shape_text(shape)}")
    return _handle(attrs, tuple(shape))


@rule("MutableDenseHashTableV2")
def dense_table(attrs: Attrs, empty: ValueInfo, deleted: ValueInfo) -> ValueInfo:
    dims_of_rank(empty, 0, "empty_key")
    dims_of_rank(deleted, 0, "deleted_key")
    shape = attrs["value_shape"]
    if shape is None or None in shape:
        raise InvalidArgument(f"the values of a table have one shape, given {shape_text(shape)}")
    return _handle(attrs, tuple(shape), None)


def _handle(attrs: Attrs, value_shape: Shape, key_shape: Shape = ()) -> ValueInfo:
    """`key_shape`: None for a table whose exports and imports have keys of another shape than its lookups."""
    kinds = TensorMetadata(attrs["key_dtype"], key_shape), TensorMetadata(attrs["value_dtype"], value_shape)
    return ValueInfo(TensorMetadata(dtypes.resource, ()), handle=kinds)


def _value_shape(x: ValueInfo, keys: DType, values: DType | None) -> tuple[bool, Shape]:
    """Return True and the shape of the values for a known table, else False and None.

    Raises InvalidArgument for a table of other types.
    """
    dims_of_rank(x, 0, "the handle of a table")
    if not x.handle:
        return False, None
    if len(x.handle) != 2:
        raise InvalidArgument("the handle is of something else than a table")
    key, value = x.handle
    if key.dtype is not keys or (values is not None and value.dtype is not values):
        raise InvalidArgument(f"the table is of {key.dtype.name} to {value.dtype.name}, used as one of {keys.name}"
                              f"{'' if values is None else f' to {values.name}'}")
    return True, value.shape


def _has_flat_keys(x: ValueInfo) -> bool:
    """False for a known table whose exports and imports have keys of another shape."""
    return x.handle is None or x.handle[0].shape is not None


@rule("LookupTableFindV2")
def find(attrs: Attrs, x: ValueInfo, keys: ValueInfo, default: ValueInfo) -> ValueInfo:
    is_handle_known, value_shape = _value_shape(x, attrs["Tin"], attrs["Tout"])
    if not is_handle_known or keys.shape is None or value_shape is None:
        return info(attrs["Tout"], None)
    shape = (*keys.shape, *value_shape)
    if default.shape is not None and len(default.shape) != len(value_shape):
        shape = _check_shape(default.shape, shape,
                             f"the default value must have shape {shape_text(value_shape)}, or that of all")
    else:
        _check_shape(default.shape, value_shape, "the default value")
    return info(attrs["Tout"], shape)


def _check_shape(shape: Shape, expected_shape: Shape, what: str) -> tuple[int | None, ...]:
    return same_shape((expected_shape, shape), what) or ()


@rule("LookupTableInsertV2", "LookupTableImportV2")
def insert(attrs: Attrs, x: ValueInfo, keys: ValueInfo, values: ValueInfo) -> tuple[()]:
    is_handle_known, value_shape = _value_shape(x, attrs["Tin"], attrs["Tout"])
    if is_handle_known and _has_flat_keys(x) and keys.shape is not None and value_shape is not None:
        _check_shape(values.shape, (*keys.shape, *value_shape), "there must be a value for each key")
    return ()


@rule("InitializeTableV2")
def initialize(attrs: Attrs, x: ValueInfo, keys: ValueInfo, values: ValueInfo) -> tuple[()]:
    _value_shape(x, attrs["Tkey"], attrs["Tval"])
    (here,), (there,) = dims_of_rank(keys, 1, "the keys of a table"), dims_of_rank(values, 1, "the values of a table")
    same_dim(here, there, "the numbers of keys and values")
    return ()


@rule("InitializeTableFromTextFileV2")
def initialize_from_text_file(_: Attrs, x: ValueInfo, filename: ValueInfo) -> tuple[()]:
    dims_of_rank(x, 0, "the handle of a table")
    dims_of_rank(filename, 0, "the name of a file")
    return ()


@rule("LookupTableRemoveV2")
def remove(attrs: Attrs, x: ValueInfo, _: ValueInfo) -> tuple[()]:
    _value_shape(x, attrs["Tin"], None)
    return ()


@rule("LookupTableExportV2")
def export(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    is_handle_known, value_shape = _value_shape(x, attrs["Tkeys"], attrs["Tvalues"])
    if not is_handle_known or not _has_flat_keys(x):
        return info(attrs["Tkeys"], None), info(attrs["Tvalues"], None)
    return info(attrs["Tkeys"], (None,)), info(attrs["Tvalues"], None if value_shape is None else (None, *value_shape))


@rule("LookupTableSizeV2")
def size(_: Attrs, x: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a table")
    return info(dtypes.int64, ())
