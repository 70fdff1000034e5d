"""The versions that are wanted, and the actions that lead to them.

A poll replaces the set of wanted versions of each model. `do_next_action` does one action of all that are due,
unloads first:

- an unwanted version is unloaded when a wanted one is available, when none is wanted, or when another unwanted one
  serves; so a model that was available stays available;
- the highest wanted version that is not loaded is loaded. A load that fails is tried again after a while, a few times.
  Then it ends with its error, until its folder leaves and returns.

No method waits, but for a load. Time is handed in, so that tests need none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from heald.errors import FailedPrecondition, HealdError, InvalidArgument, NotFound, typed_error

from .model_config import ModelConfig
from .servable import AVAILABLE, END, LOADING, START, UNLOADING, Lease, Servable
from .served_model import ServedSignature
from .version_folders import wanted_versions

Loader = Callable[[Path], Mapping[str, ServedSignature]]
Report = Callable[[str], None]


class ManagerSettings(NamedTuple):
    """`retries`: further attempts at a failed load, `retry_seconds` apart."""

    retries: int = 5
    retry_seconds: float = 60.0
    may_label_unavailable: bool = False


DEFAULTS = ManagerSettings()


class VersionStatus(NamedTuple):
    version: int
    state: str
    error: HealdError | None


class ModelManager:
    """The versions of all models. Requests call `find` and `statuses`, one thread the others.

    `loads`: runs the loads; None has `do_next_action` run them. `report` gets a line for each change.
    """

    def __init__(
        self, loader: Loader, settings: ManagerSettings = DEFAULTS, *, report: Report = lambda _: None,
        clock: Callable[[], float] = monotonic, loads: Executor | None = None,
    ) -> None:
        self._loader, self._settings, self._report, self._clock, self._loads = loader, settings, report, clock, loads
        self._configs: dict[str, ModelConfig] = {}
        self._servables: dict[str, dict[int, Servable]] = {}
        self._wanted: dict[str, dict[int, Path]] = {}
        self._labels: dict[str, dict[str, int]] = {}
        self._lock = threading.RLock()

    def configure(self, configs: Sequence[ModelConfig]) -> None:
        """Replace the models. One that is absent is unloaded.

        Raises FailedPrecondition for a label of a version that is not available; nothing changes then.
        """
        with self._lock:
            labels = {config.name: self._checked_labels(config) for config in configs}
            self._configs = {config.name: config for config in configs}
            self._labels = labels
            for name in self._wanted.keys() - self._configs.keys():
                self._wanted[name] = {}

    def check_labels(self, configs: Sequence[ModelConfig]) -> None:
        """Raises as `configure` would, and changes nothing."""
        with self._lock:
            for config in configs:
                self._checked_labels(config)

    def replace_models(self, configs: Sequence[ModelConfig]) -> None:
        """Replace the models and look for their versions. Where either fails, the models stay as they were.

        A base path that cannot be read would stop every later look, of all models.
        """
        with self._lock:
            earlier = self._configs, self._labels, dict(self._wanted)
            try:
                self.configure(configs)
                self.poll()
            except Exception:
                self._configs, self._labels, self._wanted = earlier
                raise

    def _checked_labels(self, config: ModelConfig) -> dict[str, int]:
        available = {version for version, servable in self._servables.get(config.name, {}).items()
                     if servable.state == AVAILABLE}
        old = self._labels.get(config.name, {})
        for label, version in config.labels.items():
            is_free = self._settings.may_label_unavailable and old.get(label, version) == version
            if version not in available and not is_free:
                raise FailedPrecondition(
                    f"Request to assign label to version {version} of model {config.name}, which is not currently "
                    "available for inference", hint="--allow_version_labels_for_unavailable_models allows new labels")
        return dict(config.labels)

    def poll(self) -> None:
        """Look for versions. Raises the error of a base path that cannot be read; nothing changes then."""
        with self._lock:
            versions_by_name = {config.name: wanted_versions(config) for config in self._configs.values()}
            for name, versions in versions_by_name.items():
                earlier = self._wanted.get(name)
                if not versions and earlier != versions:
                    base_path = self._configs[name].base_path
                    self._report(f"no versions of servable {name} found under base path {base_path}")
                self._add_new(name, versions, earlier or {})
                self._wanted[name] = versions

    def _add_new(self, name: str, versions: Mapping[int, Path], earlier: Mapping[int, Path]) -> None:
        """Add the wanted versions that are new, or that return after their end.

        A version that ended with an error returns when its folder was away. One that was unloaded returns at once.
        """
        servables = self._servables.setdefault(name, {})
        for version, servable in servables.items():
            if servable.state == START and version not in versions:
                servable.state = END
        for version, path in versions.items():
            ended = servables.get(version)
            if ended is None or (ended.state == END and (ended.error is None or version not in earlier)):
                servables[version] = Servable(name, version, path)

    def do_next_action(self) -> bool:
        """Do one action that is due. Returns False when none is."""
        with self._lock:
            for name, servables in self._servables.items():
                servable = self._next_unload(name, servables)
                if servable is not None:
                    self._report(f"unloading servable version {servable}")
                    servable.begin_unload()
                    return True
            for name, servables in self._servables.items():
                servable = self._next_load(name, servables)
                if servable is not None:
                    break
            else:
                return False
            servable.state = LOADING
        if self._loads is None:
            self._load(servable)
        else:
            self._loads.submit(self._load, servable)
        return True

    def settle(self) -> None:
        """Do all actions that are due."""
        while self.do_next_action():
            pass

    def _next_unload(self, name: str, servables: Mapping[int, Servable]) -> Servable | None:
        targets = self._wanted.get(name, {})
        serving = [servable for servable in servables.values() if servable.state == AVAILABLE]
        unwanted = [servable for servable in serving if servable.version not in targets]
        if not unwanted or (targets and len(unwanted) == len(serving) == 1):
            return None
        return min(unwanted, key=lambda servable: servable.version)

    def _next_load(self, name: str, servables: Mapping[int, Servable]) -> Servable | None:
        now = self._clock()
        due = [servables[version] for version in self._wanted.get(name, {})
               if servables[version].state == START and servables[version].next_attempt <= now]
        return max(due, key=lambda servable: servable.version, default=None)

    def _load(self, servable: Servable) -> None:
        self._report(f"loading servable version {servable}")
        try:
            servable.load(self._loader)
        except HealdError as error:
            self._after_failure(servable, error)
        except Exception as error:  # noqa: BLE001 - a loader of a plugin may raise anything, and the server goes on
            self._after_failure(servable, typed_error(error))
        else:
            self._report(f"successfully loaded servable version {servable}")

    def _after_failure(self, servable: Servable, error: HealdError) -> None:
        servable.error = error
        is_last = servable.attempts > self._settings.retries
        servable.next_attempt = self._clock() + self._settings.retry_seconds
        servable.state = END if is_last else START
        self._report(f"loading servable {servable} failed: {error}")

    def seconds_to_next_attempt(self) -> float | None:
        """The time until a load is due, or None when none waits."""
        with self._lock:
            times = [servables[version].next_attempt for name, servables in self._servables.items()
                     for version in self._wanted.get(name, {}) if servables[version].state == START]
        return max(min(times) - self._clock(), 0.0) if times else None

    def is_settled(self) -> bool:
        """True when every wanted version is available or has ended."""
        with self._lock:
            return all(servables[version].state in (AVAILABLE, END) for name, servables in self._servables.items()
                       for version in self._wanted.get(name, {}))

    def unavailable(self) -> list[Servable]:
        """The wanted versions that have ended with an error, of models without an available version."""
        with self._lock:
            return [servables[version] for name, servables in self._servables.items()
                    if not any(servable.state == AVAILABLE for servable in servables.values())
                    for version in self._wanted.get(name, {})]

    def configs(self) -> list[ModelConfig]:
        with self._lock:
            return [*self._configs.values()]

    def names(self) -> list[str]:
        with self._lock:
            return [*self._configs]

    def served_names(self) -> list[str]:
        """The models of the list, and those that left it."""
        with self._lock:
            return [*dict.fromkeys((*self._configs, *self._servables))]

    def has(self, name: str) -> bool:
        """True for a model that is, or was, served."""
        return name in self._servables

    def labels(self, name: str) -> dict[str, int]:
        """The labels of a model, each with its version."""
        with self._lock:
            return dict(self._labels.get(name, {}))

    def is_ready(self) -> bool:
        """True when every model has an available version."""
        with self._lock:
            return all(any(servable.state == AVAILABLE for servable in self._servables.get(name, {}).values())
                       for name in self._configs)

    def find(self, name: str, version: int | None = None, label: str | None = None) -> Lease:
        """A lease of the highest available version, of `version`, or of the version that `label` names.

        Raises NotFound, and InvalidArgument for an unknown label, with the texts of TensorFlow Serving.
        """
        if label is not None:
            version = self._labels.get(name, {}).get(label)
            if version is None:
                raise InvalidArgument(f"Unrecognized servable version label: {label}")
        for servable in self._candidates(name, version):
            lease = servable.lease()
            if lease is not None:
                return lease
        request = f"Latest({name})" if version is None else f"Specific({name}, {version})"
        raise NotFound(f"Servable not found for request: {request}")

    def _candidates(self, name: str, version: int | None) -> list[Servable]:
        with self._lock:
            servables = self._servables.get(name, {})
            if version is not None:
                return [servables[version]] if version in servables else []
            return [servables[number] for number in sorted(servables, reverse=True)]

    def statuses(self, name: str, version: int | None = None) -> list[VersionStatus]:
        """The states of a model's versions, the highest first. Raises NotFound."""
        with self._lock:
            rows = [VersionStatus(servable.version, servable.state, servable.error)
                    for number, servable in sorted(self._servables.get(name, {}).items(), reverse=True)
                    if version in (None, number)]
        if not rows:
            text = "any versions" if version is None else f"version {version}"
            raise NotFound(f"Could not find {text} of model {name}")
        return rows

    def end(self) -> None:
        """Unload all versions; running requests keep theirs until they end."""
        with self._lock:
            for servables in self._servables.values():
                for servable in servables.values():
                    if servable.state == AVAILABLE:
                        servable.begin_unload()
                    elif servable.state not in (LOADING, UNLOADING):
                        servable.state = END
