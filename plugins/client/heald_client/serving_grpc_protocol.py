"""TensorFlow Serving's gRPC. Requests have tensor_content; answers may have typed fields."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .calls import Arrays, DescribeCall, PredictCall, SignatureSpec, TensorSpec
from .elements import NUMBERS, STRING_NUMBER, numpy_type, object_array, static_shape, to_array
from .errors import ClientError
from .grpc_transport import GrpcTransport
from .messages import message_class, parse_message

_PACKAGE = "tensorflow.serving"
AVAILABLE = 30
SIGNATURE_DEF, DEFAULT_SIGNATURE = "signature_def", "serving_default"
# The typed field of a type by its number; int_val holds the others.
_FIELDS = {1: "float_val", 2: "double_val", STRING_NUMBER: "string_val", 8: "scomplex_val", 9: "int64_val",
           10: "bool_val", 14: "half_val", 18: "dcomplex_val", 19: "half_val", 22: "uint32_val", 23: "uint64_val"}


class ServingGrpcProtocol:
    def __init__(self, transport: GrpcTransport) -> None:
        self._transport = transport

    def predict(self, call: PredictCall) -> Arrays:
        request = message_class(f"{_PACKAGE}.PredictRequest")(output_filter=call.outputs)
        request.model_spec.name, request.model_spec.signature_name = call.model, call.signature
        if call.version is not None:
            request.model_spec.version.value = call.version
        for name, value in call.inputs.items():
            _write_tensor(request.inputs[name], to_array(value, name))
        answer = self._transport.call(f"/{_PACKAGE}.PredictionService/Predict", request, f"{_PACKAGE}.PredictResponse",
                                      call.timeout)
        return {name: read_tensor(message, name) for name, message in answer.outputs.items()}

    def describe(self, call: DescribeCall) -> SignatureSpec:
        request = message_class(f"{_PACKAGE}.GetModelMetadataRequest")(metadata_field=[SIGNATURE_DEF])
        request.model_spec.name = call.model
        if call.version is not None:
            request.model_spec.version.value = call.version
        answer = self._transport.call(f"/{_PACKAGE}.PredictionService/GetModelMetadata", request,
                                      f"{_PACKAGE}.GetModelMetadataResponse", call.timeout)
        definitions = parse_message(f"{_PACKAGE}.SignatureDefMap", answer.metadata[SIGNATURE_DEF].value).signature_def
        name = call.signature or DEFAULT_SIGNATURE
        if name not in definitions:
            raise ClientError("NOT_FOUND", f"the model has no signature '{name}': {', '.join(sorted(definitions))}")
        return SignatureSpec(*({key: TensorSpec(numpy_type(info.dtype), _shape_of(info)) for key, info in infos.items()}
                               for infos in (definitions[name].inputs, definitions[name].outputs)))

    def is_ready(self, model: str, timeout: float | None) -> bool:
        request = message_class(f"{_PACKAGE}.GetModelStatusRequest")()
        request.model_spec.name = model
        try:
            answer = self._transport.call(f"/{_PACKAGE}.ModelService/GetModelStatus", request,
                                          f"{_PACKAGE}.GetModelStatusResponse", timeout)
        except ClientError as error:
            if error.code == "NOT_FOUND":
                return False
            raise
        return any(row.state == AVAILABLE for row in answer.model_version_status)

    def close(self) -> None:
        self._transport.close()


def _shape_of(info: Any) -> tuple[int | None, ...] | None:
    shape = info.tensor_shape
    return None if shape.unknown_rank else static_shape([dim.size for dim in shape.dim])


def _write_tensor(message: Any, array: Any) -> None:
    message.dtype = NUMBERS[array.dtype.name]
    message.tensor_shape.SetInParent()
    for size in array.shape:
        message.tensor_shape.dim.add(size=size)
    if array.dtype == object:
        message.string_val.extend(array.reshape(-1))
    else:
        message.tensor_content = array.tobytes()


def read_tensor(message: Any, name: str) -> Any:
    """The array of a TensorProto. Raises ClientError where shape and elements contradict."""
    shape = [dim.size for dim in message.tensor_shape.dim]
    dtype = numpy_type(message.dtype)
    try:
        if min(shape, default=0) < 0:
            raise ValueError("a size is negative")
        if message.tensor_content:
            return np.frombuffer(message.tensor_content, dtype.newbyteorder("<")).reshape(shape)
        return _fill(_typed_elements(message, dtype), prod(shape), dtype).reshape(shape)
    except (ValueError, OverflowError, MemoryError) as error:
        raise ClientError("DATA_LOSS", f"output '{name}' does not fit its shape {shape}: {error}") from None


def _typed_elements(message: Any, dtype: Any) -> Any:
    field = _FIELDS.get(message.dtype, "int_val")
    values = list(getattr(message, field))
    if field == "string_val":
        return object_array(values)
    if field == "half_val":
        return np.array(values, np.uint16).view(dtype)
    if field.endswith("complex_val"):
        return np.array(values, dtype.type(0).real.dtype).view(dtype)
    return np.array(values, dtype)


def _fill(elements: Any, count: int, dtype: Any) -> Any:
    """As many elements as the shape has: a short list repeats its last one, and an empty one has zeros."""
    if len(elements) >= count:
        return elements
    last = elements[-1:] if len(elements) else object_array([b""]) if dtype.kind == "O" else np.zeros(1, dtype)
    return np.concatenate([elements, np.repeat(last, count - len(elements))])
