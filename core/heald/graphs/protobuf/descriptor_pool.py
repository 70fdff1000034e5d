"""TensorFlow's protobuf messages, in a private descriptor pool: tensorflow may be imported in the same process.

Their definitions are tensorflow_messages.json: by syntax and message, [number, name, type, label] of each field. A
type is a scalar, a message, an enum or a map<key, value>. A label is repeated, packed or `oneof name`. Enums within
messages, and the few messages of google.protobuf that these contain, are in the same package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

from ...errors import DataLoss
from ...runtime.values.wire import Buffer

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.message import Message

PACKAGE = "tensorflow"
MAP_TYPE = re.compile(r"map<(\w+), ([\w.]+)>")
_SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8,
    "string": 9, "bytes": 12, "uint32": 13, "sint64": 18,
}
_MESSAGE, _ENUM = 11, 14  # FieldDescriptorProto.Type
_OPTIONAL: Any = 1  # FieldDescriptorProto.Label
_REPEATED: Any = 3


@cache
def definitions() -> dict[str, Any]:
    """The table of messages and enums. Callers must not change it."""
    file = resources.files(__package__).joinpath("tensorflow_messages.json")
    table: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return table


@cache
def message_class(name: str) -> type[Message]:
    """The class of the messages called `name`, such as GraphDef."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def parse_message(name: str, raw: Buffer) -> Message:
    """The message called `name`, parsed from its binary form. Raises DataLoss for malformed bytes."""
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(bytes(raw))
    except DecodeError as error:
        raise DataLoss(f"this is not a {name}: {error}") from None


@cache
def _pool() -> Any:
    return make_pool({PACKAGE: definitions()})


def make_pool(tables: Mapping[str, Mapping[str, Any]]) -> Any:
    """A descriptor pool of these tables, each by its package. A type of an earlier package is `.package.Name`."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    earlier: list[str] = []
    enums: set[str] = set()
    for package, table in tables.items():
        enums.update(f".{package}.{name}" for name in table["enums"])
        for syntax in ("proto2", "proto3"):
            file = FileDescriptorProto(name=f"heald/{package}.{syntax}.proto", package=package, syntax=syntax,
                                       dependency=earlier)
            for name, rows in table.get(syntax, {}).items():
                _add_message(file, name, rows, enums)
            if syntax == "proto3":
                _add_enums(file, table["enums"])
            pool.Add(file)
            earlier.append(file.name)
    return pool


def _add_enums(file: FileDescriptorProto, enums: Mapping[str, Mapping[str, int]]) -> None:
    for name, values in enums.items():
        enum = file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)


def _add_message(file: FileDescriptorProto, name: str, rows: list[list[Any]], enums: Container[str]) -> None:
    """Add the definition of a message. In the table an outer message comes before its inner ones."""
    *outer, inner = name.split(".")
    siblings: Any = file.message_type
    for part in outer:
        siblings = next(message for message in siblings if message.name == part).nested_type
    message = siblings.add(name=inner)
    for number, field_name, kind, *label in rows:
        field = message.field.add(name=field_name, number=number, label=_OPTIONAL)
        pair = MAP_TYPE.fullmatch(kind)
        if pair is not None:
            field.label = _REPEATED
            entry = _add_entry(file.package, message, field_name, pair[1], pair[2], enums)
            _set_type(field, f".{file.package}.{name}.{entry}", enums)
            continue
        _set_type(field, _full_name(file.package, kind), enums)
        if label and label[0].startswith("oneof "):
            field.oneof_index = _oneof(message, label[0].removeprefix("oneof "))
        elif label:
            field.label = _REPEATED
            if label[0] == "packed":
                field.options.packed = True


def _add_entry(
    package: str, message: DescriptorProto, field: str, key: str, value: str, enums: Container[str]
) -> str:
    """Add the message that stands for the entries of a map. Returns its name."""
    name = f"{''.join(word.title() for word in field.split('_'))}Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, kind) in enumerate((("key", key), ("value", value)), 1):
        _set_type(entry.field.add(name=part, number=number, label=_OPTIONAL), _full_name(package, kind), enums)
    return name


def _full_name(package: str, kind: str) -> str:
    return kind if kind in _SCALARS or kind.startswith(".") else f".{package}.{kind}"


def _set_type(field: FieldDescriptorProto, kind: str, enums: Container[str]) -> None:
    """`kind` is a scalar, or a full name with a dot before it."""
    # the generated stubs have a separate type for enums
    field.type = cast("Any", _SCALARS.get(kind, _ENUM if kind in enums else _MESSAGE))
    if kind not in _SCALARS:
        field.type_name = kind


def _oneof(message: DescriptorProto, name: str) -> int:
    names = [o.name for o in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        names.append(name)
    return names.index(name)
