"""Load and unload: a model of the server's list leaves it, and returns, in every worker.

Both wait for the managers' threads, so fronts call them in threads of their own, one call after the other.
"""

from __future__ import annotations

import threading

from heald.errors import FailedPrecondition, HealdError, NotFound, PermissionDenied

from ..models.model_config import ModelConfig
from ..models.model_lists import ModelLists, is_available
from ..models.model_manager import ModelManager

SLICE_SECONDS = 0.02  # of waiting for a model


class ModelControl:
    """`is_allowed`: False refuses every call. Any thread may call."""

    def __init__(self, manager: ModelManager, lists: ModelLists, *, is_allowed: bool) -> None:
        self._manager, self._lists, self._is_allowed = manager, lists, is_allowed
        self._lock = threading.Lock()
        self._pause = threading.Event()

    def load(self, name: str) -> None:
        """Raises NotFound for a model that was never listed, FailedPrecondition for one that does not load."""
        with self._lock:
            config = self._config_to_control(name)
            self._lists.replace_models([*self._others(name), config])
            while not self._lists.is_settled() and not self._errors(name):
                self._pause.wait(SLICE_SECONDS)
            if not all(is_available(rows) for rows in self._lists.statuses(name)):
                reason = next(map(str, self._errors(name)), "it has no version")
                raise FailedPrecondition(f"failed to load '{name}': {reason}")

    def unload(self, name: str) -> None:
        """The versions end after their running requests. Raises NotFound for a model that was never listed."""
        with self._lock:
            self._config_to_control(name)
            self._lists.replace_models(self._others(name))
            while any(is_available(rows) for rows in self._lists.statuses(name)):
                self._pause.wait(SLICE_SECONDS)

    def _config_to_control(self, name: str) -> ModelConfig:
        if not self._is_allowed:
            raise PermissionDenied("models are loaded and unloaded by the server's options alone",
                                   hint="--allow_model_control")
        config = self._lists.known_config(name)
        if config is None:
            raise NotFound(f"the server's list has no model '{name}'")
        return config

    def _others(self, name: str) -> list[ModelConfig]:
        return [config for config in self._manager.configs() if config.name != name]

    def _errors(self, name: str) -> list[HealdError]:
        """The errors of the model's versions, in all workers."""
        return [row.error for rows in self._lists.statuses(name) for row in rows if row.error is not None]
