"""Lookup tables: dicts from Python numbers or bytes to Python numbers, bytes, or arrays.

Large batches of integers are looked up in an IntegerIndex of the keys and an array of the values. Both are made at
the first such lookup.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from heald.api import Bind, DType, errors, inherited

from ..element_types import Array
from .integer_index import IntegerIndex

SMALL = 4  # lookups of fewer keys than 1/SMALL of the table do not build the arrays


class Table:
    """A table, safe to use from several threads. `value_dims` is the shape of a value.

    The methods check all shapes: a handle may come from any node.
    """

    is_constant: ClassVar[bool]

    def __init__(self, name: str, key: DType, value: DType, value_dims: tuple[int, ...] = ()) -> None:
        self.name = name
        self.key = key
        self.value = value
        self.value_dims = value_dims
        self.is_initialized = not self.is_constant
        self._found: dict[Any, Any] = {}
        self._arrays: tuple[IntegerIndex, Array] | None = None  # index of keys, and values; None after a change
        self._lock = Lock()
        inherited.add(self)

    def __len__(self) -> int:
        return len(self._found) if self.is_initialized else 0

    def forked(self) -> None:
        self._lock = Lock()

    def check(self, key: DType, value: DType | None) -> None:
        """Raises InvalidArgument where the table has other dtypes."""
        if key is not self.key or value not in (None, self.value):
            raise errors.InvalidArgument(f"table '{self.name}' is of {self.key.name} to {self.value.name}, used as one "
                                         f"of {key.name}{'' if value is None else f' to {value.name}'}")

    def find(self, keys: Array, default: Array) -> Array:
        """The values of the keys, [*keys.shape, *value_dims]. Missing keys get the default: one value, or in a mutable
        table one for each key. A constant table takes the first of several defaults. Raises FailedPrecondition before
        initialization, InvalidArgument for a default of another shape."""
        if not self.is_initialized:
            raise errors.FailedPrecondition("Table not initialized.", hint="run the table's initializer first")
        shape = (*keys.shape, *self.value_dims)
        if default.shape not in (self.value_dims, shape):
            raise errors.InvalidArgument(f"Expected shape {list(self.value_dims)} or {list(shape)} for default value, "
                                         f"got {list(default.shape)}")
        of_all = default.shape == shape
        if not keys.size:
            return self._array([]).reshape(shape)
        if self.is_constant and of_all:
            of_all, default = False, default.reshape(-1)[0, ...]
        with self._lock:
            arrays = self._arrays_for(keys.size)
            if arrays is None:
                defaults = self._values(default, keys.size) if of_all else repeat(*self._values(default, 1))
                return self._array(list(map(self._found.get, keys.reshape(-1).tolist(), defaults))).reshape(shape)
        return _looked_up(keys.reshape(-1), *arrays, default.reshape(-1, *self.value_dims)).reshape(shape)

    def _arrays_for(self, count: int) -> tuple[IntegerIndex, Array] | None:
        """The index of the keys and the array of values, None where dict lookups are faster for `count` keys."""
        if self._arrays is None and self.key.itemsize and self._found and count >= len(self._found) / SMALL:
            index = IntegerIndex(_array(list(self._found), self.key))
            self._arrays = index, self._array(list(self._found.values()))
        return self._arrays if self._arrays is not None and self._arrays[0].is_made else None

    def export(self) -> tuple[Array, Array]:
        """All keys and their values, in order of insertion. Raises Aborted before initialization."""
        if not self.is_initialized:
            raise errors.Aborted(f"table '{self.name}' is not initialized", hint="run the table's initializer first")
        with self._lock:
            keys, values = list(self._found), list(self._found.values())
        return _array(keys, self.key), self._array(values)

    def _pairs(self, keys: Array, values: Array) -> Iterable[tuple[Any, Any]]:
        expected_dims = (*keys.shape, *self.value_dims)
        if values.shape != expected_dims:
            raise errors.InvalidArgument(f"Expected shape {list(expected_dims)} for value, got {list(values.shape)}")
        return zip(keys.reshape(-1).tolist(), self._values(values, keys.size), strict=True)

    def _values(self, values: Array, count: int) -> list[Any]:
        if not self.value_dims:
            return values.reshape(-1).tolist()
        return list(values.reshape(count, *self.value_dims).copy())

    def _array(self, values: list[Any]) -> Array:
        if not self.value_dims or not values:
            return _array(values, self.value).reshape(len(values), *self.value_dims)
        return np.stack(values)


def _looked_up(keys: Array, index: IntegerIndex, values: Array, defaults: Array) -> Array:
    places = index.find(keys)
    there = (places >= 0).reshape(-1, *(1,) * (values.ndim - 1))
    return np.where(there, values[places], defaults)


def _array(items: list[Any], dtype: DType) -> Array:
    if not dtype.itemsize:
        array = np.empty(len(items), object)
        array[:] = items
        return array
    return np.fromiter(items, dtype.numpy, len(items))


class HashTable(Table):
    """A constant table, filled once."""

    is_constant = True

    def fill(self, keys: Array, values: Array) -> None:
        """Raises FailedPrecondition for a key with two values, and if the table has another number of keys already."""
        pairs = self._pairs(keys, values)
        if not keys.size:
            raise errors.InvalidArgument("keys and values cannot be empty tensors.")
        with self._lock:
            if self.is_initialized and keys.size != len(self._found):
                raise errors.FailedPrecondition("Table was already initialized with different data.")
            if self.is_initialized:
                return
            for key, value in pairs:
                old = self._found.setdefault(key, value)
                if old is not value and old != value:
                    raise errors.FailedPrecondition(f"HashTable has different value for same key. Key {key!r} has "
                                                    f"{old!r} and trying to add value {value!r}")
            self.is_initialized = True


class MutableTable(Table):
    is_constant = False

    def insert(self, keys: Array, values: Array) -> None:
        """Add or overwrite values. The last value of a repeated key holds."""
        pairs = self._pairs(keys, values)
        with self._lock:
            self._arrays = None
            self._found.update(pairs)

    def replace(self, keys: Array, values: Array) -> None:
        """Replace all contents."""
        pairs = dict(self._pairs(keys, values))
        with self._lock:
            self._arrays = None
            self._found = pairs

    def remove(self, keys: Array) -> None:
        """Remove keys. Missing keys are no error."""
        with self._lock:
            self._arrays = None
            for key in keys.reshape(-1).tolist():
                self._found.pop(key, None)


def table_of(b: Bind, kind: type[Table]) -> Table:
    """The session's table for this node. Raises InvalidArgument where its dtypes or value shape differ."""
    table = b.resource("table", lambda: new_table(b, kind))
    table.check(b.attrs["key_dtype"], b.attrs["value_dtype"])
    if table.value_dims != _value_dims(b):
        raise errors.InvalidArgument(f"table '{table.name}' has values of shape {list(table.value_dims)}, not "
                                     f"{list(_value_dims(b))}")
    return table


def new_table(b: Bind, kind: type[Table]) -> Table:
    name = b.attrs.get("shared_name") or b.node
    return kind(name, b.attrs["key_dtype"], b.attrs["value_dtype"], _value_dims(b))


def _value_dims(b: Bind) -> tuple[int, ...]:
    return tuple(b.attrs.get("value_shape", ()))
