"""The Open Inference Protocol over HTTP, with binary tensors in both directions."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np

from .calls import Arrays, DescribeCall, PredictCall, SignatureSpec, TensorSpec
from .elements import STRING, datatype_of, from_raw, numpy_type, object_array, static_shape, to_array, to_raw
from .errors import ClientError
from .http_transport import Answer, HttpTransport, parse_json

LENGTH_HEADER = "inference-header-content-length"


class V2HttpProtocol:
    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    def predict(self, call: PredictCall) -> Arrays:
        inputs, raw = [], []
        for name, value in call.inputs.items():
            array = to_array(value, name)
            raw.append(to_raw(array))
            inputs.append({"name": name, "shape": [*array.shape], "datatype": datatype_of(array, name),
                           "parameters": {"binary_data_size": len(raw[-1])}})
        document: dict[str, Any] = {"inputs": inputs, "parameters": {"binary_data_output": True}}
        if call.signature:
            document["parameters"]["signature"] = call.signature
        if call.outputs:
            document["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in call.outputs]
        head = json.dumps(document).encode()
        answer = self._transport.ask_well("POST", f"{_path(call)}/infer", b"".join([head, *raw]), call.timeout,
                                          inference_header_content_length=str(len(head)))
        return read_outputs(answer)

    def describe(self, call: DescribeCall) -> SignatureSpec:
        check_default_signature(call)
        answer = self._transport.ask_well("GET", _path(call), None, call.timeout)
        try:
            document = parse_json(answer.body)
            return SignatureSpec(*({row["name"]: TensorSpec(numpy_type(row["datatype"]), static_shape(row["shape"]))
                                    for row in document[side]} for side in ("inputs", "outputs")))
        except (KeyError, TypeError) as error:
            raise ClientError("DATA_LOSS", f"the metadata have another form: {error!r}") from None

    def is_ready(self, model: str, timeout: float | None) -> bool:
        answer = self._transport.ask("GET", f"/v2/models/{quote(model, safe='')}/ready", None, timeout)
        return answer.status == 200

    def close(self) -> None:
        self._transport.close()


def _path(call: PredictCall | DescribeCall) -> str:
    path = f"/v2/models/{quote(call.model, safe='')}"
    return path if call.version is None else f"{path}/versions/{call.version}"


def check_default_signature(call: DescribeCall) -> None:
    """Raises ClientError for another signature: the protocol's metadata have none."""
    if call.signature:
        raise ClientError("UNIMPLEMENTED", "the Open Inference Protocol describes the default signature alone")


def read_outputs(answer: Answer) -> Arrays:
    """The arrays of an answer. Raises ClientError for one of another form."""
    length_text = answer.headers.get(LENGTH_HEADER, str(len(answer.body)))
    length = int(length_text) if length_text.isdecimal() and len(length_text) < 20 else -1
    if not 0 <= length <= len(answer.body):
        raise ClientError("DATA_LOSS", f"the answer has the header length {length_text} and {len(answer.body)} bytes")
    raw = memoryview(answer.body)[length:]
    arrays: Arrays = {}
    try:
        for row in parse_json(answer.body[:length])["outputs"]:
            name, datatype, shape = row["name"], row["datatype"], row["shape"]
            size = row.get("parameters", {}).get("binary_data_size")
            if size is None:
                arrays[name] = _from_json(row["data"], datatype, shape)
            else:
                arrays[name] = from_raw(raw[:size], datatype, shape, name)
                raw = raw[size:]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ClientError("DATA_LOSS", f"the answer has outputs of another form: {error!r}") from None
    return arrays


def _from_json(data: Any, datatype: str, shape: list[int]) -> Any:
    if datatype == STRING:
        return object_array([text.encode("utf-8", "surrogateescape") for text in data]).reshape(shape)
    return np.array(data, numpy_type(datatype)).reshape(shape)
