"""Config: the settings of this process, typed and closed, each with its origin.

A setting is taken from the strongest source that has it: the argument `config=`, environment variables
`WEFT_SECTION__KEY`, the file that `$WEFT_CONFIG` names, the nearest weft.toml, [tool.weft] of the nearest
pyproject.toml, the user's own file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .config_schema import Row, Setting, as_table, check_keys, plain, read_fields, read_layers
from .config_sources import gather
from .debug_config import DebugConfig
from .placement_config import PlacementConfig
from .plugin_code import plugin_code
from .work_queue import WorkQueueConfig

T = TypeVar("T")


@dataclass(frozen=True)
class PluginsConfig:
    """[plugins]. `block`: ids that are left out. `allow`: if given, the only installed ones that are loaded.
    `strict`: a plugin that cannot be used is an error. `load`: paths of one-file plugins, or module names."""

    block: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    strict: bool = False
    load: tuple[str, ...] = ()


@dataclass(frozen=True)
class AllocatorConfig:
    """[allocator]. `name`: the host allocator, "plain", "pooled", "counting", "poisoning" or one that a plugin brings.
    `limit`: how much of it may be in use at a time, as bytes, "2GiB" or "80%" of the physical memory."""

    name: str = "plain"
    limit: int | str | None = None


@dataclass(frozen=True)
class PassesConfig:
    """[passes]. `disable`: names of graph passes that are not run; "fusion" for kernels that do several nodes."""

    disable: tuple[str, ...] = ()


SECTIONS = ("plugins", "plugin", "placement", "kernels", "allocator", "work_queue", "passes", "debug")


class Config:
    """What the layers say together; `Config()` has every default. Raises InvalidArgument, with the origin."""

    def __init__(self, layers: Sequence[Setting] = ()) -> None:
        self._layers = [as_table(layer, "the config") for layer in layers]
        self._rows: list[Row] = []
        for layer in self._layers:
            check_keys(layer, SECTIONS, "")
        self.plugins = self._section(PluginsConfig, "plugins")
        self.placement = self._section(PlacementConfig, "placement")
        self.kernels: dict[str, str] = self._entries("kernels")  # op -> plugin
        self.allocator = self._section(AllocatorConfig, "allocator")
        self.work_queue = self._section(WorkQueueConfig, "work_queue")
        self.passes = self._section(PassesConfig, "passes")
        self.debug = self._section(DebugConfig, "debug")
        self._plugin: dict[str, list[tuple[str, Setting]]] = {}  # by folded id: (id as written, section)
        for setting in self._of("plugin"):
            for name, section in as_table(setting, "[plugin]").items():
                as_table(section, f"[plugin.{name}]")
                self._plugin.setdefault(folded(name), []).append((name, section))

    def plugin(self, plugin_id: str) -> dict[str, Any]:
        """The section [plugin.<id>] as it was given, unchecked: only the plugin knows its keys."""
        return {key: row.value for key, row in self._plugin_rows(folded(plugin_id)).items()}

    def plugin_layers(self, plugin_id: str) -> list[Setting]:
        return [section for _, section in self._plugin.get(folded(plugin_id), ())]

    def plugin_sections(self) -> dict[str, str]:
        """The ids that have a section [plugin.<id>], each with its origin."""
        return {sections[0][0]: sections[0][1].origin for sections in self._plugin.values()}

    def origins(self) -> list[Row]:
        """Every setting with its origin, defaults included; those of plugins as they were given."""
        given = (row for name in sorted(self._plugin) for row in self._plugin_rows(name).values())
        return [*self._rows, *given]

    def _of(self, section: str) -> list[Setting]:
        return [layer[section] for layer in self._layers if section in layer]

    def _section(self, cls: type[T], name: str) -> T:
        values, rows = read_fields(cls, self._of(name), name)
        self._rows += rows
        return cls(**values)

    def _entries(self, name: str) -> dict[str, str]:
        value, rows = read_layers(dict[str, str], self._of(name) or [Setting({}, "default")], name)
        self._rows += rows
        return value  # type: ignore[no-any-return]

    def _plugin_rows(self, plugin: str) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for name, section in reversed(self._plugin.get(plugin, ())):
            for key, setting in as_table(section, f"[plugin.{name}]").items():
                rows[key] = Row(f"plugin.{name}.{key}", plain(setting), setting.origin)
        return rows


def folded(plugin_id: str) -> str:
    """A plugin id for comparison: environment variables can spell neither case nor '-'."""
    return plugin_id.lower().replace("-", "_")


def load_config(
    argument: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Config:
    """The config of a process, by default this one in its working directory.

    Raises InvalidArgument for unknown keys, wrong types and broken TOML, NotFound for a file that was named
    and is not there; both say where the setting stands.
    """
    if isinstance(argument, Config):
        return argument
    here = Path(folder) if folder is not None else Path.cwd()
    return Config(gather(argument, os.environ if environ is None else environ, here.absolute()))


def plugin_config(config: Config, plugin_id: str, cls: type[T]) -> T:
    """The section [plugin.<id>] as the plugin's own frozen dataclass `cls`.

    Raises InvalidArgument as load_config does; PluginError when `cls` is unfit or refuses the values.
    """
    values, _ = read_fields(cls, config.plugin_layers(plugin_id), f"plugin.{plugin_id}")
    with plugin_code(f"Config of plugin {plugin_id}", hint=f"check [plugin.{plugin_id}]"):
        return cls(**values)
