"""Config: the settings of a process, typed and closed, each with its origin.

A setting is taken from the strongest source that has it. From the strongest: the argument `config=`, environment
variables `HEALD_SECTION__KEY`, the file that `$HEALD_CONFIG` names, the nearest heald.toml, [tool.heald] of the nearest
pyproject.toml, the user's own file.

A file that was found by searching may come from a stranger: it sets the settings in `HARMLESS_SETTINGS` and
harmless options of plugins, and stops no command. A mistake in it is a warning with file and
line, and the setting does not count.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from ...errors import InvalidArgument, PluginError, callers_code
from ..contract.work_queue import WorkQueueConfig
from ..support.plugin_guard import plugin_guard
from ..support.records import dataclass
from .debug import DebugConfig
from .file import is_path
from .files import FilesConfig
from .limits import LimitsConfig
from .placement import PlacementConfig
from .schema import (
    FoundFile,
    Refusal,
    SectionReading,
    Setting,
    SettingRow,
    as_table,
    known_entries,
    plain,
    read,
    read_section,
    read_tables,
    refusing,
)
from .sources import SECTIONS, gather_layers

T = TypeVar("T")


@dataclass(frozen=True)
class PluginsConfig:
    """The section [plugins].

    `block`: Ids of plugins that are left out.
    `allow`: If given, the ids of the only installed plugins that are loaded.
    `strict`: True makes a plugin that cannot be used an error.
    `load`: Paths of one-file plugins, or module names.
    """

    block: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    strict: bool = False
    load: tuple[str, ...] = ()


@dataclass(frozen=True)
class AllocatorConfig:
    """The section [allocator].

    `name`: The host allocator: "plain", "pooled", "counting", "poisoning" or a name that a plugin registers.
    `limit`: The most memory that may be in use at a time: bytes, "2GiB", or "80%" of the physical memory.
    """

    name: str = "plain"
    limit: int | str | None = None


@dataclass(frozen=True)
class PassesConfig:
    """The section [passes]. `disable`: names of graph passes and compilers that do not run; "fusion" for kernels of
    several nodes."""

    disable: tuple[str, ...] = ()


@dataclass(frozen=True)
class EagerConfig:
    """The section [eager].

    `handler`: The op handler of `heald.execute`, or the names of a chain of them; "" for the devices' own.
    `asynchronous`: Which calls on host memory return before their kernel has run: "auto" for long kernels.
    """

    handler: str | tuple[str, ...] = ""
    asynchronous: Literal["auto", "never", "always"] = "auto"


@dataclass(frozen=True)
class ClusterConfig:
    """The section [cluster]: sessions that run in other processes, by the plugin that serves their target.

    `target`: The target of sessions and models that name none, such as "ray:HOST:6379"; "" is this process.
    `workers`: The number of workers of a session.
    `max_steps`: The most steps of a session in flight.
    `checkpoint`: The prefix of a checkpoint, or a folder of checkpoints. A worker that starts again restores it.
    """

    target: str = ""
    workers: int = 2
    max_steps: int = 64
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "max_steps"):
            if (number := getattr(self, name)) < 1:
                raise InvalidArgument(f"{name} is {number}", hint="give a number of 1 or more")


# Heald's own settings that a found file may make, besides [kernels]. They choose among installed things.
HARMLESS_SETTINGS = frozenset({
    "plugins.block", "placement.order", "placement.fallback", "placement.remap", "placement.provider",
    "placement.clear", "allocator.name", "work_queue.name", "work_queue.threads", "work_queue.seed", "passes.disable",
    "eager.handler", "eager.asynchronous",
})
PATH_SETTINGS: Mapping[str, Any] = {  # to their types
    "plugins.load": tuple[str, ...], "files.read": tuple[str, ...], "files.write": tuple[str, ...],
    "placement.statistics": str | None, "cluster.checkpoint": str | None,
}
LARGEST_NAMED_KEYS = 10  # keys in a warning


class RefusedOptions(PluginError):
    """The settings of a plugin have the right types, and the plugin's own `Config` refuses their values."""


class Config:
    """The merged settings of all layers; `Config()` has every default. Raises InvalidArgument, with the origin of the
    setting.

    `left_out`: A warning for each found file, and each environment variable, that is not used at all.
    """

    def __init__(self, layers: Sequence[Setting] = (), left_out: Sequence[str] = ()) -> None:
        self._sources = tuple(layers)
        self._left_out = tuple(left_out)
        self._rows: list[SettingRow] = []
        self._ignored: list[SettingRow] = []
        self._refused: list[Refusal] = []
        self._layers = [known_entries(table, SECTIONS, "", self._refused)
                        for table in read_tables(layers, "", self._refused)]
        self.plugins = self._section(PluginsConfig, "plugins")
        self.placement = self._section(PlacementConfig, "placement")
        self.kernels: dict[str, str] = self._entries("kernels")  # op -> plugin
        self.allocator = self._section(AllocatorConfig, "allocator")
        self.limits = self._section(LimitsConfig, "limits")
        self.files = self._section(FilesConfig, "files")
        self.work_queue = self._section(WorkQueueConfig, "work_queue")
        self.work_queues = self._sections(WorkQueueConfig, "work_queues", "work_queue")  # by name
        self.passes = self._section(PassesConfig, "passes")
        self.eager = self._section(EagerConfig, "eager")
        self.cluster = self._section(ClusterConfig, "cluster")
        self.debug = self._section(DebugConfig, "debug")
        self._plugin: dict[str, list[tuple[str, Setting]]] = {}  # by folded id: the id as written, and the section
        for table in read_tables(self._of("plugin"), "plugin", self._refused):
            for name, section in table.items():
                if read_tables([section], f"plugin.{name}", self._refused):
                    self._plugin.setdefault(folded_id(name), []).append((name, section))

    def plugin(self, plugin_id: str) -> dict[str, Any]:
        """The section [plugin.<id>] as it was given, unchecked: only the plugin knows its keys."""
        return {option: row.value for plugin, option, row in self._options() if plugin == folded_id(plugin_id)}

    def plugin_layers(self, plugin_id: str) -> list[Setting]:
        return [section for _, section in self._plugin.get(folded_id(plugin_id), ())]

    def plugin_sections(self) -> list[SettingRow]:
        """A row for each [plugin.<id>], with the id as key and the section's strongest origin."""
        return [SettingRow(name, None, section.origin, section.found_file)
                for (name, section), *_ in self._plugin.values()]

    def origins(self, plugins: Mapping[str, Any] = MappingProxyType({})) -> list[SettingRow]:
        """Every setting with its origin, defaults included; options of plugins that were given as they were given.

        `plugins` has the settings of each loaded plugin, as in `ignored`.
        """
        rows_not_used = self.ignored_rows(plugins)
        option_rows = {(plugin, option): row for plugin, option, row in self._options() if row not in rows_not_used}
        defaults = [SettingRow(f"plugin.{name}.{field.name}", getattr(settings, field.name, None), "default")
                    for name, settings in plugins.items() if settings is not None for field in fields(settings)
                    if field.init and (folded_id(name), field.name) not in option_rows]
        return [*self._rows, *option_rows.values(), *defaults]

    @property
    def layers(self) -> tuple[Setting, ...]:
        """The settings of each source, the strongest first."""
        return self._sources

    def with_absolute_paths(self) -> Config:
        """This config for another working folder: the paths of heald's own settings are absolute."""
        return Config([_with_absolute_paths(layer) for layer in self._sources], self._left_out)

    def ignored_rows(self, plugins: Mapping[str, Any]) -> list[SettingRow]:
        """The settings of found files that do not count.

        `plugins` has the settings of each loaded plugin by its id: an instance of its dataclass, or None.
        """
        return [*self._forbidden(plugins), *(refusal.row for refusal in self._refusals(plugins))]

    def warnings(self, plugins: Mapping[str, Any]) -> Iterator[str]:
        """A text for each found file with settings that do not count. `plugins` is as in `ignored`."""
        yield from self._left_out
        forbidden: dict[FoundFile, list[SettingRow]] = {}
        for row in self._forbidden(plugins):
            assert row.found_file is not None
            forbidden.setdefault(row.found_file, []).append(row)
        for source, rows in forbidden.items():
            yield _warning(source, rows)
        refusals = list(self._refusals(plugins))
        for refusal in refusals[:LARGEST_NAMED_KEYS]:
            yield f"{refusal.reason}; this setting is not used"
        if len(refusals) > LARGEST_NAMED_KEYS:
            yield f"{len(refusals) - LARGEST_NAMED_KEYS} more settings of found files are not used"

    def without(self, keys: Collection[str]) -> Config:
        """This config without the settings of found files under these keys, such as `allocator.name`."""
        return Config([_without_found_settings(layer, keys) for layer in self._sources], self._left_out)

    def _forbidden(self, plugins: Mapping[str, Any]) -> list[SettingRow]:
        """The settings that found files may not make."""
        declared = {folded_id(name): {field.name: field for field in fields(settings)}
                    for name, settings in plugins.items() if settings is not None}
        refused = {refusal.row.key for refusal in self._refusals(plugins)}
        options = [row for plugin, option, row in self._options()
                   if row.found_file and row.key not in refused
                   and not is_harmless_option(declared.get(plugin, {}).get(option), row.value)]
        return [*self._ignored, *options]

    def _refusals(self, plugins: Mapping[str, Any]) -> Iterator[Refusal]:
        """The settings of found files that do not fit; settings of loaded plugins are included."""
        yield from self._refused
        for name, settings in plugins.items():
            layers = self.plugin_layers(name)
            if settings is not None and any(layer.found_file for layer in layers):
                yield from _read_plugin(self, name, type(settings))[1].refused
            elif settings is None:
                yield from (Refusal(SettingRow(f"plugin.{name}", plain(layer), layer.origin, layer.found_file),
                                    f"{layer.origin}: plugin {name} takes no settings")
                            for layer in layers if layer.found_file)

    def _of(self, section: str) -> list[Setting]:
        return [layer[section] for layer in self._layers if section in layer]

    def _section(self, cls: type[T], name: str) -> T:
        return self._read(cls, self._of(name), name, name)

    def _sections(self, cls: type[T], name: str, like: str) -> dict[str, T]:
        """The sections [name.ENTRY], by entry. A found file may set the same keys as in the section `like`."""
        tables = read_tables(self._of(name), name, self._refused)
        entries = sorted({entry for table in tables for entry in table})
        return {entry: self._read(cls, [table[entry] for table in tables if entry in table], f"{name}.{entry}",
                                  like) for entry in entries}

    def _read(self, cls: type[T], layers: Sequence[Setting], section: str, like: str) -> T:
        """One section. `like`: The name under which `HARMLESS_SETTINGS` has its settings."""
        value, reading = read_section(
            cls, layers, section, lambda field, _: field is not None and f"{like}.{field.name}" in HARMLESS_SETTINGS,
            lambda values: _make(cls, values, section))
        self._rows += reading.rows
        self._ignored += reading.ignored
        self._refused += reading.refused
        return value

    def _entries(self, name: str) -> dict[str, str]:
        rows: dict[str, SettingRow] = {}
        for table in reversed(read_tables(self._of(name), name, self._refused)):
            for entry, setting in table.items():
                key = f"{name}.{entry}"
                with refusing(setting, key, self._refused):
                    rows[entry] = SettingRow(key, read(setting, str, key), setting.origin, setting.found_file)
        self._rows += [rows[entry] for entry in sorted(rows)]
        return {entry: row.value for entry, row in rows.items()}

    def _options(self) -> Iterator[tuple[str, str, SettingRow]]:
        """The options of plugins in every layer, the weakest first: folded id, option, row."""
        for plugin in sorted(self._plugin):
            for name, section in reversed(self._plugin[plugin]):
                for option, setting in as_table(section, f"[plugin.{name}]").items():
                    key = f"plugin.{name}.{option}"
                    yield plugin, option, SettingRow(key, plain(setting), setting.origin, setting.found_file)


def is_harmless_option(field: Field[Any] | None, value: Any) -> bool:
    """True for an option of a plugin that a found file may set: by the mark `found` in the field's metadata or, without
    a mark, every number and boolean."""
    if field is not None and "found" in field.metadata:
        return field.metadata["found"] is True
    return type(value) in (bool, int, float)


def _make(cls: type[T], values: dict[str, Any], section: str) -> T:
    try:
        return cls(**values)
    except InvalidArgument as error:
        raise InvalidArgument(f"[{section}] {error.message}", hint=error.hint) from None


def _without_found_settings(setting: Setting, keys: Collection[str], path: str = "") -> Setting:
    """A table without the found settings under these keys."""
    if not isinstance(setting.value, dict):
        return setting
    return setting._replace(value={
        key: _without_found_settings(entry, keys, f"{path}{key}.") for key, entry in setting.value.items()
        if entry.found_file is None or f"{path}{key}" not in keys})


def _warning(source: FoundFile, rows: Sequence[SettingRow]) -> str:
    import shlex

    keys = [f"{row.key} ({row.origin.removeprefix(source.path).replace(':', 'line ')})" for row in rows]
    more = f" and {len(keys) - LARGEST_NAMED_KEYS} more" if len(keys) > LARGEST_NAMED_KEYS else ""
    return (f"{source.path} {source.why}: it cannot set {', '.join(keys[:LARGEST_NAMED_KEYS])}{more}; "
            f"to let it: {shlex.join(source.remedy)}, or --config {shlex.quote(source.path)}")


def _with_absolute_paths(layer: Setting) -> Setting:
    if layer.found_file is not None:  # no path of a found file counts, but for those of plugins, which are absolute
        return layer
    tables = dict(as_table(layer, "the config"))
    for key in PATH_SETTINGS:
        section, _, name = key.partition(".")
        table = as_table(tables[section], f"[{section}]") if section in tables else {}
        if name in table:
            value = read(table[name], PATH_SETTINGS[key], key)
            absolute = Setting(_absolute(value, may_be_module=key == "plugins.load"), table[name].origin)
            tables[section] = Setting({**table, name: absolute}, tables[section].origin)
    return layer._replace(value=tables)


def _absolute(value: Any, *, may_be_module: bool) -> Any:
    """A path, or the paths of a tuple, as seen from any folder."""
    if isinstance(value, tuple):
        return tuple(entry if may_be_module and not is_path(entry) else str(Path(entry).absolute()) for entry in value)
    return value and str(Path(value).absolute())


def folded_id(plugin_id: str) -> str:
    """A plugin id for comparison: environment variables can spell neither case nor '-'."""
    return plugin_id.lower().replace("-", "_")


def load_config(
    argument: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Config:
    """The config of a process, by default of this process in its working directory.

    Raises InvalidArgument for unknown keys, wrong types and malformed TOML, NotFound for a named file that does not
    exist. Both name the origin of the setting.
    """
    if isinstance(argument, Config):
        return argument
    if isinstance(argument, str | os.PathLike):
        from ..support.file_path import file_path  # imported late: only a named file needs it

        argument = file_path(argument)
    elif isinstance(argument, Mapping):
        with callers_code("config= cannot be read"):
            argument = dict(argument.items())
    here = Path(folder) if folder is not None else Path.cwd()
    return Config(*gather_layers(argument, os.environ if environ is None else environ, here.absolute()))


def plugin_config(config: Config, plugin_id: str, cls: type[T]) -> T:
    """The section [plugin.<id>] as the plugin's own frozen dataclass `cls`.

    Raises InvalidArgument as `load_config`, RefusedOptions when `cls` refuses the values, PluginError when it is unfit.
    """
    return _read_plugin(config, plugin_id, cls)[0]


def _read_plugin(config: Config, plugin_id: str, cls: type[T]) -> tuple[T, SectionReading]:
    layers = config.plugin_layers(plugin_id)

    def make(values: dict[str, Any]) -> T:
        try:
            with plugin_guard(f"Config of plugin {plugin_id}", hint=f"check [plugin.{plugin_id}]"):
                return cls(**values)
        except PluginError as error:
            raise RefusedOptions(f"{_origins_of_options(layers)}{error.message}", hint=error.hint) from error.__cause__

    return read_section(cls, layers, f"plugin.{plugin_id}", is_harmless_option, make)


def _origins_of_options(layers: Sequence[Setting]) -> str:
    """The places of the options in a section's layers, as the start of a message."""
    origins = dict.fromkeys(option.origin for layer in layers for option in as_table(layer, "plugin").values())
    named = [*origins][:LARGEST_NAMED_KEYS]
    return f"{', '.join(named)}: " if named else ""
