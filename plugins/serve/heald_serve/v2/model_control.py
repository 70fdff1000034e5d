"""Load and unload: a model of the server's list leaves it, and returns.

Both wait for the manager's thread, so fronts call them in threads of their own, one call after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from heald.errors import FailedPrecondition, NotFound, PermissionDenied

from ..models.model_config import ModelConfig
from ..models.model_manager import ModelManager, VersionStatus
from ..models.servable import AVAILABLE

SLICE_SECONDS = 0.02  # of waiting for a model


class ModelControl:
    """`is_allowed`: False refuses every call. Any thread may call."""

    def __init__(self, manager: ModelManager, *, is_allowed: bool) -> None:
        self._manager, self._is_allowed = manager, is_allowed
        self._listed: dict[str, ModelConfig] = {}
        self._lock = threading.Lock()
        self._pause = threading.Event()

    def load(self, name: str) -> None:
        """Raises NotFound for a model that was never listed, FailedPrecondition for one that does not load."""
        with self._lock:
            config = self._known(name)
            self._replace([*self._others(name), config])
            while not self._manager.is_settled() and not any(row.error for row in self._rows(name)):
                self._pause.wait(SLICE_SECONDS)
            rows = self._rows(name)
            if not any(row.state == AVAILABLE for row in rows):
                error = next((row.error for row in rows if row.error is not None), None)
                raise FailedPrecondition(f"failed to load '{name}': {error or 'it has no version'}")

    def unload(self, name: str) -> None:
        """The versions end after their running requests. Raises NotFound for a model that was never listed."""
        with self._lock:
            self._known(name)
            self._replace(self._others(name))
            while any(row.state == AVAILABLE for row in self._rows(name)):
                self._pause.wait(SLICE_SECONDS)

    def _known(self, name: str) -> ModelConfig:
        if not self._is_allowed:
            raise PermissionDenied("models are loaded and unloaded by the server's options alone",
                                   hint="--allow_model_control")
        self._listed |= {config.name: config for config in self._manager.configs()}
        if name not in self._listed:
            raise NotFound(f"the server's list has no model '{name}'")
        return self._listed[name]

    def _others(self, name: str) -> list[ModelConfig]:
        return [config for config in self._manager.configs() if config.name != name]

    def _replace(self, configs: list[ModelConfig]) -> None:
        self._manager.configure(configs)
        self._manager.poll()

    def _rows(self, name: str) -> Sequence[VersionStatus]:
        try:
            return self._manager.statuses(name)
        except NotFound:
            return ()
