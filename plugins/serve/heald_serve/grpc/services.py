"""The services by full name, with the messages of their methods, and the descriptors that reflection shows.

The pool of messages has no services; they are added to it here, each package in a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from ..messages import message_class

SERVING, HEALTH, REFLECTION = "tensorflow.serving", "grpc.health.v1", "grpc.reflection.v1"
PREDICTION_SERVICE, MODEL_SERVICE = f"{SERVING}.PredictionService", f"{SERVING}.ModelService"
INFERENCE = "inference"
INFERENCE_SERVICE = f"{INFERENCE}.GRPCInferenceService"
HEALTH_SERVICE, REFLECTION_SERVICE = f"{HEALTH}.Health", f"{REFLECTION}.ServerReflection"
# Older clients ask by the older name; the bytes of its messages are the same.
OLD_REFLECTION_SERVICE = "grpc.reflection.v1alpha.ServerReflection"


class Signature(NamedTuple):
    """The full names of a method's messages. `takes_stream`, `gives_stream`: several of them instead of one."""

    request: str
    response: str
    takes_stream: bool = False
    gives_stream: bool = False


def _pair(package: str, request: str, response: str) -> Signature:
    return Signature(f"{package}.{request}", f"{package}.{response}")


_REFLECTION = Signature(f"{REFLECTION}.ServerReflectionRequest", f"{REFLECTION}.ServerReflectionResponse",
                        takes_stream=True, gives_stream=True)
_CHECK = _pair(HEALTH, "HealthCheckRequest", "HealthCheckResponse")
SERVICES: Mapping[str, Mapping[str, Signature]] = {
    PREDICTION_SERVICE: {
        "Classify": _pair(SERVING, "ClassificationRequest", "ClassificationResponse"),
        "Regress": _pair(SERVING, "RegressionRequest", "RegressionResponse"),
        "Predict": _pair(SERVING, "PredictRequest", "PredictResponse"),
        "MultiInference": _pair(SERVING, "MultiInferenceRequest", "MultiInferenceResponse"),
        "GetModelMetadata": _pair(SERVING, "GetModelMetadataRequest", "GetModelMetadataResponse"),
    },
    MODEL_SERVICE: {
        "GetModelStatus": _pair(SERVING, "GetModelStatusRequest", "GetModelStatusResponse"),
        "HandleReloadConfigRequest": _pair(SERVING, "ReloadConfigRequest", "ReloadConfigResponse"),
    },
    INFERENCE_SERVICE: {
        **{method: _pair(INFERENCE, f"{method}Request", f"{method}Response") for method in (
            "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer", "ModelConfig",
            "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload")},
        "ModelStreamInfer": Signature(f"{INFERENCE}.ModelInferRequest", f"{INFERENCE}.ModelStreamInferResponse",
                                      takes_stream=True, gives_stream=True),
    },
    HEALTH_SERVICE: {"Check": _CHECK, "Watch": _CHECK._replace(gives_stream=True)},
    REFLECTION_SERVICE: {"ServerReflectionInfo": _REFLECTION},
    OLD_REFLECTION_SERVICE: {"ServerReflectionInfo": _REFLECTION},
}


@cache
def descriptor_pool() -> Any:
    """The pool of the messages and of the services."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    pool = message_class(_CHECK.request).DESCRIPTOR.file.pool
    for full_name, methods in SERVICES.items():
        package, _, name = full_name.rpartition(".")
        file = FileDescriptorProto(name=f"heald/{full_name}.proto", package=package, syntax="proto3")
        service = file.service.add(name=name)
        for method, signature in methods.items():
            service.method.add(
                name=method, input_type=f".{signature.request}", output_type=f".{signature.response}",
                client_streaming=signature.takes_stream, server_streaming=signature.gives_stream)
            for message in (signature.request, signature.response):
                dependency = pool.FindMessageTypeByName(message).file.name
                if dependency not in file.dependency:
                    file.dependency.append(dependency)
        pool.Add(file)
    return pool
