"""The protobuf messages of the protocols, in a descriptor pool of their own: TensorFlow may share the process.

messages.json has, by package and message, [number, name, type, label] of each field. A type is a scalar, a message or
map<string, message>; one of another package has a dot before it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from .errors import ClientError

_SCALARS = {"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "bytes": 12,
            "uint32": 13}
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3


@cache
def message_class(name: str) -> Any:
    """The class of a message by its full name."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


def parse_message(name: str, data: bytes) -> Any:
    """Raises ClientError for bytes that are no such message."""
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise ClientError("DATA_LOSS", f"the answer is no {name}: {error}") from None


@cache
def _pool() -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    tables = json.loads(resources.files(__package__).joinpath("messages.json").read_text("utf-8"))
    pool = DescriptorPool()
    names: list[str] = []
    for package, table in tables.items():
        file = FileDescriptorProto(name=f"heald_client/{package}.proto", package=package, syntax="proto3",
                                   dependency=names)
        for name, rows in table.items():
            _add_message(file, package, name, rows)
        pool.Add(file)
        names.append(file.name)
    return pool


def _add_message(file: Any, package: str, name: str, rows: list[list[Any]]) -> None:
    """Add a definition. In the table an outer message comes before its inner ones."""
    *outer, inner = name.split(".")
    siblings = file.message_type
    for part in outer:
        siblings = next(message for message in siblings if message.name == part).nested_type
    message = siblings.add(name=inner)
    for number, field_name, kind, *label in rows:
        field = message.field.add(name=field_name, number=number, label=_OPTIONAL)
        if kind.startswith("map<"):
            field.label = _REPEATED
            entry = message.nested_type.add(name=f"{''.join(map(str.title, field_name.split('_')))}Entry")
            entry.options.map_entry = True
            key, value = kind[4:-1].split(", ")
            for entry_number, (part, part_kind) in enumerate((("key", key), ("value", value)), 1):
                _set_type(entry.field.add(name=part, number=entry_number, label=_OPTIONAL), package, part_kind)
            _set_type(field, package, f"{name}.{entry.name}")
            continue
        _set_type(field, package, kind)
        if label and label[0].startswith("oneof "):
            field.oneof_index = _oneof(message, label[0].removeprefix("oneof "))
        elif label:
            field.label = _REPEATED


def _set_type(field: Any, package: str, kind: str) -> None:
    field.type = _SCALARS.get(kind, _MESSAGE)
    if kind not in _SCALARS:
        field.type_name = kind if kind.startswith(".") else f".{package}.{kind}"


def _oneof(message: Any, name: str) -> int:
    names = [oneof.name for oneof in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        names.append(name)
    return names.index(name)
