"""Attribute values: TFRT's attribute types where a value survives in them exactly, else a tagged value of our own.

TFRT's types here: all numbers, String, Type, arrays of numbers and of Type, Shape (of dimensions that are partly
unknown, and ShapeAttribute), Dense (small arrays) and Aggregate (any other tuple). Other types of TFRT are read, not
written.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....errors import InvalidArgument, Unimplemented
from ...support.records import NamedTuple
from ...values import dtypes
from ...values.dtypes import DType
from ..typed_attribute import ShapeAttribute, is_number, number_type, typed_number
from .arrays import LARGEST_NUMPY_RANK, PAGE, Arrays, ArrayWriter, elements, read_dtype
from .sections import PADDING
from .vbr import NAME_ERRORS, SectionReader, put_bytes, put_text, put_vbr

STRING, TYPE, SHAPE, DENSE, SYMBOL_REF, AGGREGATE = 16, 25, 27, 28, 29, 30
ARRAY = 0x80  # added to the type of the elements
TAGGED = 0x40  # our own
_I1, _I32, _I64, _BF16 = 5, 8, 9, 15
_DEEPEST_NESTING = 32  # of tuples in tuples
_DTYPES_BY_NUMBER = {number: dtypes.named(name) for number, name in enumerate((
    "uint8", "uint16", "uint32", "uint64", "bool", "int8", "int16", "int32", "int64", "float32", "float64", "complex64",
    "complex128", "float16", "bfloat16", "string", "resource", "variant", "quint8", "quint16", "qint8", "qint16",
    "qint32"), 1)}  # by TFRT's number
_NUMBERS_BY_DTYPE = {dtype: number for number, dtype in _DTYPES_BY_NUMBER.items()}
_FORMATS = {  # of struct, for one element
    1: "B", 2: "H", 3: "I", 4: "Q", 5: "?", 6: "b", 7: "h", 8: "i", 9: "q", 10: "f", 11: "d", 12: "2f", 13: "2d",
    14: "e", 15: "H", 19: "B", 20: "H", 21: "b", 22: "h", 23: "i",
}
_COMPLEX_TYPES = frozenset((12, 13))
_HEADER = struct.Struct("<BBHI")  # alignment, dtype, prefix size, byte size
_INT64_RANGE = range(-(2**63), 2**63)


class EncodedAttribute(NamedTuple):
    """An attribute's type and bytes. Its position plus `skew` is a multiple of `alignment`."""

    type: int
    alignment: int
    skew: int
    raw: bytes

    def padding(self, position: int) -> bytes:
        return PADDING * (-(position + self.skew) % self.alignment)


def encode(value: Any, arrays: ArrayWriter, what: str) -> EncodedAttribute:
    """The encoded value. Large arrays are added to `arrays`. Raises InvalidArgument, which names `what`, for a value
    that a file cannot hold."""
    return _encode(value, arrays, what, 0)


def _encode(value: Any, arrays: ArrayWriter, what: str, depth: int) -> EncodedAttribute:
    if isinstance(value, bool | int | float | complex):
        number = _number(value)
        return _scalar(number, value) if number else _encode_tagged(value, arrays, what, depth)
    if isinstance(value, str):
        raw = value.encode("utf-8", NAME_ERRORS)
        return EncodedAttribute(STRING, 4, 0, struct.pack("<I", len(raw)) + raw)
    if isinstance(value, DType) and value in _NUMBERS_BY_DTYPE:
        return EncodedAttribute(TYPE, 1, 0, bytes((_NUMBERS_BY_DTYPE[value],)))
    if value is None:
        return EncodedAttribute(SHAPE, 4, 0, bytes(4))
    if isinstance(value, tuple):
        return _tuple(value, arrays, what, depth)
    if _is_small_array(value):
        return _dense(value)
    return _encode_tagged(value, arrays, what, depth)


def _number(value: Any) -> int:
    """The type of a number or of a DType; 0 for another value."""
    dtype = number_type(value)
    if dtype is None:
        return TYPE if isinstance(value, DType) and value in _NUMBERS_BY_DTYPE else 0
    number = _NUMBERS_BY_DTYPE[dtype]
    return 0 if number == _I64 and value not in _INT64_RANGE else number


def _scalar(number: int, value: Any) -> EncodedAttribute:
    parts = (value.real, value.imag) if number in _COMPLEX_TYPES else (
        _to_bfloat16(value) if number == _BF16 else value,)
    raw = struct.pack("<" + _FORMATS[number], *parts)
    return EncodedAttribute(number, _width(number), 0, raw)


def _width(number: int) -> int:
    """The natural alignment of a fixed-size element."""
    return 1 if number == TYPE else struct.calcsize("<" + _FORMATS[number][-1])


def _tuple(value: tuple[Any, ...], arrays: ArrayWriter, what: str, depth: int) -> EncodedAttribute:
    if isinstance(value, ShapeAttribute):
        return _shape(value)
    if not value:
        return EncodedAttribute(ARRAY + _I32, 4, 4, bytes(4))
    types = set(map(_number, value))
    if len(types) == 1 and 0 not in types and len(value) < 1 << 32:
        [number] = types
        raw = (bytes(map(_NUMBERS_BY_DTYPE.__getitem__, value)) if number == TYPE else
               b"".join(_scalar(number, element).raw for element in value))
        return EncodedAttribute(ARRAY + number, max(4, _width(number)), 4, struct.pack("<I", len(value)) + raw)
    if _is_shape(value):
        return _shape(value)
    return _aggregate(value, arrays, what, depth)


def _shape(dims: tuple[int | None, ...]) -> EncodedAttribute:
    raw = _HEADER.pack(8, 0, 12, 12 + 8 * len(dims)) + struct.pack("<I", len(dims))
    lengths = (-1 if dim is None else dim for dim in dims)
    return EncodedAttribute(SHAPE, 8, 12, raw + struct.pack(f"<{len(dims)}q", *lengths))


def _is_shape(value: tuple[Any, ...]) -> bool:
    return any(dim is None for dim in value) and len(value) < 1 << 16 and all(
        dim is None or (_number(dim) == _I64 and dim >= 0) for dim in value)


def _aggregate(value: tuple[Any, ...], arrays: ArrayWriter, what: str, depth: int) -> EncodedAttribute:
    if depth >= _DEEPEST_NESTING:
        raise InvalidArgument(f"{what} has tuples nested deeper than {_DEEPEST_NESTING} levels")
    body = bytearray(_HEADER.size + 4 + 4 * len(value))
    offsets = []
    for item in value:
        encoded = _encode(item, arrays, what, depth + 1)
        body += encoded.padding(len(body) + 1) + bytes((encoded.type,))
        offsets.append(len(body))
        body += encoded.raw
    _HEADER.pack_into(body, 0, 8, 0, _HEADER.size, len(body))
    struct.pack_into(f"<{len(value) + 1}I", body, _HEADER.size, len(value), *offsets)
    return EncodedAttribute(AGGREGATE, 8, 0, bytes(body))


def _is_small_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return (numpy is not None and isinstance(value, numpy.ndarray) and value.nbytes < PAGE
            and _NUMBERS_BY_DTYPE.get(dtypes.of_numpy(value.dtype), 0) in _FORMATS)


def _dense(value: Any) -> EncodedAttribute:
    """A small array, with its elements in row-major order."""

    raw = value.astype(dtypes.of_numpy(value.dtype).numpy, copy=False).tobytes()
    prefix = 20 + 8 * value.ndim
    number = _NUMBERS_BY_DTYPE[dtypes.of_numpy(value.dtype)]
    head = _HEADER.pack(8, number, prefix, prefix + len(raw)) + struct.pack("<3I", prefix, value.size, value.ndim)
    return EncodedAttribute(DENSE, 8, prefix, head + struct.pack(f"<{value.ndim}q", *value.shape) + raw)


# Our own type: a tag, then the value.
_BIG, _BYTES, _LIST, _DICT, _ARRAY, _TENSOR, _DTYPE, _OTHER = range(8)


def _encode_tagged(value: Any, arrays: ArrayWriter, what: str, depth: int) -> EncodedAttribute:
    return EncodedAttribute(TAGGED, 8, 0, _tag(value, arrays, what, depth))


def _tag(value: Any, arrays: ArrayWriter, what: str, depth: int) -> bytes:
    if isinstance(value, int):
        return put_vbr(_BIG) + put_bytes(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if isinstance(value, bytes):
        return put_vbr(_BYTES) + put_bytes(value)
    if isinstance(value, DType):
        return put_vbr(_DTYPE) + put_vbr(value.number)
    if isinstance(value, list):
        return put_vbr(_LIST) + put_bytes(_encode_items(tuple(value), arrays, what, depth))
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidArgument(f"{what} has a key that is not a str")
        return put_vbr(_DICT) + put_vbr(len(value)) + b"".join(map(put_text, value)) + put_bytes(
            _encode_items(tuple(value.values()), arrays, what, depth))
    elements(value, what)
    return put_vbr(_TENSOR if callable(getattr(value, "array", None)) else _ARRAY) + put_vbr(arrays.add(value, what))


def _encode_items(items: tuple[Any, ...], arrays: ArrayWriter, what: str, depth: int) -> bytes:
    """The items as the bytes of an aggregate, which stand anywhere: the reader copies them before it reads them."""
    return _aggregate(items, arrays, what, depth).raw


def decode(kind: int, cursor: SectionReader, arrays: Arrays | None, depth: int = 0) -> Any:
    """The value of type `kind` at the cursor. Raises DataLoss for malformed bytes, Unimplemented for types of TFRT that
    have no value here."""
    if kind & ARRAY and kind < 2 * ARRAY:
        return _read_array(kind - ARRAY, cursor)
    if kind in _FORMATS:
        return _read_numbers(kind, cursor, 1)[0]
    reader = _READERS.get(kind)
    if reader is None:
        at = cursor.base + cursor.at
        raise Unimplemented(f"section Attributes, offset {at}: attributes of type {kind} cannot be read",
                            hint="write the program without them")
    return reader(cursor, arrays, depth)


def _u32(cursor: SectionReader) -> int:
    return int.from_bytes(cursor.take(4), "little")


def _read_numbers(kind: int, cursor: SectionReader, count: int) -> tuple[Any, ...]:
    form = _FORMATS[kind]
    size = struct.calcsize("<" + form)
    if kind not in _COMPLEX_TYPES:
        numbers: tuple[Any, ...] = struct.unpack(f"<{count}{form}", cursor.take(count * size))
        return _typed_numbers(map(_of_bfloat16, numbers) if kind == _BF16 else numbers, kind)
    parts = struct.unpack(f"<{2 * count}{form[-1]}", cursor.take(count * size))
    return _typed_numbers(map(complex, parts[::2], parts[1::2]), kind)


def _typed_numbers(numbers: Iterable[Any], kind: int) -> tuple[Any, ...]:
    dtype = _DTYPES_BY_NUMBER[kind]
    return tuple(typed_number(number, dtype) for number in numbers) if is_number(dtype) else tuple(numbers)


def _of_bfloat16(bits: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    return value


def _to_bfloat16(value: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits >> 16  # the attribute is one of bfloat16: the lower bits are 0


def _read_array(kind: int, cursor: SectionReader) -> tuple[Any, ...]:
    count = _u32(cursor)
    if not count:
        return ()
    if kind == TYPE:
        return tuple(_dtype(cursor, number) for number in cursor.take(count))
    if kind not in _FORMATS:
        raise cursor.wrong(f"there are no arrays of type {kind}")
    if count > len(cursor.data):
        raise cursor.wrong(f"an array counts {count} elements, and the section has {len(cursor.data)} bytes")
    return _read_numbers(kind, cursor, count)


def _dtype(cursor: SectionReader, number: int) -> DType:
    dtype = _DTYPES_BY_NUMBER.get(number)
    if dtype is None:
        raise cursor.wrong(f"{number} is not the number of an element type")
    return dtype


def _read_string(cursor: SectionReader, _arrays: Arrays | None, _depth: int) -> str:
    raw = cursor.take(_u32(cursor))
    try:
        return raw.decode("utf-8", NAME_ERRORS)
    except UnicodeDecodeError:
        raise cursor.wrong("a string is not UTF-8") from None


def _read_type(cursor: SectionReader, _arrays: Arrays | None, _depth: int) -> DType:
    return _dtype(cursor, cursor.take(1)[0])


def _read_shape(cursor: SectionReader, _arrays: Arrays | None, _depth: int) -> tuple[int | None, ...] | None:
    start = cursor.at
    if not _u32(cursor):
        return None
    cursor.at = start + _HEADER.size
    rank = _u32(cursor)
    if rank > len(cursor.data):
        raise cursor.wrong(f"a shape has {rank} dimensions")
    dims = struct.unpack(f"<{rank}q", cursor.take(8 * rank))
    if any(dim < -1 for dim in dims):
        raise cursor.wrong("a shape has a negative dimension")
    return tuple(None if dim == -1 else dim for dim in dims) if -1 in dims else ShapeAttribute(dims)


def _read_dense(cursor: SectionReader, _arrays: Arrays | None, _depth: int) -> Any:
    import numpy as np

    start = cursor.at
    _, number, _, _ = _HEADER.unpack(cursor.take(_HEADER.size))
    offset, count, rank = _u32(cursor), _u32(cursor), _u32(cursor)
    if number not in _FORMATS or rank > LARGEST_NUMPY_RANK:
        raise cursor.wrong(f"a dense array has element type {number} and {rank} dimensions")
    dims = struct.unpack(f"<{rank}q", cursor.take(8 * rank))
    dtype = _DTYPES_BY_NUMBER[number].numpy
    product = 1
    for dim in dims:
        product *= dim
    if any(not 0 <= dim <= len(cursor.data) for dim in dims) or product != count:
        raise cursor.wrong(f"a dense array has shape {list(dims)} and {count} elements")
    cursor.at = min(len(cursor.data), start + offset)
    try:
        array = np.frombuffer(cursor.take(count * dtype.itemsize) or b"", np.uint8).view(dtype).reshape(dims)
    except ValueError as error:  # the product of dimensions beside a 0
        raise cursor.wrong(f"a dense array has shape {list(dims)}: {error}") from None
    array.flags.writeable = False
    return array


def _read_aggregate(cursor: SectionReader, arrays: Arrays | None, depth: int) -> tuple[Any, ...]:
    start = cursor.at
    if not _u32(cursor):
        return ()
    if depth >= _DEEPEST_NESTING:
        raise cursor.wrong(f"tuples are nested deeper than {_DEEPEST_NESTING} levels")
    cursor.at = start
    size = _HEADER.unpack(cursor.take(_HEADER.size))[3]
    inside = SectionReader(cursor.data[start : start + size], cursor.section, base=cursor.base + start)
    if len(inside.data) < size:
        raise cursor.wrong(f"a tuple has {size} bytes, {len(inside.data)} are left")
    inside.take(_HEADER.size)
    count = _u32(inside)
    offsets = struct.unpack(f"<{count}I", inside.take(4 * count)) if 4 * count <= size else ()
    if len(offsets) < count or (previous := inside.at) < 0:
        raise cursor.wrong(f"a tuple counts {count} elements, and has {size} bytes")
    items = []
    for offset in offsets:
        if not previous < offset <= size:  # elements follow one another, so that no element is read twice
            raise cursor.wrong(f"an element of a tuple is at {offset}, the one before ends at {previous}")
        inside.at = offset
        items.append(decode(inside.data[offset - 1], inside, arrays, depth + 1))
        previous = inside.at
    cursor.at = start + size
    return tuple(items)


def _read_tagged(cursor: SectionReader, arrays: Arrays | None, depth: int) -> Any:
    tag = cursor.index(_OTHER, "the tag")
    if tag == _BIG:
        return int.from_bytes(cursor.sized_bytes(), "little", signed=True)
    if tag == _BYTES:
        return cursor.sized_bytes()
    if tag == _DTYPE:
        return read_dtype(cursor, cursor.vbr())
    if tag in (_LIST, _DICT):
        keys = [cursor.text() for _ in range(cursor.count())] if tag == _DICT else []
        items = _read_aggregate(SectionReader(cursor.sized_bytes(), cursor.section), arrays, depth)
        if tag == _LIST:
            return list(items)
        if len(keys) != len(items) or len(set(keys)) < len(keys):
            raise cursor.wrong(f"a mapping has {len(keys)} keys and {len(items)} values")
        return dict(zip(keys, items, strict=True))
    array = arrays[cursor.index(len(arrays), "the array")] if arrays is not None else None
    if array is None:
        raise cursor.wrong("an array is named, and the file has none")
    if tag == _ARRAY:
        return array
    from ...values.tensor_proto import TensorValue

    return TensorValue(array)


_READERS: dict[int, Callable[[SectionReader, Arrays | None, int], Any]] = {
    STRING: _read_string, TYPE: _read_type, SHAPE: _read_shape, DENSE: _read_dense, AGGREGATE: _read_aggregate,
    TAGGED: _read_tagged,
}
