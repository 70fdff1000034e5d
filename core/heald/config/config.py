"""Config: the settings of a process, typed and closed, each with its origin.

A setting is taken from the strongest source that has it. From the strongest: the argument `config=`, environment
variables `HEALD_SECTION__KEY`, the file that `$HEALD_CONFIG` names, the nearest heald.toml, [tool.heald] of the nearest
pyproject.toml, the user's own file.

A file that was found by searching may come from a stranger: it sets the settings in `FOUND` and harmless options of
plugins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ..contract.work_queue import WorkQueueConfig
from ..errors import InvalidArgument, callers_code
from ..support.plugin_guard import plugin_guard
from .debug import DebugConfig
from .files import FilesConfig
from .placement import PlacementConfig
from .schema import Found, Row, Setting, as_table, check_keys, plain, read_fields, read_layers
from .sources import SECTIONS, gather

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
class LimitsConfig:
    """The section [limits].

    `memory`: The most host memory that programs may have in use at a time: bytes, "2GiB", or a share of the memory that
        is available when the runtime is made.
    """

    memory: int | str = "80%"


@dataclass(frozen=True)
class PassesConfig:
    """The section [passes]. `disable`: names of graph passes that do not run; "fusion" for kernels of several nodes."""

    disable: tuple[str, ...] = ()


@dataclass(frozen=True)
class EagerConfig:
    """The section [eager]. `handler`: the op handler of `heald.execute`, or the names of a chain of them; "" for the
    devices' own."""

    handler: str | tuple[str, ...] = ""


# Heald's own settings that a found file may make, besides [kernels]. They choose among installed things.
FOUND = frozenset({
    "plugins.block", "placement.order", "placement.fallback", "placement.remap", "placement.provider",
    "placement.clear", "allocator.name", "work_queue.name", "work_queue.threads", "work_queue.seed", "passes.disable",
    "eager.handler",
})
MOST_NAMED = 10  # keys in a warning


class Config:
    """The merged settings of all layers; `Config()` has every default. Raises InvalidArgument, with the origin of the
    setting.

    `left_out`: A warning for each found file, and each environment variable, that is not used at all.
    """

    def __init__(self, layers: Sequence[Setting] = (), left_out: Sequence[str] = ()) -> None:
        self._layers = [as_table(layer, "the config") for layer in layers]
        self._left_out = tuple(left_out)
        self._rows: list[Row] = []
        self._ignored: list[Row] = []
        for layer in self._layers:
            check_keys(layer, SECTIONS, "")
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
        self.debug = self._section(DebugConfig, "debug")
        self._plugin: dict[str, list[tuple[str, Setting]]] = {}  # by folded id: the id as written, and the section
        for setting in self._of("plugin"):
            for name, section in as_table(setting, "[plugin]").items():
                as_table(section, f"[plugin.{name}]")
                self._plugin.setdefault(folded(name), []).append((name, section))

    def plugin(self, plugin_id: str) -> dict[str, Any]:
        """The section [plugin.<id>] as it was given, unchecked: only the plugin knows its keys."""
        return {option: row.value for own, option, row in self._options() if own == folded(plugin_id)}

    def plugin_layers(self, plugin_id: str) -> list[Setting]:
        return [section for _, section in self._plugin.get(folded(plugin_id), ())]

    def plugin_sections(self) -> list[Row]:
        """A row for each [plugin.<id>], with the id as key and the section's strongest origin."""
        return [Row(name, None, section.origin, section.found) for (name, section), *_ in self._plugin.values()]

    def origins(self, plugins: Mapping[str, Any] = MappingProxyType({})) -> list[Row]:
        """Every setting with its origin, defaults included; options of plugins that were given as they were given.

        `plugins` has the settings of each loaded plugin, as in `ignored`.
        """
        gone = self.ignored(plugins)
        given = {(own, option): row for own, option, row in self._options() if row not in gone}
        defaults = [Row(f"plugin.{name}.{field.name}", getattr(settings, field.name, None), "default")
                    for name, settings in plugins.items() if settings is not None for field in fields(settings)
                    if field.init and (folded(name), field.name) not in given]
        return [*self._rows, *given.values(), *defaults]

    def ignored(self, plugins: Mapping[str, Any]) -> list[Row]:
        """The settings of found files that do not count.

        `plugins` has the settings of each loaded plugin by its id: an instance of its dataclass, or None.
        """
        declared = {folded(name): {field.name: field for field in fields(settings)}
                    for name, settings in plugins.items() if settings is not None}
        options = [row for own, option, row in self._options()
                   if row.found and not is_harmless_option(declared.get(own, {}).get(option), row.value)]
        return [*self._ignored, *options]

    def warnings(self, plugins: Mapping[str, Any]) -> Iterator[str]:
        """A text for each found file with settings that do not count. `plugins` is as in `ignored`."""
        yield from self._left_out
        of: dict[Found, list[Row]] = {}
        for row in self.ignored(plugins):
            assert row.found is not None
            of.setdefault(row.found, []).append(row)
        for found, rows in of.items():
            yield _warning(found, rows)

    def _of(self, section: str) -> list[Setting]:
        return [layer[section] for layer in self._layers if section in layer]

    def _section(self, cls: type[T], name: str) -> T:
        return self._read(cls, self._of(name), name, name)

    def _sections(self, cls: type[T], name: str, like: str) -> dict[str, T]:
        """The sections [name.ENTRY], by entry. A found file may set what it may set in the section `like`."""
        tables = [as_table(layer, f"[{name}]") for layer in self._of(name)]
        entries = sorted({entry for table in tables for entry in table})
        return {entry: self._read(cls, [table[entry] for table in tables if entry in table], f"{name}.{entry}",
                                  like) for entry in entries}

    def _read(self, cls: type[T], layers: Sequence[Setting], section: str, like: str) -> T:
        """One section. `like`: The name under which `FOUND` has its settings."""
        values, rows, ignored = read_fields(cls, layers, section,
                                            lambda field, _: field is not None and f"{like}.{field.name}" in FOUND)
        self._rows += rows
        self._ignored += ignored
        try:
            return cls(**values)
        except InvalidArgument as error:
            raise InvalidArgument(f"[{section}] {error.message}", hint=error.hint) from None

    def _entries(self, name: str) -> dict[str, str]:
        value, rows = read_layers(dict[str, str], self._of(name) or [Setting({}, "default")], name)
        self._rows += rows
        return value  # type: ignore[no-any-return]

    def _options(self) -> Iterator[tuple[str, str, Row]]:
        """The options of plugins in every layer, the weakest first: folded id, option, row."""
        for own in sorted(self._plugin):
            for name, section in reversed(self._plugin[own]):
                for option, setting in as_table(section, f"[plugin.{name}]").items():
                    yield own, option, Row(f"plugin.{name}.{option}", plain(setting), setting.origin, setting.found)


def is_harmless_option(field: Field[Any] | None, value: Any) -> bool:
    """True for an option of a plugin that a found file may set: a number, a boolean, or any value of a field that the
    plugin has marked with `metadata={"found": True}`."""
    return type(value) in (bool, int, float) or (field is not None and field.metadata.get("found") is True)


def _warning(found: Found, rows: Sequence[Row]) -> str:
    import shlex

    keys = [f"{row.key} ({row.origin.removeprefix(found.path).replace(':', 'line ')})" for row in rows]
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return (f"{found.path} {found.why}: it cannot set {', '.join(keys[:MOST_NAMED])}{more}; "
            f"to let it: {shlex.join(found.remedy)}, or --config {shlex.quote(found.path)}")


def folded(plugin_id: str) -> str:
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
    return Config(*gather(argument, os.environ if environ is None else environ, here.absolute()))


def plugin_config(config: Config, plugin_id: str, cls: type[T]) -> T:
    """The section [plugin.<id>] as the plugin's own frozen dataclass `cls`.

    Raises InvalidArgument as `load_config`. Raises PluginError when `cls` is unfit or refuses the values.
    """
    values, _, _ = read_fields(cls, config.plugin_layers(plugin_id), f"plugin.{plugin_id}", is_harmless_option)
    with plugin_guard(f"Config of plugin {plugin_id}", hint=f"check [plugin.{plugin_id}]"):
        return cls(**values)
