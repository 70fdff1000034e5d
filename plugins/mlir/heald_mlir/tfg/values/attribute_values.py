"""Attributes of the parse tree as AttrValues, in TensorFlow's encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.api import wire
from heald.runtime.values import Buffer

from ... import attributes as a
from ... import floats
from ... import types as t
from ...attribute_text import attribute_text
from . import dialect_attributes as d
from .attribute_forms import entry_buffers, field
from .element_types import REF, data_type_number, element_of
from .tensor_forms import shape_bytes

_LIST, _STRING, _INT, _FLOAT, _BOOL, _TYPE, _SHAPE, _TENSOR, _PLACEHOLDER, _FUNC = range(1, 11)  # fields of AttrValue
_ITEM_FUNC = 9  # field of AttrValue.ListValue
_WIRE = {_INT: wire.VARINT, _FLOAT: wire.FIXED32, _BOOL: wire.VARINT, _TYPE: wire.VARINT}
_INT_BITS = 64
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
        raise NoValue(f"Unhandled attribute kind for attribute: {attribute_text(attribute)}")
    return convert(attribute)


def _items(attribute: a.ArrayAttr) -> list[Buffer]:
    """The buffers of a list. Items of different kinds come in the order of their fields, as TensorFlow writes them."""
    buffers: dict[int, list[Buffer]] = {}
    for item in attribute.items:
        if type(item) not in _VALUES or isinstance(item, d.PlaceholderAttr):
            raise NoValue(f"Unhandled MLIR attribute in export to graph:{attribute_text(item)}")
        number, value = _value(item)
        if number not in _WIRE:
            value = field(wire.BYTES, _ITEM_FUNC if number == _FUNC else number, value)
        buffers.setdefault(number, []).extend(value)
    out: list[Buffer] = []
    for number in sorted(buffers):
        out += field(wire.BYTES, number, buffers[number]) if number in _WIRE else buffers[number]
    return out


def _string(attribute: a.StringAttr) -> Value:
    return _STRING, [attribute.value.encode("utf-8", "surrogateescape")]


def _integer(attribute: a.IntegerAttr) -> Value:
    if attribute.type == t.I1:
        return _BOOL, [b"\1" if attribute.value else b"\0"]
    width = min(t.width_of(attribute.type), _INT_BITS)
    value = attribute.value & (1 << width) - 1
    return _INT, [wire.put_varint(value - (1 << width) if width and value >> width - 1 else value)]


def _float(attribute: a.FloatAttr) -> Value:
    assert isinstance(attribute.type, t.NamedType)
    bits = attribute.bits
    if attribute.type.name == "bf16":
        bits <<= 16
    elif attribute.type != t.F32:
        bits = floats.bits_of(floats.value_of(bits, attribute.type.name), "f32")
    return _FLOAT, [bits.to_bytes(4, "little")]


def _type(attribute: a.TypeAttr) -> Value:
    number = data_type_number(attribute.type)
    if number is None:
        raise NoValue(f"Converting {element_of(attribute.type)} to DataType")
    return _TYPE, [wire.put_varint(number - REF if number > REF else number)]


def _shape(attribute: d.ShapeAttr) -> Value:
    return _SHAPE, [wire.put_integer(3, 1) if attribute.dims is None else shape_bytes(attribute.dims)]


def _tensor(attribute: d.TensorAttr) -> Value:
    return _TENSOR, list(attribute.buffers)


def _unreadable(attribute: d.UnreadableTensor) -> Value:
    raise NoValue(attribute.fault)


def _listed_tensor(attribute: a.DenseAttr) -> Value:
    """A tensor that was not made into bytes, because TensorFlow has none for it."""
    number = data_type_number(attribute.type)
    element = element_of(attribute.type)
    if number is None or isinstance(element, t.NamedType):
        raise NoValue(f"Converting {element} to DataType")
    raise NoValue(f"Unimplemented data type {str(element).removeprefix('!tf_type.')}")


def _builtin(attribute: a.BuiltinAttr) -> Value:
    if attribute.word in ("sparse", "dense_resource"):
        raise NoValue("Unsupported elements attr")
    if attribute.word == "affine_map":
        raise NoValue("AffineMap attribute unimplemented")
    raise NoValue(f"Unhandled attribute kind for attribute: {attribute.text}")


def _symbol(attribute: a.SymbolRefAttr) -> Value:
    return _FUNC, [wire.put_bytes(1, attribute.root)] if attribute.root else []


def _placeholder(attribute: d.PlaceholderAttr) -> Value:
    return _PLACEHOLDER, [attribute.name.encode("utf-8", "surrogateescape")]


def _func(attribute: d.FuncAttr) -> Value:
    buffers: list[Buffer] = [wire.put_bytes(1, attribute.name)] if attribute.name else []
    for key, value in attribute.attrs.items:
        buffers += field(wire.BYTES, 2, entry_buffers(key, attr_value(value)))
    return _FUNC, buffers


_VALUES: dict[type, Callable[[Any], Value]] = {
    a.StringAttr: _string, a.IntegerAttr: _integer, a.FloatAttr: _float, a.TypeAttr: _type, d.ShapeAttr: _shape,
    d.TensorAttr: _tensor, a.DenseAttr: _listed_tensor, a.BuiltinAttr: _builtin, a.SymbolRefAttr: _symbol,
    d.PlaceholderAttr: _placeholder, d.FuncAttr: _func, d.UnreadableTensor: _unreadable,
}
