"""Attributes of nodes: an AttrValue, its text in the dialect, and the AttrValue that the text stands for.

The two differ where the dialect has no words for a difference: reference types become value types, dimensions lose
their names, and constants have TensorFlow's own encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
from heald.api import wire
from heald.graphs.protobuf import definitions
from heald.runtime.values import Buffer

from ...attribute_text import name_text, symbol_text
from ...lexer import escaped_bytes
from . import tensor_forms
from .element_types import REF, TEXTS

_LIST, _STRING, _INT, _FLOAT, _BOOL, _TYPE, _SHAPE, _TENSOR, _PLACEHOLDER, _FUNC = range(1, 11)  # fields of AttrValue
_LEAST_SIZE = -(2**63)  # of a dimension: MLIR's own number for an unknown one
_ITEM_FUNC = 9  # field of AttrValue.ListValue
DEEPEST_FUNCTION_ATTRIBUTES = 60  # of functions within attributes of functions


class Form(NamedTuple):
    """The fragments of a value's text, and the buffers of the bytes that the text stands for."""

    text: list[str]
    raw: list[Buffer]


class NoForm(Exception):
    """The dialect has no text for a value."""


def form_of(raw: Buffer, depth: int = 0) -> Form:
    """The form of an AttrValue. Raises NoForm for a value without text, DataLoss for malformed bytes."""
    fields = [entry for entry in wire.fields(raw, 0, len(raw)) if entry[0] <= _FUNC]
    if not fields:
        return Form(["unit"], [b""])
    if len(fields) > 1:
        raise NoForm
    number, kind, at, end = fields[0]
    if number == _LIST:
        return _list_form(raw[at:end], depth)
    value = _single(number, kind, raw, at, end, depth)
    texts, buffers = value
    if number == _INT:
        texts = [f"{texts[0]} : i64"]
    return Form(texts, field(_WIRE[number], number, buffers))


def field(wire_type: int, number: int, buffers: list[Buffer]) -> list[Buffer]:
    """A field with its tag, and with its length where it has one."""
    tag = wire.put_varint(number << 3 | wire_type)
    if wire_type != wire.BYTES:
        return [tag, *buffers]
    return [tag + wire.put_varint(sum(map(len, buffers))), *buffers]


_MIN_ADDRESS_COMPARED_BYTES = 4096  # bytes; buffers of this size are compared by their place in memory first


def are_bytes(buffers: Iterable[Buffer], raw: Buffer) -> bool:
    """True when the buffers, one behind the other, are these bytes."""
    at = 0
    for buffer in buffers:
        end = at + len(buffer)
        if not _equal(buffer, raw[at:end]):
            return False
        at = end
    return at == len(raw)


def _equal(one: Buffer, other: Buffer) -> bool:
    if len(one) < _MIN_ADDRESS_COMPARED_BYTES:
        return one == other
    return len(one) == len(other) and (_address(one) == _address(other) or one == other)


def _address(buffer: Buffer) -> int:
    address: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return address


Value = tuple[list[str], list[Buffer]]


def _single(number: int, kind: int, raw: Buffer, at: int, end: int, depth: int) -> Value:
    """Text and bytes of one value; the bytes have no tag."""
    if kind != _WIRE[number]:
        raise NoForm
    return _SINGLE[number](raw[at:end], depth)


def _string(raw: Buffer, _: int) -> Value:
    return [f'"{escaped_bytes(raw)}"'], [raw]


def _integer(raw: Buffer, _: int) -> Value:
    value = wire.integer(raw, 0, len(raw))
    return [str(value)], [wire.put_varint(value)]


def _float(raw: Buffer, _: int) -> Value:
    return [f"{tensor_forms.float_text(int.from_bytes(raw, 'little'), 'f32')} : f32"], [raw]


def _bool(raw: Buffer, _: int) -> Value:
    value = wire.integer(raw, 0, len(raw)) != 0
    return ["true" if value else "false"], [b"\1" if value else b"\0"]


def _type(raw: Buffer, _: int) -> Value:
    number = wire.integer(raw, 0, len(raw))
    if number not in TEXTS:
        raise NoForm
    return [TEXTS[number]], [wire.put_varint(number - REF if number > REF else number)]


def _shape(raw: Buffer, _: int) -> Value:
    if any(number == 3 and wire.integer(raw, at, end) for number, _, at, end in wire.fields(raw, 0, len(raw))):
        return ["#tf_type.shape<*>"], [wire.put_integer(3, 1)]
    shape = tensor_forms.shape_of(raw, 0, len(raw))
    sizes = ["?" if size == _LEAST_SIZE else str(size) for size in shape]
    shape = tuple(-1 if size == _LEAST_SIZE else size for size in shape)
    return [f"#tf_type.shape<{'x'.join(sizes)}>"], [tensor_forms.shape_bytes(shape)]


def _tensor(raw: Buffer, _: int) -> Value:
    elements = tensor_forms.elements_of_proto(raw)
    if elements is not None:
        return tensor_forms.text(elements), tensor_forms.proto_of_elements(elements)
    content = tensor_forms.mangle_tensor(raw)
    number, shape = tensor_forms.type_and_shape(raw)
    if number not in TEXTS:
        raise NoForm
    content_bytes = tensor_forms.demangle_tensor(content)
    assert content_bytes is not None
    text = [f'#tf_type<tensor_proto : "0x{content.hex().upper()}"> : {tensor_forms.type_of(number, shape)}']
    return text, [content_bytes]


def _placeholder(raw: Buffer, _: int) -> Value:
    return [f'#tf_type.placeholder<"{escaped_bytes(raw)}">'], [raw]


def _function(raw: Buffer, depth: int) -> Value:
    if depth > DEEPEST_FUNCTION_ATTRIBUTES:
        raise NoForm
    name, entries = b"", []
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if number == 1 and kind == wire.BYTES:
            name = bytes(raw[at:end])
        elif number == 2 and kind == wire.BYTES:
            entries.append(entry_of(raw[at:end]))
        else:
            raise NoForm
    shown = symbol_text(name.decode("utf-8", "surrogateescape")) if name else '""'
    pairs: list[str] = []
    buffers: list[Buffer] = [wire.put_bytes(1, name)] if name else []
    for key, value in sorted(entries):
        form = form_of(value, depth + 1)
        pairs.append(pair_text(key, form))
        buffers += field(wire.BYTES, 2, entry_buffers(key, form.raw))
    return [f"#tf_type.func<{shown}, {{{', '.join(pairs)}}}>"], buffers


def entry_of(raw: Buffer) -> tuple[str, Buffer]:
    """Key and value of an entry of a map of attributes. Raises NoForm for an entry in another form."""
    key = ""
    value: Buffer = b""
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if kind != wire.BYTES or number > 2:
            raise NoForm
        if number == 1:
            key = wire.text(raw, at, end)
        else:
            value = raw[at:end]
    return key, value


def entry_buffers(key: str, value: list[Buffer]) -> list[Buffer]:
    """The entry of a map of attributes."""
    return [wire.put_bytes(1, key), *field(wire.BYTES, 2, value)]


def pair_text(key: str, form: Form) -> str:
    """`name = value`, or the name alone for an attribute without value."""
    return name_text(key) if form.text == ["unit"] else "".join((name_text(key), " = ", *form.text))


def _list_form(raw: Buffer, depth: int) -> Form:
    texts: list[str] = []
    buffers: list[Buffer] = []
    kinds = set()
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        kinds.add(number)
        of = _FUNC if number == _ITEM_FUNC else number
        if of not in _SINGLE or of == _PLACEHOLDER:
            raise NoForm
        if _WIRE[of] == wire.BYTES:
            text, value = _single(of, kind, raw, at, end, depth)
            texts.append("".join(text))
            buffers += field(wire.BYTES, number, value)
            continue
        for first, last in _number_spans(raw, kind, at, end, _WIRE[of]):
            text, value = _SINGLE[of](raw[first:last], depth)
            texts += text
            buffers += value
    if len(kinds) > 1:
        raise NoForm
    number = kinds.pop() if texts else 0
    if number and number != _ITEM_FUNC and _WIRE[number] != wire.BYTES:
        buffers = field(wire.BYTES, number, buffers)
    return Form([f"[{', '.join(texts)}]"], field(wire.BYTES, _LIST, buffers))


def _number_spans(raw: Buffer, kind: int, at: int, end: int, wire_type: int) -> list[tuple[int, int]]:
    """The places of the numbers of a repeated field, packed or not."""
    if kind == wire_type:
        return [(at, end)]
    if kind != wire.BYTES:
        raise NoForm
    if wire_type == wire.FIXED32:
        return [(first, first + 4) for first in range(at, end, 4)]
    spans = []
    while at < end:
        _, after = wire.varint(raw, at, end)
        spans.append((at, after))
        at = after
    return spans


_WIRE = {_LIST: wire.BYTES, _STRING: wire.BYTES, _INT: wire.VARINT, _FLOAT: wire.FIXED32, _BOOL: wire.VARINT,
         _TYPE: wire.VARINT, _SHAPE: wire.BYTES, _TENSOR: wire.BYTES, _PLACEHOLDER: wire.BYTES, _FUNC: wire.BYTES}
_SINGLE: dict[int, Callable[[Buffer, int], Value]] = {
    _STRING: _string, _INT: _integer, _FLOAT: _float, _BOOL: _bool, _TYPE: _type, _SHAPE: _shape, _TENSOR: _tensor,
    _PLACEHOLDER: _placeholder, _FUNC: _function,
}


def encoding_of(value: Buffer) -> str | None:
    """The encoding of a tensor that TensorFlow's own differs from; None for other values and encodings."""
    spans = [(at, end) for number, kind, at, end in wire.fields(value, 0, len(value))]
    if len(spans) != 1 or bytes(value[:1]) != b"B":
        return None
    raw = value[slice(*spans[0])]
    elements = tensor_forms.elements_of_proto(raw)
    if elements is None:
        return None
    return next((name for name in tensor_forms.ENCODINGS
                 if are_bytes(tensor_forms.encode_tensor(elements, name), raw)), None)


def encode_tensor_value(value: Buffer, encoding: str) -> list[Buffer]:
    """The buffers of a tensor's AttrValue in an encoding; the value itself where it has none."""
    raw = next((value[at:end] for number, _, at, end in wire.fields(value, 0, len(value)) if number == _TENSOR), b"")
    elements = tensor_forms.elements_of_proto(raw)
    if elements is None or encoding not in tensor_forms.ENCODINGS:
        return [value]
    return field(wire.BYTES, _TENSOR, tensor_forms.encode_tensor(elements, encoding))


# Full types


def full_type_form(raw: Buffer, depth: int = 0) -> tuple[str, bytes]:
    """A FullTypeDef as text, without `#tf_type.full_type<...>` around it, and the bytes of that text. Raises NoForm."""
    if depth > DEEPEST_FUNCTION_ATTRIBUTES:
        raise NoForm
    kind, arguments, shown = 0, [], ""
    parts: list[bytes] = []
    for number, _, at, end in wire.fields(raw, 0, len(raw)):
        if number == 1:
            kind = wire.integer(raw, at, end)
        elif number == 2:
            text, inner = full_type_form(raw[at:end], depth + 1)
            arguments.append(text)
            parts.append(wire.put_bytes(2, inner))
        elif number == 3:
            shown = f' "{escaped_bytes(raw[at:end])}"'
            last = wire.put_bytes(3, raw[at:end])
        elif number == 4:
            value = wire.integer(raw, at, end)
            shown = f" {value} : i64"
            last = wire.put_integer(4, value)
    name = next((name for name, value in full_types().items() if value == kind), None)
    if name is None:
        raise NoForm
    inside = f"<{', '.join(arguments)}>" if arguments else ""
    encoded_kind = wire.put_integer(1, kind) if kind else b""
    return f"{name}{inside}{shown}", b"".join((encoded_kind, *parts, last if shown else b""))


@cache
def full_types() -> dict[str, int]:
    """The numbers of full types by their name in text."""
    return {name.removeprefix("TFT_").lower(): value for name, value in definitions()["enums"]["FullTypeId"].items()}
