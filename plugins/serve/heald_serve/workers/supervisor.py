"""The parent of the workers. It loads no model and answers no request.

    starting    a worker that fails ends the server with its error
    serving     a worker that dies starts again; one that dies at once, over and over, ends the server
    ending      the workers drain; a second signal kills them

The main thread waits for signals and for the end. Each worker has a thread, and questions of workers one for all.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import Any

from heald.errors import HealdError, Internal

from ..http.ports import check_sharing, reserve
from ..metrics import Metrics
from ..models.model_config import ModelConfig
from ..settings import Settings
from .channel import ChannelEnded, answer_of
from .pulse import BEATS
from .restart_policy import FIRST_WAIT_SECONDS, RestartPolicy
from .shared_cells import WORKERS_GAUGE, SharedCells, make_file
from .worker_process import PROGRAM, WorkerProcess

KILL_SECONDS = 5.0  # beyond the time that running requests have
Report = Callable[[str], None]


class Supervisor:
    """`program`: the words of a worker's command. `first_wait`: as of RestartPolicy."""

    def __init__(
        self, settings: Settings, report: Report, *, program: Sequence[str] = PROGRAM,
        first_wait: float = FIRST_WAIT_SECONDS,
    ) -> None:
        """Bind the ports. Raises the errors of an address that cannot be had, and Unimplemented."""
        check_sharing()
        self._report = report
        self.ending = threading.Event()
        self._is_serving = False
        self._error: HealdError | None = None
        self._lock = threading.RLock()
        self._wake_reader, self._wake_writer = os.pipe()
        self._settings, self._reserved = _reserve_ports(settings)
        self._known = {config.name: config for config in settings.models}
        self._files = [make_file() for _ in range(settings.workers + 1)]  # the last one is the parent's
        self._shared = SharedCells(self._files, settings.workers)
        metrics = Metrics(self._shared)
        self._restarts, self._hangs = metrics.worker_restarts, metrics.worker_hangs
        self._questions = ThreadPoolExecutor(1, "heald-serve-questions")
        self.workers = [WorkerProcess(index, self, self._files, self._questions, RestartPolicy(first_wait), program)
                        for index in range(settings.workers)]

    def settings(self) -> Settings:
        with self._lock:
            return self._settings

    def known_models(self) -> Sequence[ModelConfig]:
        with self._lock:
            return [*self._known.values()]

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM. Raises the error that ended the server."""
        with self._signals():
            for worker in self.workers:
                worker.start()
            os.read(self._wake_reader, 1)
            self._end()
        if self._error is not None:
            raise self._error

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def wake(_number: int, _frame: Any) -> None:
            os.write(self._wake_writer, b"s")

        handlers = {number: signal.signal(number, wake) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Have `run` end, as a signal does. Any thread may call."""
        os.write(self._wake_writer, b"s")

    def _end(self) -> None:
        with self._lock:
            self.ending.set()
        for worker in self.workers:
            worker.end()
        deadline = monotonic() + self._settings.options["drain_timeout_in_ms"] / 1000 + KILL_SECONDS
        while not all(worker.wait(0) for worker in self.workers):
            is_second, _, _ = select.select([self._wake_reader], [], [], 0.05)
            if is_second or monotonic() >= deadline:
                for worker in self.workers:
                    worker.kill()
                    worker.wait(KILL_SECONDS)
                return

    def close(self) -> None:
        for holder in self._reserved:
            holder.close()
        self._questions.shutdown(cancel_futures=True)
        for number in self._files:
            os.close(number)
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def _fail(self, error: HealdError) -> None:
        with self._lock:
            if self._error is None and not self.ending.is_set():
                self._error = error
                self.ending.set()
                self.stop()

    # The methods of a worker's thread.

    def on_ready(self, worker: WorkerProcess) -> None:
        with self._lock:
            worker.is_ready = True
            if worker.models is not self._settings.models and worker.channel is not None:
                worker.models = self._settings.models
                worker.channel.begin("replace_models", [*worker.models])
            self._tell_count()
            if self._is_serving or not all(one.is_ready for one in self.workers):
                return
            self._is_serving = True
        self._tell_serving()

    def _tell_count(self) -> None:
        self._shared.set_gauge(WORKERS_GAUGE, sum(worker.is_ready for worker in self.workers))

    def _tell_serving(self) -> None:
        names, host = ", ".join(config.name for config in self._settings.models), self._settings.host
        count = f"by {len(self.workers)} workers"
        if self._settings.rest_port is not None:
            scheme = "http" if self._settings.tls is None else "https"
            address = f"{scheme}://{host}:{self._settings.rest_port}"
            self._report(f"serving {names} at {address}/v1/models {count}")
            if self._settings.options["page"]:
                self._report(f"a page to try them: {address}/")
        if self._settings.grpc_port is not None:
            self._report(f"serving {names} by gRPC at {host}:{self._settings.grpc_port} {count}")

    def on_failure(self, worker: WorkerProcess, error: HealdError) -> None:
        if self._is_serving:
            self._report(f"worker {worker.index} failed: {error}")
        else:
            self._fail(error)

    def on_death(self, worker: WorkerProcess, status: int) -> None:
        with self._lock:
            self._shared.clear_gauges(worker.index)
            self._tell_count()
            self._restarts.add()
        self._report(f"worker {worker.index} has ended, {describe_status(status)}; it starts again")

    def beats_of(self, worker: WorkerProcess) -> Mapping[Any, float]:
        return self._shared.of_process(worker.index, BEATS)

    def on_silence(self, worker: WorkerProcess, seconds: float) -> None:
        with self._lock:
            self._hangs.add()
        self._report(f"worker {worker.index} hangs: an event loop of it is silent for {seconds:.1f} s; it is killed")

    def on_last_death(self, worker: WorkerProcess, status: int) -> None:
        self._fail(Internal(f"worker {worker.index} died at once, over and over: {describe_status(status)}",
                            hint="the lines above have the reason; without --workers the server runs in one process"))

    def ask_workers(self, method: str, *arguments: Any) -> list[Any]:
        """The answers of all workers that serve. Raises the first error; a new list of models then changes nothing."""
        if method == "replace_models":
            self._ask_all("check", *arguments)
            self._keep_models(*arguments)
        return self._ask_all(method, *arguments)

    def _keep_models(self, configs: Sequence[ModelConfig]) -> None:
        with self._lock:
            self._settings = self._settings._replace(models=configs)
            self._known |= {config.name: config for config in configs}
            for worker in self.workers:
                if worker.is_ready:
                    worker.models = configs

    def _ask_all(self, method: str, *arguments: Any) -> list[Any]:
        with self._lock:
            channels = [worker.channel for worker in self.workers if worker.is_ready and worker.channel is not None]
        futures = [channel.begin(method, *arguments) for channel in channels]
        answers = []
        for future in futures:
            try:
                answers.append(answer_of(future))
            except ChannelEnded:
                continue  # it starts again, with the last list of models
        return answers


def _reserve_ports(settings: Settings) -> tuple[Settings, list[Any]]:
    """The settings with the ports that the system gave, and the sockets that hold them."""
    reserved = []
    for field in ("rest_port", "grpc_port"):
        port = getattr(settings, field)
        if port is not None:
            holder = reserve(settings.host, port)
            reserved.append(holder)
            settings = settings._replace(**{field: holder.getsockname()[1]})
    return settings, reserved


def describe_status(status: int) -> str:
    """The exit status of a process as a text."""
    if status >= 0:
        return f"with the status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by the signal {-status}"
