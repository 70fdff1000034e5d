"""The server: models, predictor, application and sockets, from the start to the graceful end.

The order of a start: the sockets are bound; the first versions are loaded; then requests are taken. At the end no new
connection is taken. Running requests of HTTP and gRPC have `drain_timeout_in_ms`, side by side. Then threads and models
end.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from heald.errors import FailedPrecondition, HealdError, InvalidArgument

from .access_log import access_writer
from .batching import Batchers
from .http.application import PROBES, Application
from .http.direct import DirectAnswers
from .http.guards import Guards
from .http.listener import HttpListener, make_listener
from .http.messages import Request, Response, Route, error_body
from .http.ports import listen
from .http.protocol import ConnectionLimits
from .metrics import Cells, Gauge, Metrics
from .models.load_version import load_version
from .models.loaded_runtime import memory_gauges, served_runtime
from .models.manager_thread import ManagerThread
from .models.model_config import read_model_configs
from .models.model_lists import ModelLists, OwnModels
from .models.model_manager import Loader, ModelManager, Report
from .page.page_api import FOLDER, PageApi, open_paths
from .predict import Predictor
from .request_counts import RequestCounts
from .rest.rest_api import RestApi
from .settings import Settings
from .v2.inference import Inference
from .v2.inference_api import InferenceApi
from .workers.pulse import beat_seconds, make_beat_function
from .workers.shared_cells import WORKERS_GAUGE

if TYPE_CHECKING:
    from .grpc.grpc_server import GrpcServer

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SLICE_SECONDS = 0.05  # of waiting for the first versions


class ModelServer:
    """One server. `start` loads the models and serves in a thread; `run` serves in the caller until a signal."""

    def __init__(
        self, settings: Settings, report: Report = lambda _: None, *, loader: Loader | None = None,
        shared: Cells | None = None, lists_of: Callable[[OwnModels], ModelLists] = lambda own: own,
    ) -> None:
        """Bind the sockets. `loader` stands for `load_version`. Raises the errors of an address that cannot be had.

        `shared`, `lists_of`: the counts of all workers, and their lists of models. One of several workers binds its
        sockets by `bind`, when it can serve.
        """
        self.settings, self._report, self._shared = settings, report, shared
        options = settings.options
        if settings.rest_port is None and settings.grpc_port is None and not options["grpc_socket_path"]:
            raise InvalidArgument("nothing is served: gRPC and the REST interface are off",
                                  hint="--port=8500, --rest_api_port=8501")
        self.sockets: list[socket.socket] = []
        if settings.workers == 1:
            self.bind()
        self._loads = (ThreadPoolExecutor(options["num_load_threads"], "heald-serve-load")
                       if options["num_load_threads"] else None)
        self.metrics = Metrics(shared)
        self._runtime = served_runtime(settings.run_threads, settings.workers)
        load = settings.load._replace(runtime=self._runtime)
        self.manager = ModelManager(loader or partial(load_version, settings=load, metrics=self.metrics),
                                    settings.manager, report=report, loads=self._loads)
        self.batchers = Batchers(settings.batching, self.metrics, per_model=options[
            "enable_per_model_batching_parameters"])
        self.predictor = Predictor(options["rest_api_num_threads"], options["max_queued_requests"],
                                   queue_seconds=(options["max_queue_time_in_ms"] or inf) / 1000,
                                   batching_of=self.batchers.of if settings.batching else None, on_run=self._record_run)
        self.metrics.gauges += [Gauge("heald_serve_pending_requests", lambda: self.predictor.pending),
                                *memory_gauges(self._runtime.host.memory)]
        if shared is not None:
            self.metrics.gauges.append(Gauge(WORKERS_GAUGE, lambda: 0))  # the parent has the number
        self._conversions = ThreadPoolExecutor(2, "heald-serve-json")
        self._thread = _manager_thread(self.manager, settings, report)
        self.listener: HttpListener | None = None
        self._serving: threading.Thread | None = None
        self._lists = lists_of(OwnModels(self.manager))
        self.inference = Inference(self.manager, self.predictor, self._lists,
                                   may_control=options["allow_model_control"], shared=shared)
        self._counts = RequestCounts(self.metrics, self.manager.has)
        self._on_answer = access_writer(options["access_log"])
        self._rest_api = RestApi(self.manager, self.predictor, self._conversions, self._counts,
                                 seconds=settings.rest_seconds,
                                 checks_methods=options["enable_signature_method_name_check"])
        self._inference_api = InferenceApi(self.inference, self._conversions, self._counts,
                                           seconds=settings.rest_seconds)
        self.grpc_server = self._make_grpc_server()

    @property
    def port(self) -> int:
        """The port of the REST interface."""
        port: int = self.sockets[0].getsockname()[1]
        return port

    def bind(self) -> None:
        """Listen for HTTP: connections wait until the server runs."""
        if self.settings.rest_port is not None:
            self.sockets = [listen(self.settings.host, self.settings.rest_port, is_shared=self.settings.workers > 1)]

    def _record_run(self, model: str, seconds: float) -> None:
        self.metrics.runtime_latency.add(model, "Predict", "TF1", amount=1e6 * seconds)

    def load(self, *, is_restart: bool = False) -> None:
        """Load the first versions. Raises FailedPrecondition when a model has none that serves.

        A worker that starts again waits for the versions instead; the other workers serve meanwhile.
        """
        self.manager.configure(self.settings.models)
        if is_restart:
            self._wait_for_models()
            return
        self.manager.poll()
        self._settle()
        failed = self.manager.unavailable()
        if failed:
            rows = ", ".join(f"{servable!r} due to error: {servable.error}" for servable in failed)
            raise FailedPrecondition(f"{len(failed)} servable(s) did not become available: {{{rows}}}")
        self._thread.start()

    def _wait_for_models(self) -> None:
        try:
            self.manager.poll()
        except HealdError as error:
            if self.settings.options["file_system_poll_wait_seconds"] <= 0:
                raise
            self._report(str(error))
        self._thread.start()
        pause = threading.Event()
        while not self.manager.is_ready():
            pause.wait(SLICE_SECONDS)

    def _settle(self) -> None:
        pause = threading.Event()
        while not self.manager.is_settled():
            if not self.manager.do_next_action():
                pause.wait(SLICE_SECONDS)

    def routes(self) -> Mapping[str, Route]:
        async def alive(_: Request) -> Response:
            return Response(200, b"ok\n", "text/plain")

        async def ready(_: Request) -> Response:
            is_ready = self.manager.is_ready()
            return Response(200 if is_ready else 503, b"ok\n" if is_ready else b"a model has no version that serves\n",
                            "text/plain")

        async def plain_metrics(_: Request) -> Response:
            return Response(200, self.metrics.plain_text().encode(), METRICS_TYPE)

        async def serving_metrics(request: Request) -> Response:
            if "?" in request.target:
                return Response(400, error_body("Malformed request: the metrics take no query"))
            return Response(200, self.metrics.serving_text().encode(), "text/plain")

        routes: dict[str, Route] = {"/v1/": self._rest_api, "/v2": self._inference_api, "/v2/": self._inference_api,
                                    "/livez": alive, "/readyz": ready, "/metrics": plain_metrics}
        if self.settings.options["page"]:
            page = PageApi(self.manager, self._runtime.host, self.settings.options, self._conversions, self.metrics,
                           self._lists, self.settings.start or monotonic())
            routes |= {"/": page, FOLDER: page}
        if self.settings.metrics_path is not None:
            routes[self.settings.metrics_path] = serving_metrics
        return routes

    def _make_listener(self) -> HttpListener:
        return make_http(self.application(), self.settings, self.direct_answers())

    def direct_answers(self) -> DirectAnswers | None:
        """The direct way, where no option asks for more of each answer."""
        options = self.settings.options
        if options["access_log"] != "none" or options["rest_api_enable_cors_support"]:
            return None
        guards = Guards(self.settings.allowed_hosts, self.settings.token)
        return DirectAnswers({b"/v1": self._rest_api.answer_directly, b"/v2": self._inference_api.answer_directly},
                             guards, self.predictor.most_pending, self.predictor.is_full, self._counts.add_refusal)

    def application(self) -> Application:
        options = self.settings.options
        return Application(
            self.routes(), Guards(self.settings.allowed_hosts, self.settings.token), memory=self._runtime.host.memory,
            most_body_bytes=options["max_body_bytes"], allows_origins=options["rest_api_enable_cors_support"],
            on_answer=self._on_answer,
            open_paths=(open_paths() if options["page"] else frozenset()) | PROBES)

    def _make_grpc_server(self) -> GrpcServer | None:
        """The gRPC server, or None where no port and no socket is asked for."""
        settings, options = self.settings, self.settings.options
        if settings.grpc_port is None and not options["grpc_socket_path"]:
            return None
        from .grpc.front import make_grpc_server
        from .v2.inference_service import InferenceService

        return make_grpc_server(settings, self.manager, self.predictor, self.metrics, self._conversions,
                                self._runtime.host.memory, self._lists, self._counts,
                                InferenceService(self.inference, self._counts), self._on_answer)

    def run(self, on_listening: Callable[[HttpListener], object] = lambda _: None) -> None:
        """Serve until SIGINT or SIGTERM, then drain. `on_listening` is called when clients may connect."""
        try:
            listener = self._start_fronts()
            on_listening(listener)
            listener.run(sockets=self.sockets)
        finally:
            self._end()

    def start(self) -> None:
        """Load, and serve in a thread of its own."""
        self.load()
        listener = self._start_fronts()
        self._serving = threading.Thread(target=listener.run, args=(self.sockets,), name="heald-serve-http")
        self._serving.start()

    def _start_fronts(self) -> HttpListener:
        """Start gRPC, and return the listener for HTTP. Both begin to drain at one time."""
        self.listener = self._make_listener()
        self.listener.on_start = self._beats("http")
        if self.grpc_server is not None:
            self.grpc_server.on_start = self._beats("grpc")
            self.listener.on_end = self.grpc_server.begin_end
        self._start_grpc()
        return self.listener

    def _beats(self, loop_name: str) -> Callable[[], None]:
        """A function that has the running loop show the parent of several workers that it turns."""
        if self._shared is None or not self.settings.silence_seconds:
            return lambda: None
        return make_beat_function(self._shared, loop_name, beat_seconds(self.settings.silence_seconds))

    def _start_grpc(self) -> None:
        if self.grpc_server is not None:
            self.grpc_server.start()
            place = self.settings.options["grpc_socket_path"]
            if self.grpc_server.port is not None:
                place = f"{self.settings.host}:{self.grpc_server.port}"
            if self.settings.workers == 1:  # the parent of workers tells it once
                self._report(f"serving {', '.join(self.manager.names())} by gRPC at {place}")

    def close(self) -> None:
        """Drain and end."""
        if self._serving is not None and self.listener is not None:
            self.listener.should_exit = True
            self._serving.join()
        for listener in self.sockets:
            listener.close()
        self._end()

    def _end(self) -> None:
        if self.grpc_server is not None:
            self.grpc_server.close()
        self._thread.close()
        self.manager.end()
        self.batchers.close()
        self.predictor.close()
        self._conversions.shutdown()
        if self._loads is not None:
            self._loads.shutdown(cancel_futures=True)


def _manager_thread(manager: ModelManager, settings: Settings, report: Report) -> ManagerThread:
    options = settings.options
    file = options["model_config_file"]
    read: Callable[[], Any] | None = partial(read_model_configs, Path(file)) if file else None
    return ManagerThread(manager, options["file_system_poll_wait_seconds"], report=report, read_configs=read,
                         config_seconds=options["model_config_file_poll_wait_seconds"] if file else 0)


def make_http(
    application: Application, settings: Settings, answer_directly: DirectAnswers | None = None
) -> HttpListener:
    """The listener of an application, with the limits of these settings."""
    options = settings.options
    context = None
    if settings.tls is not None:
        from .tls import server_context

        context = server_context(settings.tls)
    limits = ConnectionLimits(options["max_connections"], options["request_read_timeout_in_ms"] / 1000)
    return make_listener(application, limits, drain_seconds=max(1, -(-options["drain_timeout_in_ms"] // 1000)),
                         context=context, answer_directly=answer_directly)
