"""Edits of protobuf messages that stay messages: lengths are made to fit, so that mutants get past the parser."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from heald.runtime.values.wire import put_varint

from . import raw
from .raw import EDGES, LARGEST_MUTANT_BYTES, Words

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan"), 1e30, 1e-40, 3.4e38)
_DEEPEST = 32  # levels of messages


class Field(NamedTuple):
    number: int
    kind: int
    value: int | bytes


def parse_fields(data: bytes) -> list[Field] | None:
    """The fields of a message; None for bytes that are none."""
    fields, at = [], 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if at < 0 or tag < 8:
            return None
        if kind == VARINT:
            value, at = _read_varint(data, at)
            if at < 0:
                return None
            fields.append(Field(tag >> 3, kind, value))
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if kind == BYTES:
            size, at = _read_varint(data, at)
        if size is None or at < 0 or at + size > len(data):
            return None
        fields.append(Field(tag >> 3, kind, data[at : at + size]))
        at += size
    return fields


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the offset behind it, -1 where there is none."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


def _inner(field: Field) -> list[Field]:
    """The fields of an embedded message; none for a value that does not parse as one."""
    return parse_fields(field.value) or [] if field.kind == BYTES and isinstance(field.value, bytes) else []


def encode_fields(fields: list[Field]) -> bytes:
    out = []
    for number, kind, value in fields:
        out.append(put_varint(number << 3 | kind))
        if isinstance(value, int):
            out.append(put_varint(value))
        else:
            out += (put_varint(len(value)), value) if kind == BYTES else (value,)
    return b"".join(out)


class _FieldPlace(NamedTuple):
    """A field to edit: the fields of its message, its index, and the fields of such a message in the other sample."""

    fields: list[Field]
    at: int
    theirs: list[Field]


def edit(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """One edit somewhere in the tree of messages; bytes that are no message are edited as bytes."""
    path: list[_FieldPlace] = []
    fields, theirs = parse_fields(data), parse_fields(other) or []
    while fields and len(path) < _DEEPEST:
        at = rng.randrange(len(fields))
        path.append(_FieldPlace(fields, at, theirs))
        deeper = _inner(fields[at])
        if not deeper or rng.random() < 0.15:
            break
        alike = [inner_fields for field in theirs if field.number == fields[at].number
                 and (inner_fields := _inner(field))]
        fields, theirs = deeper, rng.choice(alike) if alike else []
    if not path:
        return raw.edit(rng, data, other, words)
    changed = encode_fields(rng.choices(_EDITS, _WEIGHTS)[0](rng, path.pop(), other, words))
    for place_of_parent in reversed(path):
        place_of_parent.fields[place_of_parent.at] = place_of_parent.fields[place_of_parent.at]._replace(value=changed)
        changed = encode_fields(place_of_parent.fields)
    return changed if len(changed) <= LARGEST_MUTANT_BYTES else data


def _value(rng: Random, field_place: _FieldPlace, other: bytes, words: Words) -> list[Field]:
    """Another value of the same wire type; for a message, a message of the other sample."""
    fields, at, _ = field_place
    number, kind, value = fields[at]
    if _inner(fields[at]):
        return _graft(rng, field_place, other, words)
    if kind == VARINT:
        value = rng.choice((rng.choice(EDGES), rng.randrange(32), int(value) + rng.choice((-1, 1))))
    elif kind == FIXED32:
        value = rng.choice((struct.pack("<f", rng.choice(_FLOATS)), rng.randbytes(4)))
    elif kind == FIXED64:
        value = rng.choice((struct.pack("<d", rng.choice(_FLOATS)), rng.randbytes(8)))
    else:
        assert isinstance(value, bytes)
        value = _text(rng, value, other, words)
    return [*fields[:at], Field(number, kind, value), *fields[at + 1 :]]


def _text(rng: Random, value: bytes, other: bytes, words: Words) -> bytes:
    """A word of the vocabulary, a text of the other message, or an edit of this value. Bytes of tensors mostly keep
    their number."""
    is_text = value.isascii() and value.decode("ascii").isprintable()
    if not is_text and rng.random() < 0.7:
        return rng.choice(raw.SAME_SIZE)(rng, value, other, words)
    if not is_text or rng.random() < 0.05:
        return raw.edit(rng, value, other, words)
    return rng.choice(words if words and rng.random() < 0.5 else strings(other) or [value])


def strings(data: bytes) -> list[bytes]:
    """The texts in a message: names of nodes, ops, keys."""
    texts: list[bytes] = []
    stack = [data]
    while stack and len(texts) < 50:
        for field in parse_fields(stack.pop()) or ():
            if field.kind == BYTES and isinstance(field.value, bytes):
                inner = parse_fields(field.value)
                if inner:
                    stack.append(field.value)
                if not inner or field.value.isascii():
                    texts.append(field.value)
    return texts


def _delete(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    fields, at, _ = field_place
    stop = at + rng.choice((1, 1, 1, 2, 8))
    return fields[:at] + fields[stop:]


def _repeat(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    fields, at, _ = field_place
    field = fields[at]
    size = len(field.value) + 3 if isinstance(field.value, bytes) else 4
    count = min(rng.choice((1, 1, 2, 3, 50, 1000)), 65_536 // size + 1)
    return fields[:at] + [field] * count + fields[at:]


def _swap(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    fields, at, _ = field_place
    changed, to = list(fields), rng.randrange(len(fields))
    changed[at], changed[to] = changed[to], changed[at]
    return changed


def _exchange(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    """The value of another field of the same message, such as a node's name as its op."""
    fields, at, _ = field_place
    kind_and_nesting = fields[at].kind, bool(_inner(fields[at]))
    same = [field.value for field in fields if (field.kind, bool(_inner(field))) == kind_and_nesting]
    return [*fields[:at], fields[at]._replace(value=rng.choice(same)), *fields[at + 1 :]]


def _renumber(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    fields, at, _ = field_place
    number = rng.choice((rng.randint(1, 10), rng.choice(fields).number, rng.randint(1, 1 << 29)))
    return [*fields[:at], fields[at]._replace(number=number), *fields[at + 1 :]]


def _retype(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    fields, at, _ = field_place
    kind = rng.choice((VARINT, FIXED64, BYTES, FIXED32))
    value: int | bytes = rng.choice(EDGES) if kind == VARINT else rng.randbytes(
        {FIXED64: 8, FIXED32: 4}.get(kind, rng.randrange(20)))
    return [*fields[:at], Field(fields[at].number, kind, value), *fields[at + 1 :]]


def _nest(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    """A message within itself, many times."""
    fields, at, _ = field_place
    field = fields[at]
    value = field.value if isinstance(field.value, bytes) else put_varint(field.value)
    for _ in range(rng.choice((1, 2, 10, 99, 101, 1000))):
        value = put_varint(field.number << 3 | BYTES) + put_varint(len(value)) + value
        if len(value) > 65_536:
            break
    return [*fields[:at], Field(field.number, BYTES, value), *fields[at + 1 :]]


def _graft(rng: Random, field_place: _FieldPlace, _other: bytes, _words: Words) -> list[Field]:
    """A field of the other sample, mostly of the same number."""
    fields, at, theirs = field_place
    donors = [field for field in theirs if field.number == fields[at].number or rng.random() < 0.05]
    return [*fields[:at], rng.choice(donors), *fields[at + rng.randrange(2) :]] if donors else fields


_Edit = Callable[[Random, _FieldPlace, bytes, Words], list[Field]]
_WEIGHTED: dict[_Edit, float] = {_value: 12, _exchange: 2, _graft: 2, _delete: 1, _repeat: 1, _swap: 1, _nest: 0.5,
                                 _renumber: 0.4, _retype: 0.3}
_EDITS, _WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
