"""Attributes of MLIR's builtin dialect, opaque attributes of other dialects, and locations. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .types import I1, Type


class Elision(Enum):
    """When the text of an attribute omits its type. USUAL: for i64 and f64."""

    NEVER = "never"
    USUAL = "usual"
    ALWAYS = "always"


class Attribute:
    """A constant of an operation. Attributes are immutable and compared by value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UnitAttr(Attribute):
    """The presence of a name."""


@dataclass(frozen=True, slots=True)
class IntegerAttr(Attribute):
    """An integer, an index, or a boolean (of type i1: 0 or 1)."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class FloatAttr(Attribute):
    """A float by the `bits` of its type, so that a NaN keeps its payload, and -0.0 differs from 0.0."""

    bits: int
    type: Type


@dataclass(frozen=True, slots=True)
class StringAttr(Attribute):
    """Bytes as text. Surrogates stand for bytes that are no UTF-8 (`surrogateescape`)."""

    value: str
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class TypeAttr(Attribute):
    type: Type


@dataclass(frozen=True, slots=True)
class ArrayAttr(Attribute):
    items: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class DictionaryAttr(Attribute):
    """Attributes by name, in the order of the names."""

    items: tuple[tuple[str, Attribute], ...]


@dataclass(frozen=True, slots=True)
class SymbolRefAttr(Attribute):
    """`@root::@nested...`."""

    root: str
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DenseAttr(Attribute):
    """Elements of a tensor or vector, row by row, one for a splat.

    `values`: integers, bits of floats, pairs of these for complex numbers, or strings.
    """

    type: Type
    values: tuple[int | tuple[int, int] | str, ...]


@dataclass(frozen=True, slots=True)
class DenseArrayAttr(Attribute):
    """`array<i64: 1, 2>`: numbers of one type; integers, or bits of floats."""

    element: Type
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpaqueAttr(Attribute):
    """An attribute of a dialect: `#dialect.body`, or `#dialect<body>`. The text behind the dialect is kept."""

    dialect: str
    body: str
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class BuiltinAttr(Attribute):
    """An attribute of MLIR that is kept as text: `word` begins it, such as affine_map, strided or sparse."""

    word: str
    text: str

    def __str__(self) -> str:
        return self.text


class Location(Attribute):
    """The origin of an operation, a block argument, or a value of an attribute."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UnknownLoc(Location):
    pass


@dataclass(frozen=True, slots=True)
class FileLineColLoc(Location):
    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class FileRangeLoc(Location):
    """A part of a file, from `line` and `column` up to `end_line` and `end_column`."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class NameLoc(Location):
    name: str
    child: Location | None = None


@dataclass(frozen=True, slots=True)
class FusedLoc(Location):
    locations: tuple[Location, ...]
    metadata: Attribute | None = None


@dataclass(frozen=True, slots=True)
class CallSiteLoc(Location):
    callee: Location
    caller: Location


UNIT = UnitAttr()
UNKNOWN = UnknownLoc()
TRUE, FALSE = IntegerAttr(1, I1), IntegerAttr(0, I1)
