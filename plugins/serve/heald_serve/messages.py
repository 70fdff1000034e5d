"""The messages of TensorFlow Serving and of the Open Inference Protocol, in a descriptor pool of their own.

The pool is beside TensorFlow's. The tables, TABLE_FILES, have the form of core's table of messages, by package.
Wrappers such as Int64Value are in the package `tensorflow.serving`: their bytes and their text form are the same there.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from heald.errors import DataLoss, InvalidArgument, Location, of_system

TABLE_FILES = ("serving_messages.json", "inference_messages.json")
LARGEST_CONFIG_BYTES = 16 << 20


@cache
def _pool() -> Any:
    from heald.graphs.protobuf import definitions, make_pool

    tables: dict[str, Any] = {}
    for file in TABLE_FILES:
        tables |= json.loads(resources.files(__package__).joinpath(file).read_text("utf-8"))
    tensorflow = definitions()
    tables["tensorflow"] = {**tensorflow, "proto3": tensorflow["proto3"] | tables["tensorflow"]["proto3"]}
    return make_pool(tables)


@cache
def message_class(name: str) -> Any:
    """The class of a message, such as `tensorflow.serving.PredictRequest`, or `PredictRequest` for short."""
    from google.protobuf import message_factory

    full_name = name if "." in name else f"tensorflow.serving.{name}"
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(full_name))


def parse_message(name: str, data: bytes) -> Any:
    """The message in its binary form. Raises DataLoss for malformed bytes."""
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise DataLoss(f"this is not a {name}: {error}") from None


def read_text_message(name: str, file: Path) -> Any:
    """The message in a file in text form. Raises InvalidArgument with the place of a fault, NotFound, DataLoss."""
    from google.protobuf import text_format

    here = Location(str(file))
    try:
        data = file.read_bytes()[: LARGEST_CONFIG_BYTES + 1]
        if len(data) > LARGEST_CONFIG_BYTES:
            raise InvalidArgument(f"this {name} has more than {LARGEST_CONFIG_BYTES:,} bytes", location=here)
        message = message_class(name)()
        text_format.Parse(data.decode("utf-8"), message, descriptor_pool=_pool())
    except UnicodeDecodeError as error:
        raise DataLoss(f"this {name} is no UTF-8: {error}", location=here) from None
    except OSError as error:
        raise of_system(error, file) from error
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        text = str(error).split(" : ", 1)[-1]
        raise InvalidArgument(f"this is no {name}: {text}", location=Location(str(file), line, column)) from None
    except RecursionError:
        raise InvalidArgument(f"this {name} is nested too deep", location=here) from None
    return message
