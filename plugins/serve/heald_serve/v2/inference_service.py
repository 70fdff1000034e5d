"""The front over gRPC. Answers always have raw contents, which are all that Triton's clients read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from heald.api import DType, dtypes
from heald.errors import HealdError, InvalidArgument, NotFound, Unimplemented, typed_error

from ..grpc.call_handlers import Method, RpcCall
from ..messages import message_class
from ..models.served_model import ServedSignature
from ..predict import Arrays
from ..request_counts import GRPC_ENTRY, INFER_API, RequestCounts
from .datatypes import RAW_TYPES, dtype_of, known_datatype_of
from .elements import check_shape, from_raw, object_array, to_raw
from .inference import SIGNATURE_PARAMETER, InferCall, Inference, check_parameters
from .model_documents import server_document

CONTENTS = {
    "bool": "bool_contents", "int8": "int_contents", "int16": "int_contents", "int32": "int_contents",
    "int64": "int64_contents", "uint8": "uint_contents", "uint16": "uint_contents", "uint32": "uint_contents",
    "uint64": "uint64_contents", "float32": "fp32_contents", "float64": "fp64_contents", "string": "bytes_contents"}


def _message(name: str, document: Mapping[str, Any] | None = None) -> Any:
    """The message of a document; fields that the message lacks are left out."""
    from google.protobuf import json_format

    return json_format.ParseDict(dict(document or {}), message_class(f"inference.{name}")(), ignore_unknown_fields=True)


class InferenceService:
    """The service GRPCInferenceService."""

    def __init__(self, inference: Inference, counts: RequestCounts) -> None:
        self._inference, self._counts = inference, counts

    def methods(self) -> dict[str, Method]:
        return {
            "ServerLive": self._documented("ServerLiveResponse", lambda _: {"live": True}),
            "ServerReady": self._documented("ServerReadyResponse", lambda _: {"ready": self._inference.is_ready()}),
            "ModelReady": self._documented("ModelReadyResponse", lambda request: {
                "ready": self._is_model_ready(request)}),
            "ServerMetadata": self._documented("ServerMetadataResponse", lambda _: server_document()),
            "ModelMetadata": self._documented("ModelMetadataResponse", lambda request: (
                self._inference.model_document(request.name, request.version))),
            "ModelConfig": self._documented("ModelConfigResponse", lambda request: {
                "config": self._inference.config_document(request.name, request.version)}),
            "ModelStatistics": self._documented("ModelStatisticsResponse", lambda request: (
                self._inference.statistics_document(request.name, request.version))),
            "RepositoryIndex": self._documented("RepositoryIndexResponse", lambda request: {
                "models": self._inference.index_rows(is_ready=request.ready)}),
            "ModelInfer": self.infer, "ModelStreamInfer": self.infer_of_stream,
            "RepositoryModelLoad": self.load, "RepositoryModelUnload": self.unload,
        }

    def _documented(self, response: str, document_of: Callable[[Any], Mapping[str, Any]]) -> Method:
        async def answer(request: Any, _: RpcCall) -> Any:
            return _message(response, document_of(request))

        return answer

    def _is_model_ready(self, request: Any) -> bool:
        try:
            return self._inference.is_model_ready(request.name, request.version)
        except NotFound:
            return False

    async def load(self, request: Any, _: RpcCall) -> Any:
        if request.parameters:
            raise Unimplemented("a load takes no parameters: the server's list has the models")
        await asyncio.to_thread(self._inference.control.load, request.model_name)
        return _message("RepositoryModelLoadResponse")

    async def unload(self, request: Any, _: RpcCall) -> Any:
        await asyncio.to_thread(self._inference.control.unload, request.model_name)
        return _message("RepositoryModelUnloadResponse")

    async def infer_of_stream(self, request: Any, call: RpcCall) -> Any:
        """An answer of a stream. An error is a part of it, so the stream goes on."""
        answer = message_class("inference.ModelStreamInferResponse")()
        try:
            answer.infer_response.CopyFrom(await self.infer(request, call))
        except Exception as error:  # noqa: BLE001 - the stream has it, and goes on
            answer.error_message = str(error if isinstance(error, HealdError) else typed_error(error))
            answer.infer_response.id = request.id
        return answer

    async def infer(self, request: Any, call: RpcCall) -> Any:
        with self._counts.measure(request.model_name, INFER_API, GRPC_ENTRY):
            return await self._infer(request, call)

    async def _infer(self, request: Any, call: RpcCall) -> Any:
        signature = request.parameters[SIGNATURE_PARAMETER].string_param if (
            SIGNATURE_PARAMETER in request.parameters) else ""
        for output in request.outputs:
            check_parameters(output.parameters, f"output '{output.name}'")
        result = await self._inference.infer(
            InferCall(request.model_name, request.model_version, signature, partial(_read_inputs, request),
                      [output.name for output in request.outputs], call.deadline),
            partial(call.convert, call.nbytes), _written)
        answer = result.answer
        answer.model_name, answer.model_version, answer.id = result.name, result.version, request.id
        return answer


def _read_inputs(request: Any) -> Arrays:
    """The arrays of a request. Raises InvalidArgument."""
    raw: Sequence[bytes] = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise InvalidArgument(f"{len(raw)} raw_input_contents for {len(request.inputs)} inputs")
    arrays: dict[str, Any] = {}
    for at, tensor in enumerate(request.inputs):
        check_parameters(tensor.parameters, f"input '{tensor.name}'")
        if tensor.name in arrays:
            raise InvalidArgument(f"input '{tensor.name}' is there twice")
        dtype = dtype_of(tensor.datatype, tensor.name)
        if not raw:
            arrays[tensor.name] = _from_contents(tensor, dtype)
        elif tensor.HasField("contents"):
            raise InvalidArgument(f"input '{tensor.name}' has contents beside raw_input_contents")
        else:
            arrays[tensor.name] = from_raw(tensor.name, raw[at], dtype, tensor.shape)
    return arrays


def _from_contents(tensor: Any, dtype: DType) -> Any:
    check_shape(tensor.name, tensor.shape)
    if tensor.datatype in RAW_TYPES:
        raise InvalidArgument(f"input '{tensor.name}' of {tensor.datatype} is in raw_input_contents alone")
    values = list(getattr(tensor.contents, CONTENTS[dtype.name]))  # of Python's numbers, which NumPy checks
    try:
        array = object_array(values) if dtype is dtypes.string else np.array(values, dtype.numpy)
        return array.reshape(tensor.shape)
    except (OverflowError, ValueError) as error:
        raise InvalidArgument(f"input '{tensor.name}' of {tensor.datatype}: {error}") from None


def _written(outputs: Arrays, _: ServedSignature) -> Any:
    """The answer of these outputs."""
    answer = message_class("inference.ModelInferResponse")()
    for name, output in outputs.items():
        array = np.asarray(output)
        dtype = dtypes.of_numpy(array.dtype)
        answer.outputs.add(name=name, datatype=known_datatype_of(dtype, name), shape=array.shape)
        answer.raw_output_contents.append(to_raw(array, dtype))
    return answer
