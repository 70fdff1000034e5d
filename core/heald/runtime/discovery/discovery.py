"""Discovery: finds plugins, loads them one at a time, and keeps a record of the result for each.

Installed plugins come in order of id, then the plugins of `[plugins] load`. A plugin's fault affects that plugin alone:
nothing of it is registered, its record states the reason, and the other plugins work.
"""

# The theory of loading
#
#   status         cause                                                         its entries are registered
#   ok             all hooks returned, and all entries fit                       yes
#   blocked        [plugins] block or allow leaves it out                        no
#   incompatible   its requirement, or the version of its contract, does not fit no
#   conflict       an id, device type, kernel or name that another plugin has    no for an id; else the preferred one's
#   failed         an exception at import, in a hook or while it is registered   no
#   unavailable    the plugin itself reports that it cannot work here            no
#
# Invariants
# - A plugin is registered as a whole or not at all: its hooks fill a Contribution, which is added once it is complete.
# - All plugins are read before the first is registered, and op tables are registered first. So a plugin's single ops
#   are compared with op tables in every order of ids.
# - A fault of a plugin becomes its record. It is raised by `check`, with `[plugins] strict` or for a plugin of
#   `[plugins] load`, and by `register`.
# - Two plugins never replace each other silently. Rivals for a command or a session prefix are all unused, and rivals
#   for a device type or kernel leave the preferred one. `records` notes each conflict in the records of both plugins.
# - Loading imports light modules only. Failures of kernels become known later, so `records` adds them to the records.

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...errors import HealdError, HealdWarning, PluginError
from ..config.config import Config, folded_id
from ..host.registries import Registries
from ..support.install import CORE, named_hint, uninstall_hint
from ..support.records import NamedTuple
from ..version import __version__
from .config_names import unknown_names, unusable_keys
from .entry_points import Distribution, asks_newer_core, plugin_distributions, unmet_requirement
from .plugin_record import Blocked, Duplicate, Incompatible, PluginRecord, summary

if TYPE_CHECKING:
    from ..contract.hookspecs import Contribution
    from .hook_observers import HookObserver
    from .plugin_module import PluginHooks

__all__ = ["PluginRecord", "Plugins", "load_plugins"]


class Plugins:
    """The plugins of a process. `registries` holds their registrations, `configs` their settings by id."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.registries = Registries(config.kernels, config.placement.provider, config.passes.disable)
        self.configs: dict[str, Any] = {}
        self.refused: list[PluginRecord] = []  # of plugins that `register` could not use
        self._records: list[PluginRecord] = []
        self._observers: list[HookObserver] = []

    def register(self, plugin: ModuleType | Path | str) -> PluginRecord:
        """Load a plugin: a module, the dotted name of one, or the path of a one-file plugin.

        A plugin that is loaded already stays as it is. Raises PluginError when the plugin cannot be used.
        """
        candidate = _unpackaged_candidate(plugin)
        for record in self._records:
            if record.status == "ok" and record.module == candidate.module:
                return record
        record, module, hooks = self._read(candidate)
        if module is not None and hooks is not None:
            record, brought = self._gather(record, module, hooks)
            if brought is not None:
                record = self._register(record, brought)
        self.refused = [other for other in self.refused if other.module != record.module]
        if record.status != "ok":
            self.refused.append(record)
            raise record.failure()
        self._records.append(record)
        return record

    def listing(self) -> list[PluginRecord]:
        """The record of every plugin, refused ones of `register` included, with failures of kernel packs and
        conflicts between kernels. So this imports the kernel packs of all announced device types, and of host kernels.
        """
        for announced in self.registries.device_types.by_priority():
            try:
                self.registries.kernels.load(announced.type)
            except PluginError as error:  # a warning: the caller asks for its record
                warnings.warn(str(error), HealdWarning, stacklevel=2)
        self.registries.host_kernels.load()
        return [*self.records(), *self.refused]

    def records(self) -> list[PluginRecord]:
        """The record of every plugin, as far as it is known without any import."""
        return [self._with_later_failures(record) if record.status == "ok" else record for record in self._records]

    def loaded_record(self, plugin_id: str) -> PluginRecord | None:
        """The record of a plugin as loading left it, without conflicts; None for one that is not installed."""
        return next((record for record in self._records if record.id == plugin_id), None)

    def distributions(self) -> set[str]:
        """The names of the distributions whose plugins have records."""
        return {record.distribution for record in self._records if record.distribution is not None}

    def load(self, distributions: Collection[str] | None = None) -> None:
        """Load every installed plugin and every plugin that config names, unless it is loaded already. The records
        state the results.

        `distributions`: load installed plugins of these alone. The others are loaded by a later call.
        """
        candidates = [_Candidate(name, module, distribution)
                      for distribution in sorted(plugin_distributions(distributions), key=lambda d: d.name.lower())
                      for name, module in distribution.plugins.items()]
        candidates.sort(key=lambda candidate: candidate.id)
        read: list[tuple[int, ModuleType, PluginHooks]] = []
        before = {(record.id, record.distribution) for record in self._records}
        for candidate in [*candidates, *map(_unpackaged_candidate, () if before else self.config.plugins.load)]:
            if (candidate.id, candidate.record().distribution) in before:
                continue
            record, module, hooks = self._read(candidate)
            if module is not None and hooks is not None:
                read.append((len(self._records), module, hooks))
            self._records.append(record)
        all_brought: list[tuple[int, Contribution]] = []
        for index, module, hooks in read:  # once all are read: a wrapper observes the hooks of every other plugin
            self._records[index], brought = self._gather(self._records[index], module, hooks)
            if brought is not None:
                all_brought.append((index, brought))
        # A plugin's single ops are compared with op tables, in every order of ids: tables come first.
        for index, brought in sorted(all_brought, key=lambda pair: not pair[1].op_tables):
            self._records[index] = self._register(self._records[index], brought)

    def check(self) -> None:
        """Compare config with the plugins, once all are loaded.

        Warns of settings that do not count: a found file must not make them, or they name a missing part. Warns of each
        plugin that failed, is incompatible or was displaced. Raises PluginError for the first plugin
        in `[plugins] load` that cannot be used, and names the others; with `[plugins] strict` for the first of all.
        """
        self.warn_of_ignored()
        refused = [record.failure() for record in self._records
                   if record.distribution is None and record.status not in ("ok", "blocked")]
        if refused:
            refused[0].message = "; ".join(error.message for error in refused)
            raise refused[0]
        records = self.records()
        for record in records:
            if self.config.plugins.strict and record.status in ("failed", "incompatible", "conflict"):
                raise record.failure()
        for text in dict.fromkeys([*self._unknown_names(), *self._faults()]):
            warnings.warn(text, HealdWarning, stacklevel=3)

    def _faults(self) -> Iterator[str]:
        """Yield a text for each plugin that cannot be used, and for each pair of plugins that claim one thing."""
        for record in self._records:
            if record.status in ("failed", "incompatible", "conflict"):
                yield str(record.failure())
        for what, winner, loser, remedy in self.registries.device_types.conflicts():
            yield f"{what} is announced by plugins {winner} and {loser}: {winner}'s is used; {remedy}"
        reported_remedies: set[str] = set()  # remedies, which the plugins of one conflict share
        for claim in [*self.registries.commands.conflicts(), *self.registries.sessions.conflicts()]:
            if claim.remedy not in reported_remedies:
                reported_remedies.add(claim.remedy)
                yield f"plugin {claim.plugin}: {claim.reason}; {claim.remedy}"

    def usable_config(self) -> Config:
        """The config without the names in found files of parts that no loaded plugin has; `check` warns of them."""
        keys = unusable_keys(self.config, self.registries)
        return self.config.without(keys) if keys else self.config

    def warn_of_ignored(self) -> None:
        """Warn of each found file with settings that do not count."""
        for text in self.config.warnings(self.configs):
            warnings.warn(text, HealdWarning, stacklevel=3)

    def warn_of_unknown_names(self) -> None:
        """Warn of each setting that names a plugin, a device type, an op, a pass, ... that is not there."""
        for text in dict.fromkeys(self._unknown_names()):
            warnings.warn(text, HealdWarning, stacklevel=3)

    def _unknown_names(self) -> Iterator[str]:
        return unknown_names(self.config, self.registries, [record.id for record in self._records])

    def _read(self, candidate: _Candidate) -> tuple[PluginRecord, ModuleType | None, PluginHooks | None]:
        """Import one plugin: its record, and its module and hooks unless it is refused."""
        record, distribution = candidate.record(), candidate.distribution
        try:
            self._check_blocked(record)
            from .plugin_module import import_plugin, read_hooks

            if distribution is None:  # its module states its id
                record = replace(record, id=_own_id(import_plugin(candidate.source, is_installed=False), record.id))
                self._check_blocked(record)
            self._check_free(record)
            if distribution is not None:
                _check_requirement(distribution)
            module = import_plugin(candidate.source)
            hooks = read_hooks(module, record.id, self.config, record.distribution)
        except HealdError as error:
            if distribution is None and record.id == "plugin" and "." in record.module:
                record = replace(record, id=record.module.rpartition(".")[0])  # NAME.plugin: it stated no id
            return self._note_failure(record, error), None, None
        record = replace(record, hooks=tuple(hooks.table))
        if hooks.observer is not None:
            self._observers.append(hooks.observer)
            record = replace(record, wrappers=hooks.observer.hooks)
        return record, module, hooks

    def _gather(
        self, record: PluginRecord, module: ModuleType, hooks: PluginHooks
    ) -> tuple[PluginRecord, Contribution | None]:
        """Call the hooks of one plugin: its record, and all that it brings unless one of them fails."""
        from .plugin_module import contribution

        try:
            return record, contribution(module, record.id, hooks, self._observers)
        except HealdError as error:
            return self._note_failure(record, error), None

    def _register(self, record: PluginRecord, brought: Contribution) -> PluginRecord:
        """The plugin's record, once all that it brings is registered or, where something does not fit, nothing."""
        try:
            if record.distribution is None:
                self.registries.kernels.named.add(record.id)
            self.registries.add(brought)
        except HealdError as error:
            return self._note_failure(record, error)
        self.configs[record.id] = brought.config
        return replace(record, registered=summary(brought))

    def _note_failure(self, record: PluginRecord, error: HealdError) -> PluginRecord:
        refused = record.with_error(error)
        self.registries.missing_plugins[refused.id] = f"{refused.status}: {refused.reason}"
        return refused

    def _check_blocked(self, record: PluginRecord) -> None:
        plugins, plugin_id = self.config.plugins, folded_id(record.id)
        if plugin_id in map(folded_id, plugins.block):
            raise Blocked("[plugins] block names it")
        if (plugins.allow is not None and record.distribution not in (None, CORE)
                and plugin_id not in map(folded_id, plugins.allow)):
            raise Blocked("[plugins] allow does not name it")

    def _check_free(self, record: PluginRecord) -> None:
        for other in self._records:
            if folded_id(other.id) == folded_id(record.id) and other.status != "blocked":
                whose = f"of {other.distribution}" if other.distribution else f"in {other.module}"
                remedy = uninstall_hint(record.distribution) if record.distribution else "set HEALD_ID in it"
                raise Duplicate(f"plugin {whose} has the id '{other.id}' already", hint=remedy)

    def _with_later_failures(self, record: PluginRecord) -> PluginRecord:
        """The record of a loaded plugin, with the failures and conflicts that became known after loading."""
        kernels, device_types = self.registries.kernels, self.registries.device_types
        host_kernels = self.registries.host_kernels
        failures = [*((plugin, failure) for (_, plugin), failure in kernels.failures.items()),
                    *host_kernels.failures.items()]
        failures += [(observer.plugin, observer.fault) for observer in self._observers if observer.fault is not None]
        for plugin, failure in failures:
            if plugin == record.id:
                return record.with_error(failure)
        for what, winner, loser, remedy in [*device_types.conflicts(), *kernels.conflicts(), *host_kernels.conflicts()]:
            if record.id in (winner, loser):
                rival = loser if record.id == winner else winner
                reason = f"{what}: claimed by plugin {rival} too, {winner}'s is used"
                record = record.with_note(reason, remedy, "conflict")
        for claim in [*self.registries.commands.conflicts(), *self.registries.sessions.conflicts()]:
            if claim.plugin == record.id:
                record = record.with_note(claim.reason, claim.remedy, "conflict")
        for other in self._records:
            if other.status == "conflict" and folded_id(other.id) == folded_id(record.id):
                reason = f"another plugin has the same id: {other.distribution or other.module}"
                record = record.with_note(reason, other.remedy, "conflict")
        aims = {pack.device_type for pack in kernels.packs() if pack.plugin == record.id}
        inert = sorted(device_type for device_type in aims if device_types.get(device_type) is None)
        return record.with_note(f"inert: no plugin announces device type {', '.join(inert)}") if inert else record


def load_plugins(config: Config) -> Plugins:
    """Load every plugin that is installed or that config names. Warns and raises as `Plugins.check`."""
    plugins = Plugins(config)
    plugins.load()
    plugins.check()
    return plugins


class _Candidate(NamedTuple):
    """A plugin that may be loaded."""

    id: str
    source: ModuleType | Path | str
    distribution: Distribution | None = None

    @property
    def module(self) -> str:
        return self.source.__name__ if isinstance(self.source, ModuleType) else str(self.source)

    def record(self) -> PluginRecord:
        if self.distribution is None:
            return PluginRecord(self.id, "ok", self.module)
        return PluginRecord(self.id, "ok", self.module, self.distribution.name, self.distribution.version)


def _unpackaged_candidate(plugin: ModuleType | Path | str) -> _Candidate:
    """A plugin without a distribution; its module may state its id as HEALD_ID."""
    from ..config.file import is_path

    if isinstance(plugin, Path) or (isinstance(plugin, str) and is_path(plugin)):
        path = Path(plugin).expanduser().absolute()
        return _Candidate(path.stem, path)
    name = plugin.__name__ if isinstance(plugin, ModuleType) else plugin
    return _Candidate(name.rpartition(".")[2], plugin)


def _own_id(module: ModuleType, otherwise: str) -> str:
    named = vars(module).get("HEALD_ID", otherwise)
    if not isinstance(named, str) or not named:
        raise PluginError(f"HEALD_ID = {named!r} in {module.__name__} is not a name", hint="write a non-empty str")
    return named


def _check_requirement(distribution: Distribution) -> None:
    requirement = unmet_requirement(distribution, __version__)
    if requirement is not None:
        outdated = CORE if asks_newer_core(requirement, __version__) else distribution.name
        needs = f"{distribution.name} {distribution.version} requires {requirement}"
        raise Incompatible(f"{needs}, this is {__version__}", hint=named_hint(outdated, [outdated]))

