"""Edits of checkpoints: of the index, which is a table with checksums, and of the shards, whose checksums it holds.

Nine of ten mutants get all checksums repaired: the damage then reaches the reader of entries and tensors.
"""

from __future__ import annotations

import re
from random import Random

from heald.errors import HealdError
from heald.runtime.values import dtypes, wire
from heald.runtime.values.wire import put_varint
from heald_saved_model import sstable
from heald_saved_model.crc32c import masked_crc32c

from . import protobuf, raw
from .raw import Words
from .samples import Sample

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
_SHARD = re.compile(r"\.data-(\d+)-of-\d+$")
_REPAIRED_SHARE = 0.9
_OFFSET, _SIZE, _CRC = 4, 5, 6  # fields of BundleEntryProto
_DTYPE, _SHARD_ID = 1, 3
Pairs = list[tuple[bytes, bytes]]


def index_edit(rng: Random, sample: Sample, other: Sample, words: Words) -> Sample:
    """An edit of the index: of its entries in seven of ten cases, of its blocks in two, of any bytes else."""
    name, there = index_of(sample), other[index_of(other)]
    data, choice = sample[name], rng.random()
    if choice < 0.7:
        pairs = _pairs(data)
        changed = _entries(rng, pairs, there, words) if pairs else raw.edit(rng, data, there, words)
    elif choice < 0.9:
        changed = _block(rng, data, there, words)
    else:
        changed = raw.edit(rng, data, there, words)
    return {**sample, name: changed}


def data_edit(rng: Random, sample: Sample, other: Sample, words: Words) -> Sample:
    """An edit of a shard; strings' lengths are varints, and get those edits too."""
    shards = [name for name in sample if _SHARD.search(name)]
    name = rng.choice(shards)
    there = other[rng.choice([n for n in other if _SHARD.search(n)])]
    edits = (raw.flip, raw.overwrite, raw.varint_integer, raw.fixed_integer, raw.edit)
    return {**sample, name: rng.choice(edits)(rng, sample[name], there, words)}


def finish(rng: Random, sample: Sample) -> Sample:
    """The sample with its checksums repaired, in nine of ten cases."""
    return repair_checksums(sample) if rng.random() < _REPAIRED_SHARE else sample


def index_of(sample: Sample) -> str:
    return next(name for name in sample if name.endswith(".index"))


def repair_checksums(sample: Sample) -> Sample:
    """The sample with checksums in its index that fit its shards; as it is where the index is no table."""
    name = index_of(sample)
    pairs = _pairs(sample[name])
    shards = {int(match[1]): n for n in sample if (match := _SHARD.search(n))}
    changed = {n: bytearray(sample[n]) for n in shards.values()}
    for at, (key, value) in enumerate(pairs):
        fields = protobuf.parse_fields(value) if key else None
        if fields:
            pairs[at] = key, _entry_with_checksum(fields, shards, changed)
    files = {n: bytes(data) for n, data in changed.items()}
    return {**sample, **files, name: table(pairs)} if pairs else sample


def _entry_with_checksum(fields: list[protobuf.Field], shards: dict[int, str], changed: dict[str, bytearray]) -> bytes:
    """An entry with the checksum of its bytes. Strings have a second checksum among their bytes."""
    numbers = {field.number: field.value for field in fields if isinstance(field.value, int)}
    shard, offset, size = (numbers.get(key, 0) for key in (_SHARD_ID, _OFFSET, _SIZE))
    data = changed.get(shards.get(shard, ""))
    if data is None or offset + size > len(data):
        return protobuf.encode_fields(fields)
    crc = masked_crc32c(bytes(data[offset : offset + size]))
    if numbers.get(_DTYPE) == dtypes.string.number:
        crc = _checksum_of_strings(data, offset, size, crc)
    other_fields = [field for field in fields if field.number != _CRC]
    return protobuf.encode_fields([*other_fields, protobuf.Field(_CRC, protobuf.FIXED32, crc.to_bytes(4, "little"))])


def _checksum_of_strings(data: bytearray, offset: int, size: int, otherwise: int) -> int:
    """The checksum of strings; repairs the checksum of their lengths in `data`. The number of strings follows from
    the lengths that fill the bytes."""
    lengths: list[int] = []
    at, end = offset, offset + size
    while at + 4 + sum(lengths) < end:
        try:
            length, at = wire.varint(bytes(data[at : min(at + 10, end)]), 0, min(10, end - at))[0], _after(data, at)
        except HealdError:
            return otherwise
        lengths.append(length)
    if at + 4 > end:
        return otherwise
    summed = b"".join(n.to_bytes(4 if n < 1 << 32 else 8, "little") for n in lengths)
    data[at : at + 4] = masked_crc32c(summed).to_bytes(4, "little")
    return masked_crc32c(summed + bytes(data[at:end]))


def _after(data: bytearray, at: int) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def _pairs(index: bytes) -> Pairs:
    try:
        return list(sstable.entries(index))
    except HealdError:
        return []


def _entries(rng: Random, pairs: Pairs, there: bytes, words: Words) -> bytes:
    """A table whose entries are edited: values as messages, keys as bytes, their order and number."""
    at = rng.randrange(len(pairs))
    key, value = pairs[at]
    donors = _pairs(there) or pairs
    choice = rng.randrange(10)
    if choice < 6:
        pairs[at] = key, protobuf.edit(rng, value, rng.choice(donors)[1], words)
    elif choice == 6:
        pairs[at] = raw.edit(rng, key, rng.choice(donors)[0], words), value
    elif choice == 7:
        del pairs[at]
    elif choice == 8:
        pairs.append((rng.choice(donors)[0], value))
    else:
        pairs[at] = key, rng.choice(donors)[1]
    return table(pairs if rng.random() < 0.05 else sorted(dict(pairs).items()), per_block=rng.choice((1, 4, 1000)))


def _block(rng: Random, data: bytes, there: bytes, words: Words) -> bytes:
    """A table in which a block's bytes are edited, and its checksum made to fit, or the footer."""
    if len(data) < _FOOTER or rng.random() < 0.2:
        at = max(0, len(data) - _FOOTER)
        return data[:at] + raw.varint_integer(rng, data[at : at + 40], there, words)[:40].ljust(40, b"\0") + data[-8:]
    blocks = _handles(data)
    if not blocks:
        return raw.edit(rng, data, there, words)
    offset, size = rng.choice(blocks)
    content = rng.choice((raw.flip, raw.overwrite, raw.varint_integer, raw.fixed_integer))(
        rng, data[offset : offset + size + 1], there, words)[: size + 1].ljust(size + 1, b"\0")
    return data[:offset] + content + masked_crc32c(content).to_bytes(4, "little") + data[offset + size + 5 :]


def _handles(data: bytes) -> list[tuple[int, int]]:
    """Offset and size of a sound table's blocks, the index block first."""
    try:
        at, numbers = len(data) - _FOOTER, []
        for _ in range(4):
            number, at = wire.varint(data, at, len(data))
            numbers.append(number)
        _, _, offset, size = numbers
        handles = [(offset, size)]
        if size:
            handles.append((0, offset - 5))
        return [(o, s) for o, s in handles if 0 <= o <= o + s + 5 <= len(data)]
    except HealdError:
        return []


def table(pairs: Pairs, per_block: int = 1000) -> bytes:
    """A table of these pairs, with sound checksums."""
    data, handles = b"", []
    for first in range(0, len(pairs), per_block):
        some = pairs[first : first + per_block]
        block = _with_checksum(_block_of_pairs(some))
        handles.append((some[-1][0] + b"\xff", put_varint(len(data)) + put_varint(len(block) - 5)))
        data += block
    filters = _with_checksum(_block_of_pairs([]))
    index = _with_checksum(_block_of_pairs(handles))
    footer = b"".join(map(put_varint, (len(data), len(filters) - 5, len(data) + len(filters), len(index) - 5)))
    return data + filters + index + footer.ljust(40, b"\0")[:40] + _MAGIC


def _block_of_pairs(pairs: Pairs) -> bytes:
    """A block; each key shares its common prefix with the key before it."""
    out: list[bytes] = []
    last = b""
    for key, value in pairs:
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        out += (put_varint(shared), put_varint(len(key) - shared), put_varint(len(value)), key[shared:], value)
        last = key
    return b"".join(out) + bytes(4) + b"\1\0\0\0"


def _with_checksum(block: bytes) -> bytes:
    block += b"\0"  # not compressed
    return block + masked_crc32c(block).to_bytes(4, "little")


