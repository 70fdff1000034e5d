"""Bodies of an inference over HTTP: JSON, and behind it the raw bytes of tensors, in their order.

The header Inference-Header-Content-Length has the bytes of the JSON. An input's parameter binary_data_size has the
bytes of its tensor. An output is binary where its parameter binary_data, or binary_data_output of the request, says so.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from heald.api import dtypes
from heald.errors import InvalidArgument

from ..http.body import MOST_UNPACKED_BYTES
from ..predict import Arrays
from ..rest.json_text import parse_object
from .datatypes import dtype_of, known_datatype_of
from .elements import from_json, from_raw, to_json, to_raw
from .inference import check_parameters

LENGTH_HEADER = b"inference-header-content-length"
_SIZE, _BINARY, _BINARY_OUTPUTS = "binary_data_size", "binary_data", "binary_data_output"


class InferBody(NamedTuple):
    """A parsed body. `raw`: the bytes behind the JSON. `binary_outputs`: by name, whether an output is binary."""

    document: Mapping[str, Any]
    raw: memoryview
    parameters: Mapping[str, Any]
    binary_outputs: Mapping[str, bool]
    is_binary: bool

    @property
    def id(self) -> str:
        text: str = self.document.get("id", "")
        return text


def inflate(body: bytes) -> bytes:
    """The unpacked body. Raises InvalidArgument for one that is no deflate stream, or too large."""
    stream = zlib.decompressobj()
    try:
        unpacked = stream.decompress(body, MOST_UNPACKED_BYTES)
    except zlib.error as error:
        raise InvalidArgument(f"the body is not packed by deflate: {error}") from None
    if not stream.eof:
        raise InvalidArgument(f"the body ends early, or has more than {MOST_UNPACKED_BYTES:,} bytes unpacked")
    return unpacked


def parse_body(body: bytes, length_text: bytes | None) -> InferBody:
    """Raises InvalidArgument for a body of another form, Unimplemented for shared memory."""
    view = memoryview(body)
    length = len(body)
    if length_text is not None:
        if not length_text.isdigit() or len(length_text) > 20 or int(length_text) > len(body):
            raise InvalidArgument(f"Inference-Header-Content-Length is not 0 to {len(body)}, the bytes of the body")
        length = int(length_text)
    document = parse_object(bytes(view[:length]))
    parameters = _parameters(document, "the request")
    _check_text(document.get("id", ""), "'id'")
    outputs = {_name(output, "output"): _is_binary(_parameters(output, "an output"), _BINARY, parameters)
               for output in _objects(document, "outputs")}
    return InferBody(document, view[length:], parameters, outputs, _is_binary(parameters, _BINARY_OUTPUTS, {}))


def _objects(document: Mapping[str, Any], key: str) -> list[Any]:
    rows = document.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidArgument(f"'{key}' is no list of objects")
    return rows


def _parameters(document: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    parameters = document.get("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidArgument(f"'parameters' of {where} is no object")
    check_parameters(parameters, where)
    return parameters


def _name(row: Mapping[str, Any], kind: str) -> str:
    name = row.get("name")
    if name is None:
        raise InvalidArgument(f"an {kind} has no 'name'")
    return _check_text(name, f"the name of an {kind}")


def _check_text(text: Any, kind: str) -> str:
    """Raises InvalidArgument for a value that is no string, or one with half of a surrogate pair: none goes back."""
    try:
        if isinstance(text, str) and text.encode() is not None:
            return text
    except UnicodeEncodeError:
        pass
    raise InvalidArgument(f"{kind} is no string of whole characters")


def _is_binary(parameters: Mapping[str, Any], key: str, outer: Mapping[str, Any]) -> bool:
    value = parameters.get(key, outer.get(_BINARY_OUTPUTS, False))
    if not isinstance(value, bool):
        raise InvalidArgument(f"'{key}' is not true or false")
    return value


def read_inputs(body: InferBody) -> Arrays:
    """The arrays of a body. Raises InvalidArgument, and Unimplemented for types that JSON lacks."""
    arrays: dict[str, Any] = {}
    rows = _objects(body.document, "inputs")
    at = 0
    for row in rows:
        name = _name(row, "input")
        if name in arrays:
            raise InvalidArgument(f"input '{name}' is there twice")
        size = _parameters(row, f"input '{name}'").get(_SIZE)
        arrays[name], at = _read_input(row, name, size, body.raw, at)
    if at != len(body.raw):
        raise InvalidArgument(f"{len(body.raw)} bytes follow the JSON, its inputs need {at}")
    return arrays


def _read_input(row: Mapping[str, Any], name: str, size: Any, raw: memoryview, at: int) -> tuple[Any, int]:
    shape, datatype = row.get("shape"), row.get("datatype")
    if not isinstance(shape, list) or not all(type(item) is int for item in shape):
        raise InvalidArgument(f"'shape' of input '{name}' is no list of whole numbers")
    dtype = dtype_of(datatype if isinstance(datatype, str) else "", name)
    if size is None:
        if "data" not in row:
            raise InvalidArgument(f"input '{name}' has no 'data'")
        return from_json(name, row["data"], dtype, shape), at
    if type(size) is not int or not 0 <= size <= len(raw) - at or "data" in row:
        raise InvalidArgument(f"'{_SIZE}' of input '{name}' is not the size of bytes behind the JSON, or has 'data' "
                              "beside it")
    return from_raw(name, raw[at : at + size], dtype, shape), at + size


class InferAnswer(NamedTuple):
    """Outputs as JSON texts, and the raw bytes of the binary ones."""

    outputs: list[str]
    raw: list[bytes]


def write_outputs(outputs: Arrays, body: InferBody) -> InferAnswer:
    answer = InferAnswer([], [])
    for name, output in outputs.items():
        array = np.asarray(output)
        answer.outputs.append("{" + ",".join(_members(name, array, body, answer.raw)) + "}")
    return answer


def _members(name: str, array: Any, body: InferBody, raw: list[bytes]) -> Iterator[str]:
    dtype = dtypes.of_numpy(array.dtype)
    yield f'"name":{json_text(name)}'
    yield f'"datatype":"{known_datatype_of(dtype, name)}"'
    yield f'"shape":[{",".join(map(str, array.shape))}]'
    if body.binary_outputs.get(name, body.is_binary):
        raw.append(to_raw(array, dtype))
        yield f'"parameters":{{"{_SIZE}":{len(raw[-1])}}}'
    else:
        yield f'"data":{to_json(name, array, dtype)}'


def json_text(value: Any) -> str:
    import orjson

    text: bytes = orjson.dumps(value)
    return text.decode()
