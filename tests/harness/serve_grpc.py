"""A caller of the server's gRPC services, with the server's own messages; tests need no client of another project."""

from __future__ import annotations

from typing import Any

import grpc
import numpy as np
from heald_serve.grpc.services import SERVICES
from heald_serve.grpc.tensors import read_tensors, write_tensor
from heald_serve.messages import message_class

PREDICTION, MODELS = "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"


class Caller:
    """A channel to a server on this machine."""

    def __init__(self, target: int | str, **options: Any) -> None:
        address = target if isinstance(target, str) else f"127.0.0.1:{target}"
        arguments = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(address, options=arguments, **options)

    def stub(self, service: str, method: str) -> Any:
        signature = SERVICES[service][method]
        kind = f"{'stream' if signature.takes_stream else 'unary'}_{'stream' if signature.gives_stream else 'unary'}"
        return getattr(self.channel, kind)(
            f"/{service}/{method}", lambda message: message.SerializeToString(),
            message_class(signature.response).FromString)

    def call(self, service: str, method: str, request: Any, **options: Any) -> Any:
        return self.stub(service, method)(request, timeout=options.pop("timeout", 30), **options)

    def predict(self, model: str, inputs: Any, output_filter: Any = (), signature: str = "", **options: Any) -> Any:
        request = message_class("PredictRequest")(output_filter=output_filter)
        request.model_spec.name, request.model_spec.signature_name = model, signature
        for name, array in inputs.items():
            write_tensor(request.inputs[name], np.asarray(array))
        return self.call(PREDICTION, "Predict", request, **options)

    def close(self) -> None:
        self.channel.close()


def arrays_of(answer: Any) -> dict[str, Any]:
    return read_tensors(answer.outputs)


def fault(function: Any, *arguments: Any, **options: Any) -> tuple[str, str]:
    """The code and the text of a call that fails."""
    try:
        function(*arguments, **options)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    raise AssertionError("the call succeeded")
