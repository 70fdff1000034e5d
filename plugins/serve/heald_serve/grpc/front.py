"""The gRPC server of a server's models: its services and its settings, from the options."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from ..access_log import AccessRecord
from ..http.guards import Guards
from ..metrics import Metrics
from ..models.model_lists import ModelLists
from ..models.model_manager import ModelManager
from ..predict import Predictor
from ..request_counts import RequestCounts
from ..settings import Settings
from ..v2.inference_service import InferenceService
from .call_handlers import NO_DIRECT_METHODS, CallHandlers, Method
from .call_log import LoggedHandlers
from .grpc_server import GrpcServer, GrpcSettings
from .health import Health
from .model_service import ModelService
from .prediction_service import PredictionService
from .reflection import Reflection
from .services import (
    HEALTH_SERVICE,
    INFERENCE_SERVICE,
    MODEL_SERVICE,
    OLD_REFLECTION_SERVICE,
    PREDICTION_SERVICE,
    REFLECTION_SERVICE,
)


def make_grpc_server(
    settings: Settings, manager: ModelManager, predictor: Predictor, metrics: Metrics, conversions: Executor,
    memory: Any, lists: ModelLists, counts: RequestCounts, inference: InferenceService | None = None,
    on_answer: Callable[[AccessRecord], None] | None = None,
) -> GrpcServer:
    """A server that is not started. Raises InvalidArgument for arguments that are none.

    `on_answer` gets a record of each call.
    """
    options, ending = settings.options, threading.Event()
    prediction = PredictionService(
        manager, predictor, as_content=options["enable_serialization_as_tensor_content"],
        checks_methods=options["enable_signature_method_name_check"], metrics=metrics, counts=counts)
    services: dict[str, Mapping[str, Method]] = {
        PREDICTION_SERVICE: prediction.methods(),
        MODEL_SERVICE: ModelService(manager, metrics, lists).methods(),
    }
    if inference is not None:
        services[INFERENCE_SERVICE] = inference.methods()
    if options["enable_grpc_healthcheck_service"]:
        services[HEALTH_SERVICE] = Health(manager.is_ready, ending).methods()
    reflection = Reflection([*services, REFLECTION_SERVICE, OLD_REFLECTION_SERVICE]).methods()
    services |= {REFLECTION_SERVICE: reflection, OLD_REFLECTION_SERVICE: reflection}
    handlers = CallHandlers(Guards(None, settings.token), memory, conversions, predictor,
                            options["request_read_timeout_in_ms"] / 1000)
    direct = {PREDICTION_SERVICE: prediction.direct_methods()}
    return GrpcServer([LoggedHandlers(handlers.of_service(name, methods, direct.get(name, NO_DIRECT_METHODS)),
                                      on_answer) for name, methods in services.items()], GrpcSettings(
        settings.host, settings.grpc_port, options["grpc_socket_path"], options["grpc_channel_arguments"], settings.tls,
        options["max_connections"], options["drain_timeout_in_ms"] / 1000, memory.limit,
        settings.workers > 1, options["max_connections"], options["request_read_timeout_in_ms"] / 1000), ending)
