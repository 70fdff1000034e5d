"""The Open Inference Protocol over gRPC, with raw contents in both directions."""

from __future__ import annotations

from .calls import Arrays, PredictCall
from .elements import datatype_of, from_raw, to_array, to_raw
from .errors import ClientError
from .grpc_transport import GrpcTransport
from .messages import message_class

_SERVICE = "/inference.GRPCInferenceService"


class V2GrpcProtocol:
    def __init__(self, transport: GrpcTransport) -> None:
        self._transport = transport

    def predict(self, call: PredictCall) -> Arrays:
        request = message_class("inference.ModelInferRequest")(
            model_name=call.model, model_version="" if call.version is None else str(call.version))
        if call.signature:
            request.parameters["signature"].string_param = call.signature
        for name, value in call.inputs.items():
            array = to_array(value, name)
            request.inputs.add(name=name, datatype=datatype_of(array, name), shape=array.shape)
            request.raw_input_contents.append(to_raw(array))
        for name in call.outputs:
            request.outputs.add(name=name)
        answer = self._transport.call(f"{_SERVICE}/ModelInfer", request, "inference.ModelInferResponse", call.timeout)
        if len(answer.outputs) != len(answer.raw_output_contents):
            raise ClientError("UNIMPLEMENTED", "the answer has no raw contents")
        return {output.name: from_raw(raw, output.datatype, output.shape, output.name)
                for output, raw in zip(answer.outputs, answer.raw_output_contents, strict=True)}

    def is_ready(self, model: str, timeout: float | None) -> bool:
        request = message_class("inference.ModelReadyRequest")(name=model)
        try:
            answer = self._transport.call(f"{_SERVICE}/ModelReady", request, "inference.ModelReadyResponse", timeout)
        except ClientError as error:
            if error.code == "NOT_FOUND":
                return False
            raise
        return bool(answer.ready)

    def close(self) -> None:
        self._transport.close()
