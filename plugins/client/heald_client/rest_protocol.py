"""TensorFlow Serving's REST: JSON in columns.

An answer has no element types, and a single output has no name; both come from the metadata of the signature, which
are read once for each model and version. A model that got other outputs is asked again.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np

from .calls import Arrays, DescribeCall, PredictCall, SignatureSpec, TensorSpec
from .elements import numpy_type, object_array, static_shape, to_array
from .errors import ClientError
from .http_transport import HttpTransport, parse_json

DEFAULT_SIGNATURE = "serving_default"
_Key = tuple[str, int | None, str]


class RestProtocol:
    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._types: dict[_Key, Mapping[str, str]] = {}

    def predict(self, call: PredictCall) -> Arrays:
        columns = {name: _to_json(to_array(value, name)) for name, value in call.inputs.items()}
        body: dict[str, Any] = {"inputs": columns}
        if call.signature:
            body["signature_name"] = call.signature
        path = _path(call.model, call.version)
        answer = self._transport.ask_well("POST", f"{path}:predict", json.dumps(body).encode(), call.timeout)
        document = parse_json(answer.body)
        if not isinstance(document, dict) or "outputs" not in document:
            raise ClientError("DATA_LOSS", "the answer has no 'outputs'")
        outputs = self._named(call, document["outputs"])
        unknown = [name for name in call.outputs if name not in outputs]
        if unknown:
            raise ClientError("INVALID_ARGUMENT", f"output tensor alias not found in signature: {unknown[0]}")
        return {name: outputs[name] for name in call.outputs or outputs}

    def _named(self, call: PredictCall, value: Any) -> Arrays:
        """The outputs of an answer as arrays."""
        for is_known in (True, False):
            types = self._output_types(call, is_known=is_known)
            values = value if isinstance(value, dict) and len(types) > 1 else dict.fromkeys(types, value)
            if values.keys() == types.keys():
                return {name: _to_array(values[name], types[name], name) for name in types}
        raise ClientError("DATA_LOSS", f"the answer has the outputs {sorted(values)}, the metadata {sorted(types)}")

    def _output_types(self, call: PredictCall, *, is_known: bool) -> Mapping[str, str]:
        key = (call.model, call.version, call.signature or DEFAULT_SIGNATURE)
        if not is_known or key not in self._types:
            definition = self._definition(call)
            try:
                self._types[key] = {name: info["dtype"] for name, info in definition["outputs"].items()}
            except (KeyError, TypeError, AttributeError):
                raise ClientError("DATA_LOSS", f"the metadata of signature '{key[2]}' have no outputs") from None
        return self._types[key]

    def _definition(self, call: PredictCall | DescribeCall) -> Any:
        """The metadata of a signature."""
        name = call.signature or DEFAULT_SIGNATURE
        answer = self._transport.ask_well("GET", f"{_path(call.model, call.version)}/metadata", None, call.timeout)
        try:
            return parse_json(answer.body)["metadata"]["signature_def"]["signature_def"][name]
        except (KeyError, TypeError):
            raise ClientError("DATA_LOSS", f"the metadata have no signature '{name}'") from None

    def describe(self, call: DescribeCall) -> SignatureSpec:
        definition = self._definition(call)
        try:
            return SignatureSpec(*({name: TensorSpec(numpy_type(info["dtype"]), _shape_of(info["tensor_shape"]))
                                    for name, info in definition[side].items()} for side in ("inputs", "outputs")))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ClientError("DATA_LOSS", f"the metadata have another form: {error!r}") from None

    def is_ready(self, model: str, timeout: float | None) -> bool:
        answer = self._transport.ask("GET", _path(model, None), None, timeout)
        if answer.status == 404:
            return False
        document = parse_json(answer.body)
        rows = document.get("model_version_status", []) if isinstance(document, dict) else []
        return any(isinstance(row, dict) and row.get("state") == "AVAILABLE" for row in rows)

    def close(self) -> None:
        self._transport.close()


def _path(model: str, version: int | None) -> str:
    path = f"/v1/models/{quote(model, safe='')}"
    return path if version is None else f"{path}/versions/{version}"


def _shape_of(shape: Any) -> tuple[int | None, ...] | None:
    if shape.get("unknown_rank"):
        return None
    return static_shape([int(dim["size"]) for dim in shape.get("dim", [])])


def _to_json(array: Any) -> Any:
    if array.dtype == object:
        coded = object_array([b""] * array.size)
        coded[:] = [{"b64": base64.b64encode(item).decode()} for item in array.reshape(-1)]
        return coded.reshape(array.shape).tolist()
    if array.dtype.kind == "c":
        raise ClientError("INVALID_ARGUMENT", "JSON has no complex numbers")
    return array.tolist()


def _to_array(value: Any, kind: str, name: str) -> Any:
    dtype = numpy_type(kind)
    try:
        if dtype.kind != "O":
            return np.array(value, dtype)
        texts: Any = np.array(_without_b64(value), dtype=object)
        return object_array([text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
                             for text in texts.reshape(-1)]).reshape(texts.shape)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error) as error:
        raise ClientError("DATA_LOSS", f"output '{name}' is no tensor of {kind}: {error}") from None


def _without_b64(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_b64(item) for item in value]
    return base64.b64decode(value["b64"], validate=True) if isinstance(value, dict) else value
