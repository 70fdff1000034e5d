"""The program of a worker: it gets its settings from the parent, loads the models, and serves.

    python -m heald_serve.workers.worker CHANNEL INDEX FILE...    numbers of inherited files

The parent alone acts on SIGINT, which a terminal sends to all. SIGTERM drains this worker, as does the end of the
parent.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from heald.errors import HealdError, typed_error

from ..access_log import report_line
from ..http.listener import HttpListener
from ..models.model_config import ModelConfig
from ..models.model_lists import ModelLists, OwnModels
from ..models.model_manager import VersionStatus
from ..server import ModelServer
from ..settings import Settings
from .channel import Channel
from .shared_cells import SharedCells


class SharedModels:
    """The models of all workers: questions go to the parent, and come to this worker, too."""

    def __init__(self, channel: Channel, own_models: OwnModels) -> None:
        self._channel, self._own_models = channel, own_models

    def known_config(self, name: str) -> ModelConfig | None:
        return self._own_models.known_config(name)

    def replace_models(self, configs: Sequence[ModelConfig]) -> None:
        self._channel.ask("ask_workers", "replace_models", [*configs])

    def is_settled(self) -> bool:
        return all(self._channel.ask("ask_workers", "is_settled"))

    def statuses(self, name: str) -> Sequence[Sequence[VersionStatus]]:
        statuses: list[list[VersionStatus]] = self._channel.ask("ask_workers", "own_statuses", name)
        return statuses


class Start(NamedTuple):
    """`known_models`: the models that are, or were, in the list."""

    settings: Settings
    known_models: Sequence[ModelConfig]
    is_restart: bool


class Worker:
    def __init__(self, connection: Connection, index: int, files: Sequence[int]) -> None:
        self._index = index
        self._shared = SharedCells(files, index)
        self._methods: dict[str, Any] = {"start": self._receive_start, "end": self.end}
        self._channel = Channel(connection, self._methods, ThreadPoolExecutor(1, "heald-serve-questions"))
        self._start: Future[Start] = Future()
        self._server: ModelServer | None = None
        self._listener: HttpListener | None = None
        self._is_ending = False
        self._lock = threading.Lock()

    def run(self) -> int:
        threading.Thread(target=self._serve_channel, name="heald-serve-channel", daemon=True).start()
        start = self._start.result()
        try:
            self._serve(start)
        except Exception as error:  # noqa: BLE001 - the parent tells it
            self._channel.tell("failed", error if isinstance(error, HealdError) else typed_error(error))
            return 1
        return 0

    def _receive_start(self, *parts: Any) -> None:
        self._start.set_result(Start(*parts))

    def _serve_channel(self) -> None:
        try:
            self._channel.serve(self._publish_gauges)
        finally:
            self.end()

    def _publish_gauges(self) -> None:
        if self._server is not None:
            self._server.metrics.publish_gauges()

    def _serve(self, start: Start) -> None:
        self._server = server = ModelServer(start.settings, self._report, shared=self._shared, lists_of=self._lists_of)
        try:
            server.load(is_restart=start.is_restart)
            server.bind()
            server.run(self._tell_ready)
        finally:
            server.close()

    def _lists_of(self, models: OwnModels) -> ModelLists:
        models.remember(self._start.result().known_models)
        self._methods |= {"check": models.check, "replace_models": models.replace_models,
                          "is_settled": models.is_settled, "own_statuses": models.own_statuses}
        return SharedModels(self._channel, models)

    def _report(self, text: str) -> None:
        report_line(f"worker {self._index}: {text}")

    def _tell_ready(self, listener: HttpListener) -> None:
        listener.signals = (signal.SIGTERM,)
        begin_end = listener.on_end

        def on_end() -> None:
            self._channel.tell("ending")
            if begin_end is not None:
                begin_end()

        listener.on_end = on_end
        with self._lock:
            self._listener = listener
            listener.should_exit = self._is_ending
        self._channel.tell("ready")

    def end(self) -> None:
        """Drain and end; a worker that does not serve yet ends at once."""
        with self._lock:
            self._is_ending = True
            if self._listener is None:
                os._exit(0)
            self._listener.should_exit = True


def main(words: Sequence[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel, index, *files = map(int, words)
    return Worker(Connection(channel), index, files).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
