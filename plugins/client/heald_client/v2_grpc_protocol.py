"""The Open Inference Protocol over gRPC, with raw contents in both directions."""

from __future__ import annotations

from .calls import Arrays, DescribeCall, PredictCall, SignatureSpec, TensorSpec
from .elements import datatype_of, from_raw, numpy_type, static_shape, to_array, to_raw
from .errors import ClientError
from .grpc_transport import GrpcTransport
from .messages import message_class
from .v2_http_protocol import check_default_signature

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

    def describe(self, call: DescribeCall) -> SignatureSpec:
        check_default_signature(call)
        request = message_class("inference.ModelMetadataRequest")(
            name=call.model, version="" if call.version is None else str(call.version))
        answer = self._transport.call(f"{_SERVICE}/ModelMetadata", request, "inference.ModelMetadataResponse",
                                      call.timeout)
        return SignatureSpec(*({row.name: TensorSpec(numpy_type(row.datatype), static_shape(row.shape)) for row in rows}
                               for rows in (answer.inputs, answer.outputs)))

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
