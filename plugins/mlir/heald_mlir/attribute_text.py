"""The text of attributes and locations, as MLIR's own printer writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from . import attributes as a
from . import floats
from . import types as t
from .attributes import Elision
from .lexer import escaped_text

MAX_LISTED_ELEMENTS = 100  # more elements than this are printed as hexadecimal digits
_BARE = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)


def attribute_text(attribute: a.Attribute, elision: Elision = Elision.NEVER) -> str:
    """The text of an attribute. A kind that is not MLIR's own prints itself."""
    print_kind = _KINDS.get(type(attribute))
    return str(attribute) if print_kind is None else print_kind(attribute, elision)


def name_text(name: str, always: bool = False) -> str:
    """The name of an attribute or an operation, in quotes where it is no bare identifier, or always."""
    return name if not always and _BARE.match(name) else f'"{escaped_text(name)}"'


def symbol_text(name: str) -> str:
    return f"@{name_text(name)}"


def location_text(location: a.Attribute) -> str:
    """The text of a location, without `loc(...)` around it."""
    if isinstance(location, a.FileLineColLoc):
        return f'"{escaped_text(location.file)}":{location.line}:{location.column}'
    if isinstance(location, a.FileRangeLoc):
        end = f"{location.end_line if location.end_line != location.line else ''}:{location.end_column}"
        return f'"{escaped_text(location.file)}":{location.line}:{location.column} to {end}'
    if isinstance(location, a.NameLoc):
        child = "" if location.child in (None, a.UNKNOWN) else f"({location_text(location.child)})"
        return f'"{escaped_text(location.name)}"{child}'
    if isinstance(location, a.FusedLoc):
        metadata = "" if location.metadata is None else f"<{attribute_text(location.metadata)}>"
        return f"fused{metadata}[{', '.join(map(location_text, location.locations))}]"
    if isinstance(location, a.CallSiteLoc):
        return f"callsite({location_text(location.callee)} at {location_text(location.caller)})"
    return "unknown"


def _integer(attribute: a.IntegerAttr, elision: Elision) -> str:
    if attribute.type == t.I1:
        return "true" if attribute.value else "false"
    return _typed_text(str(attribute.value), attribute.type, elision, t.I64)


def _float(attribute: a.FloatAttr, elision: Elision) -> str:
    text = _number(attribute.bits, attribute.type)
    if text[1] == "x" and elision is Elision.USUAL:
        elision = Elision.NEVER  # digits of bits without a type are an integer
    return _typed_text(text, attribute.type, elision, t.F64)


def _typed_text(text: str, of: t.Type, elision: Elision, usual: t.Type) -> str:
    elided = elision is Elision.ALWAYS or (elision is Elision.USUAL and of == usual)
    return text if elided else f"{text} : {of}"


def _string(attribute: a.StringAttr, elision: Elision) -> str:
    text = f'"{escaped_text(attribute.value)}"'
    return text if attribute.type is None or elision is Elision.ALWAYS else f"{text} : {attribute.type}"


def _dictionary(attribute: a.DictionaryAttr, _: Elision) -> str:
    return "{" + ", ".join([
        name_text(name) if value == a.UNIT else f"{name_text(name)} = {attribute_text(value)}"
        for name, value in attribute.items]) + "}"


def _array(attribute: a.ArrayAttr, _: Elision) -> str:
    return f"[{', '.join([attribute_text(item, Elision.USUAL) for item in attribute.items])}]"


def _symbol(attribute: a.SymbolRefAttr, _: Elision) -> str:
    return "::".join(map(symbol_text, (attribute.root, *attribute.nested)))


def _dense_array(attribute: a.DenseArrayAttr, _: Elision) -> str:
    values = ", ".join([_number(value, attribute.element) for value in attribute.values])
    return f"array<{attribute.element}{': ' if values else ''}{values}>"


def _opaque(attribute: a.OpaqueAttr, elision: Elision) -> str:
    text = f"#{attribute.dialect}{attribute.body}"
    return text if attribute.type is None or elision is Elision.ALWAYS else f"{text} : {attribute.type}"


def _dense(attribute: a.DenseAttr, elision: Elision) -> str:
    of, values = attribute.type, attribute.values
    assert isinstance(of, t.ShapedType)
    shape = tuple(dim or 0 for dim in of.shape or ())
    if not prod(shape):
        body = ""
    elif len(values) == 1:
        body = _number(values[0], of.element)
    elif len(values) > MAX_LISTED_ELEMENTS and (width := _stored_bits(of.element)):
        body = f'"0x{_raw(values, width).hex().upper()}"'
    else:
        body = nested_list_text([_number(value, of.element) for value in values], shape)
    return f"dense<{body}>" if elision is Elision.ALWAYS else f"dense<{body}> : {of}"


def nested_list_text(texts: Sequence[str], shape: Sequence[int]) -> str:
    """Elements as lists within lists."""
    for size in reversed(shape):
        texts = [f"[{', '.join(texts[start:start + size])}]" for start in range(0, len(texts), size)]
    return texts[0]


def _number(value: Any, of: t.Type) -> str:
    """An element of an array or a tensor, without its type."""
    if isinstance(value, str):
        return f'"{escaped_text(value)}"'
    if isinstance(value, tuple):
        part = of.element if isinstance(of, t.ComplexType) else of
        return f"({','.join([_number(component, part) for component in value])})"
    if of == t.I1:
        return "true" if value else "false"
    if isinstance(of, t.NamedType) and of.name in floats.FORMATS:
        return floats.text_of(value, of.name)
    return str(value)


def _stored_bits(of: t.Type) -> int:
    """Bits of a stored number; 0 for elements that have no hexadecimal form."""
    if isinstance(of, t.ComplexType):
        return _stored_bits(of.element)
    return 0 if of == t.I1 else (t.width_of(of) + 7) // 8 * 8


def _raw(values: Sequence[Any], width: int) -> bytes:
    flat = [part for pair in values for part in pair] if isinstance(values[0], tuple) else values
    return b"".join([(value & (1 << width) - 1).to_bytes(width // 8, "little") for value in flat])


def _location(attribute: a.Location, _: Elision) -> str:
    return f"loc({location_text(attribute)})"


_KINDS: dict[type, Callable[[Any, Elision], str]] = {
    a.UnitAttr: lambda *_: "unit", a.IntegerAttr: _integer, a.FloatAttr: _float, a.StringAttr: _string,
    a.TypeAttr: lambda attribute, _: str(attribute.type), a.ArrayAttr: _array, a.DictionaryAttr: _dictionary,
    a.SymbolRefAttr: _symbol, a.DenseAttr: _dense, a.DenseArrayAttr: _dense_array, a.OpaqueAttr: _opaque,
    **dict.fromkeys((a.UnknownLoc, a.FileLineColLoc, a.FileRangeLoc, a.NameLoc, a.FusedLoc, a.CallSiteLoc), _location),
}
