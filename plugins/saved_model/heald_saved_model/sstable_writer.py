"""A writer of leveldb's table format, without compression: the bytes that TensorFlow writes for the same entries.

See `sstable` for the format. An index entry's key lies between its block and the next one, and is as short as possible.
"""

from __future__ import annotations

from collections.abc import Iterable

from heald.api import wire

from .crc32c import masked_crc32c
from .sstable import FOOTER, MAGIC

_BLOCK_BYTES = 1 << 18  # a block ends with the entry that reaches this size
_RESTART_INTERVAL = 16  # entries from one whole key to the next; 1 in the index block


def table(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the table of these keys and values, whose keys are in order and differ."""
    out = bytearray()
    index = _Block(restart_interval=1)
    block, handle = _Block(_RESTART_INTERVAL), b""
    for key, value in pairs:
        if handle:
            index.add(_separator(block.last, key), handle)
            block, handle = _Block(_RESTART_INTERVAL), b""
        block.add(key, value)
        if block.size >= _BLOCK_BYTES:
            handle = _append(out, block)
    if not block.is_empty:
        index.add(_successor(block.last), handle or _append(out, block))
    filters = _append(out, _Block(1))
    footer = filters + _append(out, index)
    return bytes(out + footer.ljust(FOOTER - len(MAGIC), b"\0") + MAGIC)


class _Block:
    """Entries with shared prefixes, and the offsets of the entries whose keys are whole."""

    def __init__(self, restart_interval: int) -> None:
        self.last = b""
        self._interval = restart_interval
        self._entries = bytearray()
        self._restarts = [0]
        self._count = 0  # entries since the last restart

    @property
    def is_empty(self) -> bool:
        return not self._entries

    @property
    def size(self) -> int:
        return len(self._entries) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count < self._interval:
            shared = _shared_prefix_length(self.last, key)
        else:
            self._restarts.append(len(self._entries))
            self._count = 0
        for size in (shared, len(key) - shared, len(value)):
            self._entries += wire.put_varint(size)
        self._entries += key[shared:] + value
        self.last = key
        self._count += 1

    def to_bytes(self) -> bytes:
        numbers = (*self._restarts, len(self._restarts))
        return bytes(self._entries) + b"".join(number.to_bytes(4, "little") for number in numbers)


def _append(out: bytearray, block: _Block) -> bytes:
    """Append a block with its trailer, and return its handle."""
    content = block.to_bytes()
    handle = wire.put_varint(len(out)) + wire.put_varint(len(content))
    plain = content + b"\0"  # the kind of compression: none
    out += plain + masked_crc32c(plain).to_bytes(4, "little")
    return handle


def _shared_prefix_length(a: bytes, b: bytes) -> int:
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)


def _separator(last: bytes, following: bytes) -> bytes:
    """Return a short key from `last` on, before `following`."""
    at = _shared_prefix_length(last, following)
    if at < min(len(last), len(following)) and last[at] < 0xFF and last[at] + 1 < following[at]:
        return last[:at] + bytes((last[at] + 1,))
    return last


def _successor(last: bytes) -> bytes:
    """Return a short key from `last` on."""
    at = next((i for i, byte in enumerate(last) if byte != 0xFF), None)
    return last if at is None else last[:at] + bytes((last[at] + 1,))
