"""Slices of tensors: their text in graphs, "4 3 0,2:-", and their keys in the tables of checkpoints.

The text has the shape of the whole tensor, and for each dimension start and length, or "-" for all of it.
"""

from __future__ import annotations

from typing import NamedTuple

from heald.api import shape_text, wire
from heald.errors import InvalidArgument

_ONE_BYTE = tuple(bytes((n,)) for n in range(256))
_ESCAPES = {b"\0": b"\0\xff", b"\xff": b"\xff\0"}  # two bytes that end a key, or stand for infinity

Slice = tuple[tuple[int, int | None], ...]  # start and length of each dimension; None for all of it


class ShapeAndSlice(NamedTuple):
    """A slice, and the shape of the tensor that it is a slice of."""

    shape: tuple[int, ...]
    part_slice: Slice

    @property
    def is_whole(self) -> bool:
        return all(length is None for _, length in self.part_slice)

    @property
    def indices(self) -> tuple[slice, ...]:
        return tuple(slice(start, None if length is None else start + length) for start, length in self.part_slice)

    @property
    def slice_shape(self) -> tuple[int, ...]:
        return tuple(dim if length is None else length
                     for (_, length), dim in zip(self.part_slice, self.shape, strict=True))


def parse_shape_and_slice(text: str) -> ShapeAndSlice:
    """Parse "4 3 0,2:-". Raises InvalidArgument for other text, and for a slice beyond the shape."""
    *dims, slice_text = text.split(" ")
    if not dims:
        raise InvalidArgument(f"Need least two elements in shape_and_slice specification: {text}", hint=_FORM)
    try:
        shape = tuple(map(int, dims))
        part_slice = tuple(_extent(part) for part in slice_text.split(":")) if slice_text else ()
    except ValueError:
        raise InvalidArgument(f"shape_and_slice specification '{text}' cannot be read", hint=_FORM) from None
    if len(part_slice) != len(shape):
        raise InvalidArgument(f"shape_and_slice specification '{text}' has {len(part_slice)} extents, its shape has "
                              f"{len(shape)} dimensions", hint=_FORM)
    for dim, (start, length) in zip(shape, part_slice, strict=True):
        if not 0 <= start <= start + (length or 0) <= dim:
            raise InvalidArgument(f"the slice of shape_and_slice specification '{text}' is beyond {shape_text(shape)}")
    return ShapeAndSlice(shape, part_slice)


_FORM = "write the whole shape and the slice, such as '4 3 0,2:-', or '' for the whole tensor"


def _extent(part: str) -> tuple[int, int | None]:
    if part == "-":
        return 0, None
    start, length = part.split(",")
    return int(start), int(length)


def slice_key(name: str, part_slice: Slice) -> bytes:
    """Return the key of a slice's entry, in leveldb's ordered code: keys sort as their numbers do."""
    escaped = b"".join(_ESCAPES.get(byte, byte) for byte in map(_ONE_BYTE.__getitem__, wire.utf8(name)))
    numbers = (n for start, length in part_slice for n in ((0, -1) if length is None else (start, length)))
    return b"".join((b"\0", escaped, b"\0\1", _encode_unsigned(len(part_slice)), *map(_encode_signed, numbers)))


def _encode_unsigned(value: int) -> bytes:
    """Encode the number of bytes, then the bytes."""
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((len(raw), *raw))


def _encode_signed(value: int) -> bytes:
    """Encode the number, sign-extended to n bytes, xor n leading ones."""
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    raw = value % (1 << 8 * size)
    return (raw ^ (((1 << size) - 1) << 7 * size)).to_bytes(size, "big")
