"""The list of models that calls replace: of this process, or of all workers of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heald.errors import NotFound

from .model_config import ModelConfig
from .model_manager import ModelManager, VersionStatus
from .servable import AVAILABLE


class ModelLists(Protocol):
    """Methods may wait for other processes, so an event loop calls them in a thread."""

    def replace_models(self, configs: Sequence[ModelConfig]) -> None:
        """Replace the models, everywhere or nowhere. Raises the errors of `ModelManager.configure` and `poll`."""

    def known_config(self, name: str) -> ModelConfig | None:
        """The last configuration of a model that is, or was, in the list; None for a stranger's name."""

    def is_settled(self) -> bool:
        """True when every wanted version is available or has ended, in every process."""

    def statuses(self, name: str) -> Sequence[Sequence[VersionStatus]]:
        """The states of a model's versions, in each process."""


class OwnModels:
    """The models of this process."""

    def __init__(self, manager: ModelManager) -> None:
        self._manager = manager
        self._known: dict[str, ModelConfig] = {}

    def remember(self, configs: Sequence[ModelConfig]) -> None:
        self._known |= {config.name: config for config in configs}

    def known_config(self, name: str) -> ModelConfig | None:
        self.remember(self._manager.configs())
        return self._known.get(name)

    def check(self, configs: Sequence[ModelConfig]) -> None:
        """Raises FailedPrecondition for a list that `replace_models` would refuse."""
        self._manager.check_labels(configs)

    def replace_models(self, configs: Sequence[ModelConfig]) -> None:
        self.remember(self._manager.configs())
        self._manager.replace_models(configs)

    def is_settled(self) -> bool:
        return self._manager.is_settled()

    def statuses(self, name: str) -> Sequence[Sequence[VersionStatus]]:
        return [self.own_statuses(name)]

    def own_statuses(self, name: str) -> Sequence[VersionStatus]:
        try:
            return self._manager.statuses(name)
        except NotFound:
            return []


def is_available(rows: Sequence[VersionStatus]) -> bool:
    return any(row.state == AVAILABLE for row in rows)
