"""Kernels of lookup tables. A table checks dtypes and shapes at each use: they are not known earlier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from heald.api import Attrs, Bind, Kernels, errors

from ..element_types import Array
from ..resources.dense_table import DenseTable
from ..resources.handles import from_handle
from ..resources.table import HashTable, MutableTable, Table, new_table, table_of
from .hash_functions import murmur64a

Run = Callable[..., Any]
T = TypeVar("T", bound=Table)
NUMBERS = ("int32", "int64", "float32", "float64")


def session_table(kind: type[Table]) -> Callable[[Bind], Run]:
    """The bind function of a table that the session owns."""

    def bind(b: Bind) -> Run:
        table = table_of(b, kind)
        return lambda out: out.fill(table)

    return bind


def anonymous(kind: type[Table]) -> Callable[[Bind], Run]:
    """The bind function of a new table in each run, which lives as long as its handles."""
    return lambda b: lambda out: out.fill(new_table(b, kind))


def dense(b: Bind) -> Run:
    table = table_of(b, DenseTable)
    assert isinstance(table, DenseTable)

    def run(empty: Array, deleted: Array, out: Array) -> None:
        table.reserve(empty.item(), deleted.item(), b.attrs["initial_num_buckets"], b.attrs["max_load_factor"],
                      murmur64a.hash_strings)
        out.fill(table)

    return run


def table(handle: Array, b: Bind, key: str, value: str | None) -> Table:
    table = from_handle(handle, Table)
    table.check(b.attrs[key], None if value is None else b.attrs[value])
    return table


def find(b: Bind) -> Run:
    return lambda handle, keys, default: table(handle, b, "Tin", "Tout").find(keys, default)


def export(b: Bind) -> Run:
    return lambda handle: table(handle, b, "Tkeys", "Tvalues").export()


def size(_: Bind) -> Run:
    return lambda handle, out: out.fill(len(from_handle(handle, Table)))


def insert(b: Bind) -> Run:
    return lambda handle, *pairs: _mutable(table(handle, b, "Tin", "Tout"), "insert").insert(*pairs)


def remove(b: Bind) -> Run:
    return lambda handle, keys: _mutable(table(handle, b, "Tin", None), "remove").remove(keys)


def _mutable(table: Table, what: str) -> MutableTable:
    if not isinstance(table, MutableTable):
        raise errors.Unimplemented(f"{what} is not supported by table '{table.name}', which is filled once")
    return table


def replace(b: Bind) -> Run:
    def run(handle: Array, keys: Array, values: Array) -> None:
        target = table(handle, b, "Tin", "Tout")
        if isinstance(target, MutableTable):
            target.replace(keys, values)
        elif isinstance(target, HashTable):
            target.fill(keys, values)

    return run


def initialize(b: Bind) -> Run:
    def run(handle: Array, keys: Array, values: Array) -> None:
        target = table(handle, b, "Tkey", "Tval")
        if not isinstance(target, HashTable):
            raise errors.InvalidArgument(f"table '{target.name}' is not initializable: it is there from the beginning")
        target.fill(keys, values)

    return run


# dtypes of values by the dtype of keys, as in TensorFlow's kernels
CONSTANT = {"string": ("string", *NUMBERS, "bool"), "int64": ("string", *NUMBERS), "int32": ("string", "int32",
            "float32", "float64")}
MUTABLE = {"string": (*NUMBERS, "bool"), "int64": ("string", *NUMBERS), "int32": ("int32", "float32", "float64")}

DENSE = {"string": ("int64", "int32", "float32", "float64", "bool"), "int64": (*NUMBERS, "bool"),
         "int32": ("int32", "float32", "float64")}


def among(types: dict[str, tuple[str, ...]]) -> Callable[[Attrs], bool]:
    return lambda attrs: attrs["value_dtype"].name in types.get(attrs["key_dtype"].name, ())


def register_kernels(kernels: Kernels) -> None:
    for op, bind_of_kind, kind, types in (
        ("HashTableV2", session_table, HashTable, CONSTANT), ("AnonymousHashTable", anonymous, HashTable, CONSTANT),
        ("MutableHashTableV2", session_table, MutableTable, MUTABLE),
        ("AnonymousMutableHashTable", anonymous, MutableTable, MUTABLE),
        ("MutableHashTableOfTensorsV2", session_table, MutableTable, MUTABLE),
        ("AnonymousMutableHashTableOfTensors", anonymous, MutableTable, MUTABLE),
    ):
        kernels.kernel(op, when=among(types))(bind_of_kind(kind))
    kernels.kernel("MutableDenseHashTableV2", when=among(DENSE))(dense)
    kernels.kernel("LookupTableFindV2", allocates=True)(find)
    kernels.kernel("LookupTableExportV2", allocates=True)(export)
    for op, bind in {"LookupTableSizeV2": size, "LookupTableInsertV2": insert, "LookupTableRemoveV2": remove,
                     "LookupTableImportV2": replace, "InitializeTableV2": initialize}.items():
        kernels.kernel(op)(bind)
