"""The thread that polls for versions and acts, on time. It ends with the server.

A base path or a configuration file that cannot be read is reported, and tried again at the next poll.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic

from heald.errors import HealdError, typed_error

from .model_config import ModelConfig
from .model_manager import ModelManager, Report

LONGEST_WAIT_SECONDS = 0.1  # between two rounds, as there


class ManagerThread:
    """`poll_seconds`: between two looks for versions; 0 looks once, less than 0 never.

    `read_configs`: reads the configuration file again every `config_seconds`; 0 never does.
    """

    def __init__(
        self, manager: ModelManager, poll_seconds: float, *, config_seconds: float = 0,
        read_configs: Callable[[], Sequence[ModelConfig]] | None = None, report: Report = lambda _: None,
    ) -> None:
        self._manager, self._poll_seconds, self._report = manager, poll_seconds, report
        self._config_seconds, self._read_configs = config_seconds, read_configs
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heald-serve-models", daemon=True)
        self._last_texts: dict[str, str] = {}  # of faults, by the part of the round

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        next_poll = monotonic() + self._poll_seconds if self._poll_seconds > 0 else float("inf")
        next_config = monotonic() + self._config_seconds if self._config_seconds > 0 else float("inf")
        while not self._end.wait(self._seconds_to_wait(min(next_poll, next_config))):
            now = monotonic()
            if now >= next_config:
                next_config = now + self._config_seconds
                self._attempt(self._reload)
            if now >= next_poll:
                next_poll = now + self._poll_seconds
                self._attempt(self._manager.poll)
            self._attempt(self._manager.settle)

    def _seconds_to_wait(self, next_time: float) -> float:
        attempt = self._manager.seconds_to_next_attempt()
        until = min(next_time - monotonic(), float("inf") if attempt is None else attempt)
        return min(max(until, 0.0), LONGEST_WAIT_SECONDS)

    def _reload(self) -> None:
        assert self._read_configs is not None
        self._manager.replace_models(self._read_configs())

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do a part of the round; a fault that stays is reported once."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the thread goes on, whatever a file or a plugin does
            text = str(error if isinstance(error, HealdError) else typed_error(error))
            if self._last_texts.get(action.__name__) != text:
                self._report(text)
            self._last_texts[action.__name__] = text
        else:
            self._last_texts.pop(action.__name__, None)
