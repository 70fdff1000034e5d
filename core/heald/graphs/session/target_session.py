"""TargetSession: a model's session whose steps run at a target of a plugin.

Names, types and signatures are read here, as for any model. Steps, variables and placement are the target's.
"""

# The theory of a target session
#
# - The target gets the graph after the passes before placement: read-only variables are constants in it.
# - No step runs here. A method whose step would run here is Unimplemented.
# - The initial state of the model is fed to the target before its first step, and again after `reset`.

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import Unimplemented
from ...runtime.config.config import Config
from ...runtime.config.placement import PlacementConfig
from ...runtime.config.schema import as_setting
from ...runtime.contract.loader import Initializer
from ...runtime.contract.session import SessionInterface
from ...runtime.service.arguments import dict_of_mapping
from ...runtime.service.runtime import Runtime
from ..graph.graph import Graph
from .session import NO_CONNECTIONS, Session
from .targets import session_at

_HERE = "leave [cluster] target out of config: the model then runs in this process"


class TargetSession(Session):
    """As `Session`, for `target`. Raises the errors of the target's factory, too."""

    def __init__(
        self, target: str, graph: Graph, own_runtime: Runtime, *, device: str | None = None,
        initial_state: Sequence[Initializer] = (), readable_folders: Sequence[Path] = (),
    ) -> None:
        super().__init__(graph, own_runtime, initial_state=initial_state, readable_folders=readable_folders)
        config = _readable_config(own_runtime.config, readable_folders)
        self._state_lock = threading.Lock()
        self._unfed_state = list(self._pending_state)
        self._target_session: SessionInterface = session_at(target, self.graph, config, device=device)

    def _placement_settings(self, settings: PlacementConfig) -> PlacementConfig:
        """Return the settings without requests and remap, which are for the target."""
        return replace(settings, remap={}, clear=True, fallback="allow")

    def run(
        self, fetches: Any, feeds: Mapping[str, Any] | None = None, *, targets: Sequence[str] = (),
        options: Any = None, metadata: Any = None,
    ) -> Any:
        self._feed_initial_state()
        return self._target_session.run(fetches, feeds, targets=targets, options=options, metadata=metadata)

    def make_callable(
        self, fetches: Any, feeds: Sequence[str] | Mapping[str, str] = (), targets: Sequence[str] = (), *,
        connections: Mapping[str, str] = NO_CONNECTIONS,
    ) -> Callable[..., Any]:
        tensors = [*dict_of_mapping(feeds, "feeds").values()] if isinstance(feeds, Mapping) else feeds
        step = self._target_session.make_callable(fetches, tensors, targets, connections=connections)

        def run(*arrays: Any, options: Any = None) -> Any:
            self._feed_initial_state()
            return step(*arrays, options=options)

        run.release = step.release  # type: ignore[attr-defined]
        return run

    def limited_step(self, options: Any, _rendezvous: Any = None) -> AbstractContextManager[Any]:
        """Return the options: the target keeps the limits."""
        return nullcontext(options)

    def callable_within(
        self, _within: Any, fetches: Any, feeds: Sequence[str] | Mapping[str, str] = (), targets: Sequence[str] = (),
        connections: Mapping[str, str] = NO_CONNECTIONS,
    ) -> Callable[..., Any]:
        return self.make_callable(fetches, feeds, targets, connections=connections)

    def asynchronous(self, *_names: Any) -> Any:
        """Raises Unimplemented."""
        raise Unimplemented("a step at a target has no asynchronous form", hint=_HERE)

    def extend(self, graph: Graph) -> None:
        super().extend(graph)
        self._target_session.extend(graph)

    def reset(self, containers: Sequence[str] = ()) -> None:
        super().reset(containers)
        self._target_session.reset(containers)
        with self._state_lock:
            self._unfed_state = list(self._pending_state)

    def partial_run_setup(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> str:
        self._feed_initial_state()
        return self._target_session.partial_run_setup(fetches, feeds, targets)

    def partial_run(self, handle: str, fetches: Any, feeds: Mapping[str, Any] | None = None) -> Any:
        return self._target_session.partial_run(handle, fetches, feeds)

    def placement(self) -> Any:
        return self._target_session.placement()

    def partitions(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> Any:
        return self._target_session.partitions(fetches, feeds, targets)

    def close(self) -> None:
        self._target_session.close()
        super().close()

    def _feed_initial_state(self) -> None:
        if not self._unfed_state:
            return
        with self._state_lock:
            while self._unfed_state:
                initializer = self._unfed_state[0]
                self._target_session.run([], dict(initializer.values()), targets=[initializer.target])
                del self._unfed_state[0]


def _readable_config(config: Config, folders: Sequence[Path]) -> Config:
    """Return the config of a target, which may run elsewhere, and whose steps read files of these folders, too."""
    if not folders:
        return config.with_absolute_paths()
    layer = as_setting({"files": {"read": [*config.files.read, *map(str, folders)]}}, lambda _: "the model")
    return Config([layer, *config.layers]).with_absolute_paths()
