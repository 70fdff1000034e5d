"""Blob sequences, the container of trees: a header, then records, each with its length in front.

The header is `BS`, the version (uint16), the compression (uint8) and 3 reserved bytes, which version 0 leaves
undefined. Compression 1 is gzip over all that follows. Numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator

from heald.api import errors

MAGIC = b"BS"
_HEADER = struct.Struct("<2sHB3x")
_LENGTH = struct.Struct("<I")
_GZIP = 1
_GZIP_WINDOW = 31  # zlib's number for its largest window and the header of gzip
_STEP = 1 << 20  # bytes that are unpacked at once


def read_records(data: bytes, ask: Callable[[int, str], None]) -> Iterator[bytes]:
    """Yield the records. `ask(nbytes, what)` is called before memory is taken for unpacked bytes.

    Raises DataLoss for data of another form, Unimplemented for another version or compression.
    """
    if len(data) < _HEADER.size:
        raise errors.DataLoss(f"the file ends in its header, after {len(data)} bytes")
    magic, version, compression = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise errors.DataLoss(f"the file begins with {magic!r}, not with {MAGIC!r}")
    if version > 1 or (version == 1 and compression > _GZIP):
        raise errors.Unimplemented(f"blob sequences of version {version} with compression {compression} are not read")
    body = data[_HEADER.size:]
    if version == 1 and compression == _GZIP:
        body = _unpack(body, ask)
    yield from _split(body)


def write_records(records: Iterable[bytes]) -> bytes:
    """Return a sequence of these records, version 1 without compression."""
    chunks = [_HEADER.pack(MAGIC, 1, 0)]
    for record in records:
        chunks += (_LENGTH.pack(len(record)), record)
    return b"".join(chunks)


def _split(body: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(body):
        if position + _LENGTH.size > len(body):
            raise errors.DataLoss("the file ends in the length of a record")
        (length,) = _LENGTH.unpack_from(body, position)
        position += _LENGTH.size
        if position + length > len(body):
            raise errors.DataLoss(f"the file ends in a record of {length} bytes")
        yield body[position:position + length]
        position += length


def _unpack(body: bytes, ask: Callable[[int, str], None]) -> bytes:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    chunks, waiting, size = list[bytes](), body, 0
    try:
        while not unpacker.eof:
            ask(size + _STEP, "the trees of a decision forest")
            chunk = unpacker.decompress(waiting, _STEP)
            if not chunk and not unpacker.unconsumed_tail and not unpacker.eof:
                raise errors.DataLoss("the file ends in its compressed records")
            waiting = unpacker.unconsumed_tail
            chunks.append(chunk)
            size += len(chunk)
    except zlib.error as error:
        raise errors.DataLoss(f"the records cannot be unpacked: {error}") from None
    return b"".join(chunks)
