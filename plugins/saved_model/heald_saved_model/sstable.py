"""A reader of leveldb's table format: sorted keys and values in blocks, found by an index block at the end of the file.

A block consists of entries and restart offsets, which reading in order does not need. An entry's key shares a prefix
with the key before it and adds bytes of its own. Each block is followed by its kind of compression and its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator

from heald.api import wire
from heald.errors import DataLoss, Unimplemented
from heald.runtime.values import Buffer

from .crc32c import masked_crc32c
from .snappy import decompress

MAGIC = bytes.fromhex("57fb808b247547db")
FOOTER, _TRAILER = 48, 5  # bytes
_PLAIN, _SNAPPY = 0, 1
_LARGEST_EXPANSION = 128  # most bytes of entries for each byte of the file: shared prefixes expand without a bound
_ENTRY_OVERHEAD_BYTES = 256  # bytes of Python's overhead for an entry, beside its key and value


def entries(file: Buffer) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a table in order. Raises DataLoss, Unimplemented for compression but snappy."""
    if len(file) < FOOTER or file[-8:] != MAGIC:
        raise DataLoss("this is no table of leveldb's: its last bytes are wrong")
    at = len(file) - FOOTER
    _, _, at = _handle(file, at, len(file))  # of the block of filters
    index = _block(file, *_handle(file, at, len(file))[:2])
    end, left, last = 0, _LARGEST_EXPANSION * len(file), b""
    for _, handle in _entries(index):
        offset, size, _ = _handle(handle, 0, len(handle))
        if offset < end:
            raise DataLoss(f"the block at byte {offset} is within the one before it")
        end = offset + size
        for key, value in _entries(_block(file, offset, size)):
            left -= _ENTRY_OVERHEAD_BYTES + len(key) + len(value)
            if left < 0:
                raise DataLoss(f"the table's entries take more than {_LARGEST_EXPANSION} times its {len(file)} bytes")
            if last and key <= last:
                raise DataLoss("the keys of the table are not in order")
            last = key
            yield key, value


def _handle(buf: Buffer, at: int, end: int) -> tuple[int, int, int]:
    """Return a block's offset and size, and the offset behind the handle."""
    offset, at = wire.varint(buf, at, end)
    size, at = wire.varint(buf, at, end)
    return offset, size, at


def _block(file: Buffer, offset: int, size: int) -> Buffer:
    end = offset + size
    if end + _TRAILER > len(file) - FOOTER:
        raise DataLoss(f"a block of {size} bytes at byte {offset} is beyond the end of the table")
    if masked_crc32c(file[offset : end + 1]) != int.from_bytes(file[end + 1 : end + _TRAILER], "little"):
        raise DataLoss(f"the block at byte {offset} does not have the checksum that was written with it")
    compression = file[end]
    if compression not in (_PLAIN, _SNAPPY):
        raise Unimplemented(f"the block at byte {offset} is compressed in way {compression}, which is not snappy")
    return decompress(file[offset:end]) if compression == _SNAPPY else file[offset:end]


def _entries(block: Buffer) -> Iterator[tuple[bytes, bytes]]:
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (restarts + 1)
    if len(block) < 4 or end < 0:
        raise DataLoss(f"a block of {len(block)} bytes cannot have {restarts} restarts")
    at, key = 0, b""
    while at < end:
        shared, at = wire.varint(block, at, end)
        fresh, at = wire.varint(block, at, end)
        size, at = wire.varint(block, at, end)
        if shared > len(key) or at + fresh + size > end:
            raise DataLoss("an entry of a table's block is longer than the block")
        key = key[:shared] + bytes(block[at : at + fresh])
        at += fresh + size
        yield key, bytes(block[at - size : at])
