"""OpAttrs: the attributes of one call of an op, in a frozen, hashable form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import InvalidArgument, callers_code, display_text
from ..values.dtypes import DType, of_numpy
from ..values.tensor_proto import TensorValue
from .op import attr_text

DEEPEST_LISTS = 8  # lists of functions' attributes are the deepest values
LONGEST_SHOWN_CHARACTERS = 60  # characters of a value in `repr`


class OpAttrs(Mapping[str, Any]):
    """The attributes of one call, by name. Immutable and hashable; two of them are equal when names, types and values
    are.

    An op table declares the types of values: bool, int, float, str or bytes, a DType or NumPy dtype, a shape, an array,
    a function, or a list of these. Lists become tuples, and an array is copied. Defaults are added, and declarations
    checked, when an op is executed.

    Raises InvalidArgument for a value that cannot be frozen.
    """

    __slots__ = ("_hash", "_key", "_values")

    _values: dict[str, Any]
    _key: frozenset[Any]
    _hash: int

    def __init__(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise InvalidArgument(f"attributes are a mapping from names to values, not a {type(values).__name__}",
                                  hint="attrs={'transpose_a': True}")
        attributes = {**(values or {}), **more}
        for name in attributes:
            _check_name(name)
        if isinstance(values, OpAttrs) and not more:
            self._values, self._key, self._hash = values._values, values._key, values._hash
            return
        self._values = {name: _frozen_value(name, value, 0) for name, value in attributes.items()}
        self._key = frozenset((name, _typed_key(value)) for name, value in self._values.items())
        self._hash = hash(self._key)

    def set(self, name: str, value: Any) -> OpAttrs:
        """Return a set with one attribute more. Raises InvalidArgument for a name that has a value already, and for a
        value that cannot be frozen."""
        _check_name(name)
        if name in self._values:
            raise InvalidArgument(f"the attribute '{display_text(name, LONGEST_SHOWN_CHARACTERS)}' is set already",
                                  hint="set each attribute once")
        return OpAttrs({**self._values, name: value})

    def freeze(self) -> OpAttrs:
        """Return a reference to this set: the set itself, which never changes. Calls share it without a copy."""
        return self

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpAttrs):
            return NotImplemented
        return self._key == other._key

    def __repr__(self) -> str:
        entries = (f"{name}={display_text(attr_text(self[name]), 64 + LONGEST_SHOWN_CHARACTERS)}"
                   for name in sorted(self))
        return f"OpAttrs({', '.join(entries)})"


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidArgument(f"an attribute's name is a text, not the {type(name).__name__} {name!r}")


def _frozen_value(name: str, value: Any, depth: int) -> Any:
    """The value in an immutable, hashable form. Raises InvalidArgument."""
    if value is None or isinstance(value, str | bytes | bool | int | float | DType | TensorValue):
        return value
    if depth > DEEPEST_LISTS:
        raise InvalidArgument(f"attribute '{name}' is nested deeper than {DEEPEST_LISTS} lists")
    if isinstance(value, tuple):
        items = [_frozen_value(name, element, depth + 1) for element in value]
        return type(value)(items) if type(value) is tuple or not hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return tuple([_frozen_value(name, element, depth + 1) for element in value])
    with callers_code(f"attribute '{name}' cannot be frozen"):
        return _of_numpy(value)


def _of_numpy(value: Any) -> Any:
    """NumPy's scalars, arrays and dtypes as values of attributes; every other hashable object as it is."""
    import numpy as np

    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return of_numpy(np.dtype(value))
    if isinstance(value, np.ndarray):
        return TensorValue(value.copy())
    hash(value)
    return value


def _typed_key(value: Any) -> Any:
    """A key of the value by which True, 1 and 1.0 differ, and 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple([_typed_key(element) for element in value])
    return type(value), str(value) if isinstance(value, float) and not value else value
