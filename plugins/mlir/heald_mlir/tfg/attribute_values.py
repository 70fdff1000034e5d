"""Attributes of the parse tree as AttrValues, in TensorFlow's encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.api import wire
from heald.runtime.values import Buffer

from .. import attributes as a
from .. import floats
from .. import types as t
from . import dialect_attributes as d
from .attribute_forms import entry_buffers, field
from .element_types import NUMBERS, REF
from .tensor_forms import shape_bytes

_LIST, _STRING, _INT, _FLOAT, _BOOL, _TYPE, _SHAPE, _TENSOR, _PLACEHOLDER, _FUNC = range(1, 11)  # fields of AttrValue
_ITEM_FUNC = 9  # field of AttrValue.ListValue
_WIRE = {_INT: wire.VARINT, _FLOAT: wire.FIXED32, _BOOL: wire.VARINT, _TYPE: wire.VARINT}
Value = tuple[int, list[Buffer]]


class NoValue(Exception):
    """An attribute that no AttrValue holds. Its argument is the reason."""


def attr_value(attribute: a.Attribute) -> list[Buffer]:
    """The buffers of the AttrValue of an attribute. Raises NoValue."""
    if attribute == a.UNIT:
        return [b""]
    if isinstance(attribute, a.ArrayAttr):
        return field(wire.BYTES, _LIST, _items(attribute))
    number, buffers = _value(attribute)
    return field(_WIRE.get(number, wire.BYTES), number, buffers)


def _value(attribute: a.Attribute) -> Value:
    convert = _VALUES.get(type(attribute))
    if convert is None:
        raise NoValue("Unhandled attribute kind for attribute")
    return convert(attribute)


def _items(attribute: a.ArrayAttr) -> list[Buffer]:
    """The buffers of a list."""
    buffers: list[Buffer] = []
    kinds = set()
    for item in attribute.items:
        number, value = _value(item)
        kinds.add(number)
        if number not in _WIRE:
            value = field(wire.BYTES, _ITEM_FUNC if number == _FUNC else number, value)
        buffers += value
    if len(kinds) > 1 or _PLACEHOLDER in kinds:
        raise NoValue("a list has items of different kinds" if len(kinds) > 1 else "a list has placeholders")
    number = kinds.pop() if kinds else 0
    return field(wire.BYTES, number, buffers) if number in _WIRE else buffers


def _string(attribute: a.StringAttr) -> Value:
    return _STRING, [attribute.value.encode("utf-8", "surrogateescape")]


def _integer(attribute: a.IntegerAttr) -> Value:
    if attribute.type == t.I1:
        return _BOOL, [b"\1" if attribute.value else b"\0"]
    if isinstance(attribute.type, t.IntegerType) and attribute.type.width > 64:
        raise NoValue("an integer has more than 64 bits")
    return _INT, [wire.put_varint(attribute.value)]


def _float(attribute: a.FloatAttr) -> Value:
    assert isinstance(attribute.type, t.NamedType)
    bits = attribute.bits
    if attribute.type != t.F32:
        bits = floats.bits_of(floats.value_of(bits, attribute.type.name), "f32")
    return _FLOAT, [bits.to_bytes(4, "little")]


def _type(attribute: a.TypeAttr) -> Value:
    number = NUMBERS.get(str(attribute.type))
    if number is None:
        raise NoValue(f"'{attribute.type}' is not a data type")
    return _TYPE, [wire.put_varint(number - REF if number > REF else number)]


def _shape(attribute: d.ShapeAttr) -> Value:
    return _SHAPE, [wire.put_integer(3, 1) if attribute.dims is None else shape_bytes(attribute.dims)]


def _tensor(attribute: d.TensorAttr) -> Value:
    return _TENSOR, list(attribute.buffers)


def _placeholder(attribute: d.PlaceholderAttr) -> Value:
    return _PLACEHOLDER, [attribute.name.encode("utf-8", "surrogateescape")]


def _func(attribute: d.FuncAttr) -> Value:
    buffers: list[Buffer] = [wire.put_bytes(1, attribute.name)] if attribute.name else []
    for key, value in attribute.attrs.items:
        buffers += field(wire.BYTES, 2, entry_buffers(key, attr_value(value)))
    return _FUNC, buffers


_VALUES: dict[type, Callable[[Any], Value]] = {
    a.StringAttr: _string, a.IntegerAttr: _integer, a.FloatAttr: _float, a.TypeAttr: _type, d.ShapeAttr: _shape,
    d.TensorAttr: _tensor, d.PlaceholderAttr: _placeholder, d.FuncAttr: _func,
}
