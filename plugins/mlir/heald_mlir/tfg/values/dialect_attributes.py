"""Attributes of the dialects tf_type and tfg, as data."""

from __future__ import annotations

from dataclasses import dataclass

from heald.runtime.values import Buffer

from ...attribute_text import attribute_text, symbol_text
from ...attributes import ArrayAttr, Attribute, DictionaryAttr
from ...lexer import escaped_text


@dataclass(frozen=True, slots=True)
class VersionAttr(Attribute):
    """`#tf_type.version<producer = 1, min_consumer = 2, bad_consumers = [3]>`."""

    producer: int
    min_consumer: int
    bad_consumers: tuple[int, ...] = ()

    def __str__(self) -> str:
        bad = f", bad_consumers = [{', '.join(map(str, self.bad_consumers))}]" if self.bad_consumers else ""
        return f"#tf_type.version<producer = {self.producer}, min_consumer = {self.min_consumer}{bad}>"


@dataclass(frozen=True, slots=True)
class ShapeAttr(Attribute):
    """`#tf_type.shape<1x?x3>`: unknown dimensions are -1; None for an unknown rank."""

    dims: tuple[int, ...] | None

    def __str__(self) -> str:
        dims = "*" if self.dims is None else "x".join("?" if dim == -1 else str(dim) for dim in self.dims)
        return f"#tf_type.shape<{dims}>"


@dataclass(frozen=True, slots=True)
class FuncAttr(Attribute):
    """`#tf_type.func<@name, {attributes}>`; without a name it is empty."""

    name: str
    attrs: DictionaryAttr

    def __str__(self) -> str:
        name = symbol_text(self.name) if self.name else '""'
        return f"#tf_type.func<{name}, {attribute_text(self.attrs)}>"


@dataclass(frozen=True, slots=True)
class PlaceholderAttr(Attribute):
    """`#tf_type.placeholder<"name">`."""

    name: str

    def __str__(self) -> str:
        return f'#tf_type.placeholder<"{escaped_text(self.name)}">'


@dataclass(frozen=True, slots=True)
class FullTypeAttr(Attribute):
    """`#tf_type.full_type<...>`, as a FullTypeDef. `unsupported`: the text of a value that no FullTypeDef holds."""

    raw: bytes
    unsupported: str = ""

    def __str__(self) -> str:
        from .attribute_forms import full_type_form

        return f"#tf_type.full_type<{full_type_form(self.raw)[0]}>"


@dataclass(frozen=True, slots=True)
class TensorAttr(Attribute):
    """`dense<...> : type` or `#tf_type<tensor_proto : "0x..."> : type`, as the buffers of a TensorProto.

    `type`: the text of the type.
    """

    type: str
    buffers: tuple[Buffer, ...]

    def __str__(self) -> str:
        return f"a tensor of type {self.type}"


@dataclass(frozen=True, slots=True)
class UnreadableTensor(Attribute):
    """`#tf_type<tensor_proto : "0x...">` with other digits. `fault`: the words of TensorFlow's exporter."""

    fault: str

    def __str__(self) -> str:
        return "a tensor that is none"


@dataclass(frozen=True, slots=True)
class RegionAttrs(Attribute):
    """`#tfg.region_attrs<{attributes} [arguments] [results]>`."""

    attrs: DictionaryAttr
    arguments: ArrayAttr
    results: ArrayAttr

    def __str__(self) -> str:
        parts = " ".join(map(attribute_text, (self.attrs, self.arguments, self.results)))
        return f"#tfg.region_attrs<{parts}>"
