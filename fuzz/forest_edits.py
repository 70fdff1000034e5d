"""Edits of the trees of decision forests: records of a blob sequence, each a node, which stay records."""

from __future__ import annotations

from random import Random

from heald.errors import HealdError
from heald_decision_forests.blob_sequence import read_records, write_records

from . import protobuf, raw
from .raw import Words


def edit(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """Change, drop, repeat or swap nodes."""
    records, others = _records(data), _records(other)
    if not records or not others:
        return raw.edit(rng, data, other, words)
    first, second = rng.randrange(len(records)), rng.randrange(len(records))
    kind = rng.random()
    if kind < 0.7:
        records[first] = protobuf.edit(rng, records[first], rng.choice(others), words)
    elif kind < 0.8:
        del records[first]
    elif kind < 0.9:
        records.insert(second, rng.choice(others))
    else:
        records[first], records[second] = records[second], records[first]
    return write_records(records)


def _records(data: bytes) -> list[bytes]:
    try:
        return list(read_records(data, lambda _nbytes, _what: None))
    except HealdError:
        return []
