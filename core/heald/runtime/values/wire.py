"""The protobuf wire format. Fields are found in place, never copied, and every malformed byte is a DataLoss.

A buffer is `bytes` or a `memoryview` of bytes. Offsets in errors count from its start: a reader that walks a whole file
in one buffer reports offsets in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

from ...errors import DataLoss, InvalidArgument

Buffer = bytes | memoryview

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)  # wire types
NESTING = 100  # levels of messages below the outermost one, as in protobuf's own parsers

_NAMES = ("a varint", "64 fixed bits", "length and bytes", "a group", "the end of a group", "32 fixed bits")
_LARGEST_TAG = (1 << 32) - 1
_SINGLE = tuple(bytes((value,)) for value in range(0x80))
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


def varint(buf: Buffer, at: int, end: int) -> tuple[int, int]:
    """The unsigned 64-bit value at `at`, and the offset behind it. Raises DataLoss for a truncated or overlong
    varint."""
    value, shift, start = 0, 0, at
    while at < end:
        byte = buf[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
        shift += 7
        if shift > 63:
            break
    else:
        raise DataLoss(f"truncated: the varint at byte {start} has no end before byte {end}")
    raise DataLoss(f"the varint at byte {start} is longer than 64 bits")


def fields(buf: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield each field of the message at [at, end): its number, its wire type, and the start and stop of its value.

    Fields follow each other without gaps: the tag of a field is at the stop of the field before it. Raises DataLoss for
    truncation, for unknown field numbers and wire types, and for groups.
    """
    while at < end:
        tag_at = at
        tag = buf[at]
        at += 1
        if tag >= 0x80:
            tag, at = varint(buf, tag_at, end)
        if tag < 8 or tag > _LARGEST_TAG:
            raise DataLoss(f"{tag >> 3} is not a field number (byte {tag_at})")
        wire = tag & 7
        start = at
        if wire == BYTES:
            size = buf[at] if at < end else 0x80
            at += 1
            if size >= 0x80:
                size, at = varint(buf, start, end)
            start = at
            at += size
        elif wire == VARINT:
            _, at = varint(buf, at, end)
        elif wire == FIXED32:
            at += 4
        elif wire == FIXED64:
            at += 8
        else:
            raise _bad_wire_type(wire, tag_at)
        if at > end:
            raise DataLoss(f"truncated: the field at byte {tag_at} ends at {at}, its message at {end}")
        yield tag >> 3, wire, start, at


def _bad_wire_type(wire: int, at: int) -> DataLoss:
    what = "a group, which is not used here" if wire in (START_GROUP, END_GROUP) else "not a wire type"
    return DataLoss(f"{wire} is {what} (byte {at})")


def expect(wire: int, expected: int, at: int, what: str) -> None:
    """Raises DataLoss unless the field `what` at byte `at` has the wire type of its definition."""
    if wire != expected:
        raise DataLoss(f"{what} at byte {at} is written as {_NAMES[wire]}, expected {_NAMES[expected]}")


def check_nesting(depth: int, at: int) -> None:
    """Raises InvalidArgument for messages nested more than NESTING deep: no real file needs more."""
    if depth > NESTING:
        raise InvalidArgument(f"nesting: messages are more than {NESTING} deep (byte {at})")


def text(buf: Buffer, start: int, stop: int) -> str:
    """The UTF-8 text at [start, stop). Raises DataLoss for other bytes."""
    try:
        return str(buf[start:stop], "utf-8")
    except UnicodeDecodeError as error:
        raise DataLoss(f"bad UTF-8 at byte {start + error.start}") from None


def signed(value: int) -> int:
    """An unsigned 64-bit value as two's complement, the form in which int32, int64 and enums are written."""
    return value - (1 << 64) if value >> 63 else value


def integer(buf: Buffer, start: int, stop: int) -> int:
    """The signed value of a varint field."""
    return signed(varint(buf, start, stop)[0])


def float32(buf: Buffer, start: int) -> float:
    value: float = _FLOAT.unpack_from(buf, start)[0]
    return value


def integers(buf: Buffer, wire: int, start: int, stop: int, what: str) -> list[int]:
    """The signed values of one field of a repeated integer, packed or not."""
    if wire != BYTES:
        expect(wire, VARINT, start, what)
    values = []
    while start < stop:
        value, start = varint(buf, start, stop)
        values.append(signed(value))
    return values


def floats(buf: Buffer, wire: int, start: int, stop: int, what: str) -> tuple[float, ...]:
    """The values of one field of a repeated float, packed or not. Raises DataLoss for bytes that end within a float."""
    if wire != BYTES:
        expect(wire, FIXED32, start, what)
    if (stop - start) % 4:
        raise DataLoss(f"{what}: {stop - start} bytes at byte {start} are not a whole number of floats")
    return struct.unpack_from(f"<{(stop - start) // 4}f", buf, start)


def put_varint(value: int) -> bytes:
    """`value` as a varint; a negative value in two's complement of 64 bits."""
    if 0 <= value < 0x80:
        return _SINGLE[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def utf8(value: str) -> bytes:
    """The UTF-8 bytes of a text. Raises InvalidArgument for text that has no UTF-8."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{value!r} cannot be written as UTF-8: {error.reason}") from None


def put_bytes(number: int, value: Buffer | str) -> bytes:
    """A length-delimited field, with its tag."""
    if isinstance(value, str):
        value = utf8(value)
    size = len(value)
    if size < 0x80 and number < 0x10:
        return b"".join((_SINGLE[number << 3 | BYTES], _SINGLE[size], value))
    return b"".join((put_varint(number << 3 | BYTES), put_varint(size), value))


def put_integer(number: int, value: int) -> bytes:
    return put_varint(number << 3 | VARINT) + put_varint(value)


def put_float(number: int, value: float) -> bytes:
    return put_varint(number << 3 | FIXED32) + pack_float(value)


def put_double(number: int, value: float) -> bytes:
    return put_varint(number << 3 | FIXED64) + _DOUBLE.pack(value)


def pack_float(value: float) -> bytes:
    return _FLOAT.pack(value)


def as_float32(value: float) -> float:
    """`value` rounded to 32 bits, as a file returns it. Raises InvalidArgument beyond float32's range."""
    try:
        return float32(_FLOAT.pack(value), 0)
    except OverflowError:
        raise InvalidArgument(f"{value} is beyond the range of float32") from None


Key = tuple[int, str]  # a field's number, and the key of an entry if the field is a map


def map_key(buf: Buffer, start: int, stop: int) -> str:
    """The text key of the map entry at [start, stop); empty when it is absent."""
    key = ""
    for number, wire, first, last in fields(buf, start, stop):
        if number == 1:
            expect(wire, BYTES, first, "a map's key")
            key = text(buf, first, last)
    return key


def splice(base: Buffer, new: Mapping[Key, bytes], *, maps: Iterable[int] = ()) -> bytes:
    """The message `base`, with the fields in `new` (complete, tags included) in place of its own.

    All other fields keep their bytes and order. Fields that `base` lacks go before the first field of a higher number,
    or last, sorted. `maps` has the numbers of the fields that are maps: of these, single entries are replaced. Empty
    bytes delete a field.
    """
    segments = [
        ((number, map_key(base, start, stop) if number in maps else ""), stop)
        for number, _, start, stop in fields(base, 0, len(base))
    ]
    present = {key for key, _ in segments}
    added = sorted((key for key in new if key not in present), reverse=True)
    left = dict(new)
    out: list[Buffer] = []
    at = 0
    for key, stop in segments:
        while added and added[-1][0] < key[0]:
            out.append(new[added.pop()])
        out.append(left.pop(key, b"") if key in new else base[at:stop])
        at = stop
    return b"".join((*out, *(new[key] for key in reversed(added))))
