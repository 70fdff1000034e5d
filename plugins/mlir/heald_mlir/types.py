"""Types of MLIR's builtin dialect, and opaque types of other dialects. Each prints as MLIR prints it."""

from __future__ import annotations

from dataclasses import dataclass

from .floats import FORMATS


class Type:
    """A type of a value or an attribute. Types are immutable, and equal when they print alike."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NamedType(Type):
    """A type that is one word: a float, `index`, `none`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class IntegerType(Type):
    """An integer of `width` bits. `sign`: "" for signless, "s" or "u"."""

    width: int
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.sign}i{self.width}"


@dataclass(frozen=True, slots=True)
class ComplexType(Type):
    element: Type

    def __str__(self) -> str:
        return f"complex<{self.element}>"


@dataclass(frozen=True, slots=True)
class ShapedType(Type):
    """A tensor, vector or memref. `shape`: None for an unknown rank; a dimension is None when it is unknown.

    `suffix`: the text behind the element type: an encoding, a layout, a memory space; with its comma.
    `scalable`: True for each dimension of a vector that hardware multiplies; empty where none is.
    """

    kind: str
    shape: tuple[int | None, ...] | None
    element: Type
    suffix: str = ""
    scalable: tuple[bool, ...] = ()

    def __str__(self) -> str:
        if self.scalable:
            dims = "".join(f"[{dim}]x" if scales else f"{dim}x"
                           for dim, scales in zip(self.shape or (), self.scalable, strict=True))
        else:
            dims = "*x" if self.shape is None else "".join(f"{'?' if dim is None else dim}x" for dim in self.shape)
        return f"{self.kind}<{dims}{self.element}{self.suffix}>"


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.inputs))}) -> {result_list(self.results)}"


@dataclass(frozen=True, slots=True)
class OpaqueType(Type):
    """A type of a dialect: `!dialect.body`. The body is kept as it was written."""

    dialect: str
    body: str

    def __str__(self) -> str:
        return f"!{self.dialect}.{self.body}"


def result_list(types: tuple[Type, ...]) -> str:
    """Result types as MLIR prints them: one that is no function stands without parentheses."""
    if len(types) == 1 and not isinstance(types[0], FunctionType):
        return str(types[0])
    return f"({', '.join(map(str, types))})"


WORDS = {name: NamedType(name) for name in (*FORMATS, "index", "none")}
I1, I32, I64 = IntegerType(1), IntegerType(32), IntegerType(64)
F32, F64, INDEX, NONE = WORDS["f32"], WORDS["f64"], WORDS["index"], WORDS["none"]


def is_float(of: Type) -> bool:
    return isinstance(of, NamedType) and of.name in FORMATS


def is_number(of: Type) -> bool:
    """True for an integer, an index or a float."""
    return isinstance(of, IntegerType) or (isinstance(of, NamedType) and of != NONE)


def width_of(of: Type) -> int:
    """Bits of a number; 0 for another type."""
    if isinstance(of, IntegerType):
        return of.width
    if is_float(of):
        return FORMATS[str(of)].width
    return 64 if of == INDEX else 0
