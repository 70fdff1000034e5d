"""Edits of .npz archives: of the arrays within, with sound checksums, or of the records of the archive itself."""

from __future__ import annotations

import io
import re
import struct
import warnings
import zipfile
from random import Random

from . import raw, tokens
from .raw import EDGES, Words

_MAGIC = b"\x93NUMPY"
_RECORD_HEADER_BYTES = {b"PK\x03\x04": 30, b"PK\x01\x02": 46, b"PK\x05\x06": 22}  # how long the fixed part of each is
_RECORD = re.compile(rb"PK(?:\x03\x04|\x01\x02|\x05\x06)")
_NAMES = ("", "x", "../x.npy", "a/b.npy", "n" * 300, "\u00e9.npy")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def edit(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """An edit of a member in seven of ten cases, of a record in two, else of any bytes."""
    choice = rng.random()
    if choice < 0.7:
        return _members(rng, data, other, words)
    return _record(rng, data) if choice < 0.9 else raw.edit(rng, data, other, words)


def _members(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    members = _read(data)
    if not members:
        return raw.edit(rng, data, other, words)
    at = rng.randrange(len(members))
    name, content = members[at]
    donors = _read(other) or members
    members[at] = name, array_edit(rng, content, rng.choice(donors)[1], words)
    if rng.random() < 0.1:
        members.insert(at, (rng.choice((name, *_NAMES)), rng.choice(donors)[1]))
    return _write(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def array_edit(rng: Random, content: bytes, other: bytes, words: Words) -> bytes:
    """An edit of an .npy file: of its header with a length that fits, or of any bytes."""
    if rng.random() < 0.3 or not content.startswith(_MAGIC) or len(content) < 12:
        return raw.edit(rng, content, other, words)
    wide = content[6] > 1
    size = int.from_bytes(content[8 : 12 if wide else 10], "little")
    begin = 12 if wide else 10
    header = tokens.edit(rng, content[begin : begin + size], other[:128], words)
    length = len(header) if rng.random() < 0.95 else rng.choice(EDGES)
    limit = 4 if wide else 2
    return (content[:8] + (length % (1 << 8 * limit)).to_bytes(limit, "little") + header
            + content[begin + size :])


def _read(data: bytes) -> list[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [(info.filename, archive.read(info)) for info in archive.infolist()
                    if info.file_size < raw.LARGEST_MUTANT_BYTES]
    except Exception:  # noqa: BLE001 - of a damaged archive zipfile raises many types
        return []


def _write(members: list[tuple[str, bytes]], compression: int) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", compression) as archive:
        warnings.simplefilter("ignore")  # two members of one name are meant
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, compression)
    return out.getvalue()


def _record(rng: Random, data: bytes) -> bytes:
    """Another number in a record: flags, method, checksum, sizes, counts, offsets."""
    starts = [match.start() for match in _RECORD.finditer(data)]
    if not starts:
        return data
    start = rng.choice(starts)
    at = start + 2 * rng.randrange(2, _RECORD_HEADER_BYTES[data[start : start + 4]] // 2)
    form = rng.choice(("<H", "<I"))
    number = rng.choice(EDGES) % (1 << 8 * struct.calcsize(form))
    return data[:at] + struct.pack(form, number) + data[at + struct.calcsize(form) :]


WORDS = (b"descr", b"fortran_order", b"shape", b"'<f4'", b"'|O'", b"'<U0'", b"'|V7'", b"'M8[s]'", b"True", b"None",
         b"()", b"(-1,)", b"(2**62,)", b"(9999999999,)", b"[('a', '<f4')]", b"{}", b"{'descr': '<f4'}", b"1L",
         b"lambda: 0")
