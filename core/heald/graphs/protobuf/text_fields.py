"""Message types as the parser of the text form needs them: by field name, the tag on the wire and the reader of
values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ...runtime.values import wire
from ...runtime.values.wire import put_varint
from .descriptor_pool import MAP_TYPE, definitions
from .text_scalars import MESSAGE_SCALAR, SCALARS, Read, Scalar, enum

_TEXT_KINDS = ("string", "bytes")
_MAP_KEY_ORDERS: dict[str, Callable[[bytes], Any]] = {  # by a map's type of key: the key, from tag and key
    "string": lambda raw: raw[wire.varint(raw, 1, len(raw))[1] :],
    "uint32": lambda raw: wire.varint(raw, 1, len(raw))[0],
    "fixed64": lambda raw: int.from_bytes(raw[1:], "little"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. It has `expected`, `read` and `token_bytes` from its scalar type."""

    number: int
    name: str
    tag: bytes  # precedes each value; empty for packed values
    expected: str  # the expected form, for errors
    read: Read
    token_bytes: Mapping[bytes, bytes]
    message: Message | None  # the type of its values, or of a map's entries
    is_text: bool  # string or bytes
    is_string: bool  # must be UTF-8
    is_repeated: bool
    is_packed: bool
    default: bytes | None  # tag and value of the default, which is never written; None for fields with presence
    rivals: frozenset[int]  # numbers of the other fields of its oneof
    order: Callable[[bytes], Any] | None  # for maps: from an entry's key with tag to its sort key


class Message:
    """A message type."""

    def __init__(self, name: str, rows: list[list[Any]], syntax: str) -> None:
        self.name = name
        self._rows = rows
        self._syntax = syntax

    @cached_property
    def fields(self) -> dict[bytes, Field]:
        oneofs: dict[str, set[int]] = {}
        for number, _, _, *label in self._rows:
            if label and label[0].startswith("oneof"):
                oneofs.setdefault(label[0], set()).add(number)
        return {row[1].encode(): self._field(*row, oneofs=oneofs) for row in self._rows}

    def _field(self, number: int, name: str, kind: str, label: str = "", *, oneofs: dict[str, set[int]]) -> Field:
        pair = MAP_TYPE.fullmatch(kind)
        scalar = MESSAGE_SCALAR if pair else _scalar(kind)
        inner = self._map_entry(name, *pair.groups()) if pair else message(kind) if scalar is MESSAGE_SCALAR else None
        tag = _tag(number, scalar)
        is_text = kind in _TEXT_KINDS
        is_number_list = label == "repeated" and inner is None and not is_text
        is_packed = label == "packed" or (is_number_list and self._syntax == "proto3")
        has_presence = inner is not None or self._syntax == "proto2" or label in oneofs
        return Field(
            number, name, b"" if is_packed else tag, scalar.expected, scalar.read, scalar.token_bytes, inner, is_text,
            is_string=kind == "string",
            is_repeated=pair is not None or label in ("repeated", "packed"),
            is_packed=is_packed,
            default=None if has_presence else tag + scalar.default,
            rivals=frozenset(oneofs.get(label, ())) - {number},
            order=_MAP_KEY_ORDERS[pair[1]] if pair else None,
        )

    def _map_entry(self, name: str, key: str, value: str) -> Message:
        return Message(f"{self.name}.{name}", [[1, "key", key], [2, "value", value]], self._syntax)

    @cached_property
    def entry_defaults(self) -> list[bytes]:
        """For an entry of a map: tag and default value of its key and of its value. The writer uses them where the text
        gives none, since an entry in binary form always has both."""
        scalars = [_scalar(row[2]) for row in self._rows]
        return [_tag(number, scalar) + scalar.default for number, scalar in enumerate(scalars, 1)]

    @cached_property
    def collected(self) -> dict[int, Field]:
        """The fields whose values are joined when the message ends: packed fields and maps."""
        return {field.number: field for field in self.fields.values() if field.is_packed or field.order}


@cache
def message(name: str) -> Message:
    """The message type called `name`, such as GraphDef."""
    table = definitions()
    syntax = "proto3" if name in table["proto3"] else "proto2"
    return Message(name, table[syntax][name], syntax)


@cache
def _scalar(kind: str) -> Scalar:
    """The scalar type of this kind, or MESSAGE_SCALAR."""
    enums = definitions()["enums"]
    return enum(kind, enums[kind]) if kind in enums else SCALARS.get(kind, MESSAGE_SCALAR)


def _tag(number: int, scalar: Scalar) -> bytes:
    return put_varint(number << 3 | scalar.wire)
