"""Tensors of attributes: a TensorProto, its text in the dialect, and the TensorProto that the text stands for.

The text has the elements alone. TensorFlow writes them back in one form: a tensor of equal elements as one value, which
is left out when it is zero; other numbers as `tensor_content`. Booleans, halves, complex numbers and strings are lists.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from heald.api import wire
from heald.graphs.protobuf import message_class
from heald.runtime.values import Buffer

from ...attribute_text import MAX_LISTED_ELEMENTS, nested_list_text
from ...floats import text_of
from ...lexer import escaped_bytes
from .element_types import TEXTS
from .hexadecimal import digits

MANGLED = b"tftensor$"
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8  # fields of TensorProto
STRING = 7  # numbers of DataType
BOOL, RESOURCE = 10, 20


class Storage(NamedTuple):
    """The storage of a type's elements: bytes of an element, the list field, the struct code of a number.

    `varint`: True for a list of varints. `content`: True where TensorFlow writes different elements as bytes.
    """

    size: int
    field: int
    code: str
    varint: bool = True
    content: bool = True


STORAGE = {
    1: Storage(4, 5, "I", varint=False), 2: Storage(8, 6, "Q", varint=False), 3: Storage(4, 7, "i"),
    4: Storage(1, 7, "B"), 5: Storage(2, 7, "h"), 6: Storage(1, 7, "b"), 8: Storage(8, 9, "I", False, False),
    9: Storage(8, 10, "q"), 10: Storage(1, 11, "B", content=False), 14: Storage(2, 13, "H", content=False),
    17: Storage(2, 7, "H"), 18: Storage(16, 12, "Q", False, False), 19: Storage(2, 13, "H", content=False),
    22: Storage(4, 16, "I"), 23: Storage(8, 17, "Q"),
}
LITERALS = STORAGE | {29: Storage(1, 7, "b"), 30: Storage(1, 7, "B")}  # of types that have literals in text
_FLOATS = {1: "f32", 2: "f64", 14: "bf16", 19: "f16", 8: "f32", 18: "f64"}
_COMPLEX = (8, 18)
_CHUNK_ELEMENTS = 1 << 16  # numbers of Python at once
_TRUTH = b"\0" + b"\1" * 255  # a bool of any byte


class Elements(NamedTuple):
    """A tensor's elements: little-endian bytes, or strings. One element stands for all when `splat` is true."""

    number: int  # of DataType
    shape: tuple[int, ...]
    data: Buffer
    strings: Sequence[Buffer]
    splat: bool


def elements_of_proto(raw: Buffer) -> Elements | None:
    """The elements of a TensorProto; None for a type or a form that the dialect has no elements for.

    Raises DataLoss for malformed bytes.
    """
    number, content, lists = 0, None, []
    shape: tuple[int, ...] = ()
    for field, kind, at, end in wire.fields(raw, 0, len(raw)):
        if field == _DTYPE:
            number = wire.integer(raw, at, end)
        elif field == _SHAPE:
            shape = shape_of(raw, at, end)
        elif field == _CONTENT and at < end:
            content = raw[at:end]
        else:
            lists.append((field, kind, at, end))
    count = prod(shape)
    if number == STRING:
        return None if content is not None else _strings(raw, lists, shape, count)
    storage = STORAGE.get(number)
    if storage is None:
        return None
    data = _data(raw, lists, storage) if content is None else content
    if content is not None and number == BOOL:
        data = bytes(content).translate(_TRUTH)
    size = storage.size
    element_count = len(data) // size
    if element_count > count or len(data) % size:
        return None
    if count == 0:
        return Elements(number, shape, b"", (), False)
    if element_count == 0:
        return Elements(number, shape, bytes(size), (), True)
    if element_count == 1 or equal(data, size):
        return Elements(number, shape, data[:size], (), True)
    if element_count < count:
        data = b"".join((data, bytes(data[-size:]) * (count - element_count)))
    return Elements(number, shape, data, (), False)


def shape_of(raw: Buffer, start: int, stop: int) -> tuple[int, ...]:
    """The dimensions of a TensorShapeProto, unknown ones as -1."""
    dims = []
    for field, _, at, end in wire.fields(raw, start, stop):
        if field == 2:
            size = 0
            for inner, _, first, last in wire.fields(raw, at, end):
                if inner == 1:
                    size = wire.integer(raw, first, last)
            dims.append(size)
    return tuple(dims)


def _strings(raw: Buffer, lists: Sequence[tuple[int, int, int, int]], shape: tuple[int, ...], count: int,
             ) -> Elements | None:
    strings = [bytes(raw[at:end]) for field, _, at, end in lists if field == _STRINGS]
    if len(strings) > count:
        return None
    if count == 0:
        return Elements(STRING, shape, b"", (), False)
    strings = strings or [b""]
    if strings.count(strings[0]) == len(strings):
        return Elements(STRING, shape, b"", strings[:1], True)
    return Elements(STRING, shape, b"", strings + strings[-1:] * (count - len(strings)), False)


def _data(raw: Buffer, lists: Sequence[tuple[int, int, int, int]], storage: Storage) -> Buffer:
    parts = [raw[at:end] if kind != wire.VARINT or storage.varint else b""
             for field, kind, at, end in lists if field == storage.field]
    packed = parts[0] if len(parts) == 1 else b"".join(parts)
    if not storage.varint:
        return packed
    if not len(packed):
        return b""
    first, period = wire.varint(packed, 0, len(packed))
    if len(packed) % period == 0 and equal(packed, period):
        return _pack_elements([first], storage) * (len(packed) // period)
    if bytes(packed).isascii():  # each byte is a varint
        return _widen(packed, storage.size)
    return _pack_elements(wire.integers(packed, wire.BYTES, 0, len(packed), "elements"), storage)


def _widen(values: Buffer, size: int) -> bytes:
    """Little-endian integers of `size` bytes, each of a byte. A text may ask for many in a few characters."""
    wide = bytearray(len(values) * size)
    wide[::size] = values
    return bytes(wide)


def _pack_elements(values: Sequence[int], storage: Storage) -> bytes:
    mask, size = (1 << 8 * storage.size) - 1, storage.size
    return b"".join([(value & mask).to_bytes(size, "little") for value in values])


def equal(data: Buffer, size: int) -> bool:
    """True when all elements have the same bytes."""
    return data[:size] == data[-size:] and data[size:2 * size] == data[:size] and data[size:] == data[:-size]


# Back to bytes


def proto_of_elements(elements: Elements) -> list[Buffer]:
    """The buffers of the TensorProto that TensorFlow writes for these elements."""
    number, shape, data, strings, splat = elements
    head = b"\x08%b" % wire.put_varint(number) + wire.put_bytes(_SHAPE, shape_bytes(shape))
    if number == STRING:
        return [head, *(wire.put_bytes(_STRINGS, text) for text in strings)]
    storage = LITERALS[number]
    if not len(data):
        return [head]
    if number in _COMPLEX:
        return [head, wire.put_bytes(storage.field, _repeat(data, prod(shape) if splat else 1))]
    if splat and data == bytes(storage.size):
        return [head]
    if storage.content and not splat:
        return [head, b"\x22" + wire.put_varint(len(data)), data]
    return [head, wire.put_bytes(storage.field, _list_bytes(data, storage))]


def encode_tensor(elements: Elements, encoding: str) -> list[Buffer]:
    """The buffers of a TensorProto in an encoding that TensorFlow reads, but does not write from text.

    "one": one element in the list of the type. "list": all elements in that list. "content": all elements as bytes.
    """
    number, shape, data, strings, splat = elements
    count = prod(shape)
    head = wire.put_integer(_DTYPE, number) + wire.put_bytes(_SHAPE, shape_bytes(shape))
    if encoding == "one" and not splat:
        return [head]
    times = count if splat and encoding != "one" else 1
    if number == STRING:
        field = b"".join([wire.put_bytes(_STRINGS, text) for text in strings])
        return [head, _repeat(field, times)]
    if encoding == "content":
        data = _repeat(data, times)
        return [head, b"\x22" + wire.put_varint(len(data)), data]
    storage = STORAGE[number]
    return [head, wire.put_bytes(storage.field, _repeat(_list_bytes(data, storage), times))]


def _repeat(data: Buffer, times: int) -> Buffer:
    """The data so many times. Raises ResourceExhausted where a short text stands for more than the memory budget."""
    if times == 1:
        return data
    import heald

    heald.default_host().memory.ask(len(data) * times, "a constant of equal elements")
    return bytes(data) * times


ENCODINGS = ("one", "list", "content")


def _list_bytes(data: Buffer, storage: Storage) -> Buffer:
    if not storage.varint:
        return data
    chunk = _CHUNK_ELEMENTS * storage.size
    chunks = (data[at:at + chunk] for at in range(0, len(data), chunk))
    return b"".join([b"".join(map(wire.put_varint, struct.unpack(f"<{len(part) // storage.size}{storage.code}", part)))
                     for part in chunks])


def shape_bytes(shape: Sequence[int]) -> bytes:
    """The TensorShapeProto of known dimensions; -1 is an unknown one."""
    return b"".join([wire.put_bytes(2, wire.put_integer(1, dim) if dim else b"") for dim in shape])


# Text


def text(elements: Elements) -> list[str]:
    """The fragments of `dense<...> : tensor<...>`. Large tensors are hexadecimal digits."""
    shape, count = elements.shape, prod(elements.shape)
    type_text = f"> : {type_of(elements.number, shape)}"
    if not count:
        return ["dense<", type_text]
    if elements.number == STRING:
        shown = [f'"{escaped_bytes(string)}"' for string in elements.strings]
        return [f"dense<{shown[0] if elements.splat else nested_list_text(shown, shape)}", type_text]
    if count > MAX_LISTED_ELEMENTS and not elements.splat:
        data = _bits(elements.data) if elements.number == BOOL else elements.data
        return ['dense<"0x', digits(data), '"', type_text]
    shown = numbers_text(elements.number, elements.data)
    return [f"dense<{shown[0] if elements.splat else nested_list_text(shown, shape)}", type_text]


def type_of(number: int, shape: Sequence[int]) -> str:
    return f"tensor<{''.join([f'{dim}x' for dim in shape])}{TEXTS[number]}>"


def _bits(flags: Buffer) -> bytes:
    """Booleans as bits, the first in the lowest bit."""
    return int(bytes(flags)[::-1].translate(_DIGITS), 2).to_bytes((len(flags) + 7) // 8, "little")


def booleans(bits: Buffer, count: int) -> bytes:
    """The reverse of `_bits`: a byte for each boolean."""
    digits = f"{int.from_bytes(bits, 'little'):0{8 * len(bits)}b}"[::-1][:count]
    return digits.encode().translate(_FLAGS)


_FLAGS = bytes.maketrans(b"01", b"\0\1")
_DIGITS = b"0" + b"1" * 255


def numbers_text(number: int, data: Buffer) -> list[str]:
    """The text of each element."""
    storage = STORAGE[number]
    width = struct.calcsize(storage.code)
    values = struct.unpack(f"<{len(data) // width}{storage.code}", data)
    if number == BOOL:
        return ["true" if value else "false" for value in values]
    name = _FLOATS.get(number)
    if name is None:
        return list(map(str, values))
    texts = [float_text(value, name) for value in values]
    if number in _COMPLEX:
        return [f"({texts[i]},{texts[i + 1]})" for i in range(0, len(texts), 2)]
    return texts


_known_floats: dict[tuple[int, str], str] = {}


def float_text(bits: int, name: str) -> str:
    """The text of a float by its bits."""
    text = _known_floats.get((bits, name))
    if text is None:
        if len(_known_floats) > 10_000:
            _known_floats.clear()
        text = _known_floats[bits, name] = text_of(bits, name)
    return text


def mangle_tensor(raw: Buffer) -> bytes:
    """The content of `#tf_type<tensor_proto : "0x...">`: a TensorProto in protobuf's text form, with its elements as
    `tensor_content` where they have a fixed size."""
    from google.protobuf import text_format

    message = message_class("TensorProto").FromString(bytes(raw))
    _as_content(message)
    return MANGLED + text_format.MessageToString(message, as_one_line=True).encode()


_LISTED_AS_BYTES = {11: (1, "int_val"), 12: (1, "int_val"), 13: (4, "int_val"), 15: (2, "int_val"),
                    16: (2, "int_val"), 29: (1, "int_val"), 30: (1, "int_val"),
                    **dict.fromkeys((24, 25, 26, 27, 28), (1, "float8_val"))}


_MESSAGE_FIELDS = {20: "resource_handle_val", 21: "variant_val"}  # content: all lengths, then the messages


def _as_content(message: Any) -> None:
    if message.dtype in _MESSAGE_FIELDS and not message.tensor_content:
        _messages_as_content(message, _MESSAGE_FIELDS[message.dtype])
        return
    size, name = _LISTED_AS_BYTES.get(message.dtype, (0, ""))
    if not size or message.tensor_content:
        return
    values = getattr(message, name)
    data = bytes(values) if name == "float8_val" else b"".join(
        [(value & (1 << 8 * size) - 1).to_bytes(size, "little") for value in values])
    count = prod(dim.size for dim in message.tensor_shape.dim)
    data = data or bytes(size)
    data += data[-size:] * (count - len(data) // size)
    message.ClearField(name)
    message.tensor_content = data[:count * size]


def _messages_as_content(message: Any, name: str) -> None:
    """Empty messages fill the rest of the tensor."""
    parts = [part.SerializeToString(deterministic=True) for part in getattr(message, name)]
    count = prod(dim.size for dim in message.tensor_shape.dim)
    parts = (parts + [b""] * (count - len(parts)))[:count]
    message.ClearField(name)
    message.tensor_content = b"".join([*(wire.put_varint(len(part)) for part in parts), *parts])


def demangle_tensor(content: bytes) -> bytes | None:
    """The TensorProto of a mangled text; None for a text that is none."""
    from google.protobuf import text_format

    if not content.startswith(MANGLED):
        return None
    try:
        message = text_format.Parse(content[len(MANGLED):], message_class("TensorProto")())
    except (text_format.ParseError, UnicodeDecodeError, ValueError):
        return None
    return message.SerializeToString(deterministic=True)




def type_and_shape(raw: Buffer) -> tuple[int, tuple[int, ...]]:
    """Number of the DataType, and shape of a TensorProto."""
    number = 0
    shape: tuple[int, ...] = ()
    for field, _, at, end in wire.fields(raw, 0, len(raw)):
        if field == _DTYPE:
            number = wire.integer(raw, at, end)
        elif field == _SHAPE:
            shape = shape_of(raw, at, end)
    return number, shape
