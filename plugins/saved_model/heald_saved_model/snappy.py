"""Decompression of Snappy's block format: literals, and copies of earlier output."""

from __future__ import annotations

from heald.api import wire
from heald.errors import DataLoss
from heald.runtime.values import Buffer

_EXPANSION = 32  # a copy element takes two bytes or more and stands for 64 at most


def decompress(data: Buffer) -> bytes:
    """Decompress a block. Raises DataLoss; requests no more memory than the block can fill."""
    size, at = wire.varint(data, 0, len(data))
    if size > _EXPANSION * len(data):
        raise DataLoss(f"a snappy block of {len(data)} bytes cannot stand for {size}")
    out = bytearray()
    while at < len(data):
        at = _literal(data, at, out) if not data[at] & 3 else _copy(data, at, out)
        if len(out) > size:
            raise DataLoss(f"a snappy block holds more than the {size} bytes that it says")
    if len(out) != size:
        raise DataLoss(f"a snappy block holds {len(out)} bytes, it says {size}")
    return bytes(out)


def _literal(data: Buffer, at: int, out: bytearray) -> int:
    length, at = data[at] >> 2, at + 1
    if length >= 60:
        width = length - 59
        length, at = _number(data, at, width), at + width
    if at + length + 1 > len(data):
        raise DataLoss("a snappy block ends within a literal")
    out += data[at : at + length + 1]
    return at + length + 1


def _copy(data: Buffer, at: int, out: bytearray) -> int:
    tag = data[at]
    width = (0, 1, 2, 4)[tag & 3]
    offset = _number(data, at + 1, width)
    length = (tag >> 2) + 1
    if width == 1:
        offset, length = offset | (tag >> 5) << 8, (tag >> 2 & 7) + 4
    if not 0 < offset <= len(out):
        raise DataLoss(f"a snappy block copies from {offset} bytes before, of {len(out)}")
    pattern = out[len(out) - offset :][:length]
    out += (pattern * (length // len(pattern) + 1))[:length]
    return at + 1 + width


def _number(data: Buffer, at: int, width: int) -> int:
    if at + width > len(data):
        raise DataLoss("a snappy block ends within an element")
    return int.from_bytes(data[at : at + width], "little")
