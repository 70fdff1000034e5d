"""The kernel that turns tf.train.Example messages in JSON into their binary form, as protobuf maps JSON.

Fields come in the order of the JSON text, numbers are not packed, and null stands for an absent field; so the bytes
are TensorFlow's. A table for each message maps the names of its fields to their numbers and to their encoders.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any

from heald.api import Bind, Kernels, errors, wire

from .strings import map_elements

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
INTEGER = re.compile(r"-?[0-9]+")
NO_NUMBERS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}

Encode = Callable[[Any], bytes]
Fields = Mapping[str, tuple[int, Encode]]


class Members(list[tuple[str, Any]]):
    """The names and values of a JSON object in their order; a name may occur twice."""


def decode_json(_: Bind) -> Callable[..., Any]:
    def convert(text: bytes) -> bytes:
        try:
            return encode_example(json.loads(text.decode(), object_pairs_hook=Members, parse_constant=_refuse))
        except (ValueError, RecursionError, OverflowError) as error:
            raise errors.InvalidArgument(f"Error while parsing JSON: {error}") from None

    return map_elements(convert)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def message_encoder(fields: Fields, *, one_of: bool = False) -> Encode:
    """`one_of`: at most one field may occur."""

    def encode(members: Any) -> bytes:
        if not isinstance(members, Members):
            raise ValueError(f"expected an object, given {members!r:.40}")
        parts = [_encode_field(fields, name, value) for name, value in members if value is not None]
        if one_of and len(parts) > 1:
            raise ValueError(f"at most one of {[*fields]} may occur")
        return b"".join(parts)

    return encode


def _encode_field(fields: Fields, name: str, value: Any) -> bytes:
    if name not in fields:
        raise ValueError(f"there is no field {name!r:.40}")
    number, encode = fields[name]
    return wire.put_bytes(number, encode(value))


def list_encoder(encode: Encode, zero: Any) -> Encode:
    """A message with the repeated field `value`. A single element is a list of one."""

    def encode_list(members: Any) -> bytes:
        if not isinstance(members, Members):
            raise ValueError(f"expected an object, given {members!r:.40}")
        return b"".join(encode(zero if element is None else element) for element in _elements(members))

    return encode_list


def _elements(members: Members) -> Iterator[Any]:
    for name, value in members:
        if name != "value":
            raise ValueError(f"there is no field {name!r:.40}")
        if isinstance(value, list) and not isinstance(value, Members):
            yield from value
        elif value is not None:
            yield value


def _encode_bytes(text: Any) -> bytes:
    """Base64 in the usual or in the URL-safe alphabet, with padding or without."""
    if not isinstance(text, str):
        raise ValueError(f"expected a string of base64, given {text!r:.40}")
    usual = text.replace("-", "+").replace("_", "/").rstrip("=")
    return wire.put_bytes(1, b64decode(usual + "=" * (-len(usual) % 4), validate=True))


def _encode_float(number: Any) -> bytes:
    value = NO_NUMBERS[number] if isinstance(number, str) and number in NO_NUMBERS else _number(number)
    raw = struct.pack("<f", value)  # a finite number beyond float32 is an OverflowError
    return wire.put_varint(1 << 3 | wire.FIXED32) + raw


def _encode_integer(number: Any) -> bytes:
    if isinstance(number, str) and INTEGER.fullmatch(number):
        number = int(number)
    value = number if isinstance(number, int) and not isinstance(number, bool) else _number(number)
    if value != int(value) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{number!r:.40} is no integer of 64 bits")
    return wire.put_varint(1 << 3 | wire.VARINT) + wire.put_varint(int(value))


def _number(value: Any) -> float:
    """The finite number of a JSON number, or of a string that holds one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise ValueError(f"expected a number, given {value!r:.40}")
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"{value!r:.40} is too large")
    return number


_encode_feature = message_encoder({
    name: field for names, field in (
        (("bytesList", "bytes_list"), (1, list_encoder(_encode_bytes, ""))),
        (("floatList", "float_list"), (2, list_encoder(_encode_float, 0.0))),
        (("int64List", "int64_list"), (3, list_encoder(_encode_integer, 0))),
    ) for name in names
}, one_of=True)


def _encode_features(members: Any) -> bytes:
    if not isinstance(members, Members):
        raise ValueError(f"expected an object, given {members!r:.40}")
    entries = []
    for name, feature_map in members:
        if name != "feature":
            raise ValueError(f"there is no field {name!r:.40}")
        if not isinstance(feature_map, Members | None):
            raise ValueError(f"expected an object, given {feature_map!r:.40}")
        entries += [wire.put_bytes(1, _encode_entry(key, feature)) for key, feature in feature_map or ()]
    return b"".join(entries)


def _encode_entry(key: str, feature: Any) -> bytes:
    value = b"" if feature is None else wire.put_bytes(2, _encode_feature(feature))
    return wire.put_bytes(1, key.encode()) + value


encode_example = message_encoder({"features": (1, _encode_features)})


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("DecodeJSONExample")(decode_json)
