"""Names in config of plugins, device types, ops, passes, allocators and work queues that no plugin has.

They are compared once all plugins are loaded, whether or not a run would use them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from ...errors import HealdError, closest
from ..config.config import Config, folded_id
from ..config.schema import SettingRow
from ..contract.device import DeviceName
from ..host.registries import Registries
from ..support.install import plugin_hint

_NAMES_OF_PARTS = r"allocator\.name|work_queue\.name|work_queues\..*\.name|eager\.handler"


def unknown_names(config: Config, registries: Registries, plugins: Collection[str]) -> Iterator[str]:
    """Yield a text for each name in config that nothing has. `plugins`: the ids of all plugins."""
    for row in config.plugin_sections():
        if not _has(row.key, plugins):
            yield _not_installed(f"[plugin.{row.key}] ({row.origin})", row.key, plugins)
    names = _RegisteredNames(registries, plugins)
    for row in config.origins():
        if row.origin != "default" and not row.key.startswith("plugin."):
            yield from names.unknown(row)


def unusable_keys(config: Config, registries: Registries) -> set[str]:
    """The settings of found files that name an allocator, a work queue or an op handler which nothing has."""
    rows = [row for row in config.origins()
            if row.found_file is not None and re.fullmatch(_NAMES_OF_PARTS, row.key, re.DOTALL)]
    if not rows:
        return set()
    names = _RegisteredNames(registries, ())
    return {row.key for row in rows if any(names.unknown(row))}


class _RegisteredNames:
    """The registered names, by the kind of thing that a setting names."""

    def __init__(self, registries: Registries, plugins: Collection[str]) -> None:
        from ..contract.graph_pass import FUSION

        self._plugins = plugins
        self._types = [announced.type for announced in registries.device_types.by_priority()]
        self._ops = registries.ops
        self._handlers = registries.op_handlers
        self._named: dict[str, tuple[str, Collection[str]]] = {
            "plugins.block": ("plugin", plugins), "plugins.allow": ("plugin", plugins),
            "placement.order": ("device type", self._types),
            "passes.disable": ("pass", [*registries.passes, *registries.compilers, FUSION]),
            "allocator.name": ("allocator", registries.allocators),
            "work_queue.name": ("work queue", registries.work_queues),
        }

    def unknown(self, row: SettingRow) -> Iterator[str]:
        section, _, entry = row.key.partition(".")
        if section == "work_queues" and entry.endswith(".name"):
            yield from self._unknown_among(row, "work queue", self._named["work_queue.name"][1])
        elif section == "kernels":
            if entry not in self._ops:
                yield _unknown(row.key, row, "op", entry, self._ops)
            if not _has(row.value, self._plugins):
                yield _not_installed(f"{row.key} = '{row.value}' ({row.origin})", row.value, self._plugins)
        elif row.key == "eager.handler":
            names = row.value if isinstance(row.value, tuple) else (row.value,)
            named = tuple(name for name in names if ":" not in name)  # a device's handler has the device's name
            yield from self._unknown_among(row._replace(value=named), "op handler", self._handlers)
        elif row.key in self._named:
            yield from self._unknown_among(row, *self._named[row.key])
        elif row.key.startswith("placement.remap."):
            yield from self._unknown_target(row)
        elif row.key.startswith("placement.provider."):
            device_type = row.key.removeprefix("placement.provider.")
            yield from self._unknown_among(row._replace(value=device_type), "device type", self._types)
            yield from self._unknown_among(row, "plugin", self._plugins)

    def _unknown_among(self, row: SettingRow, kind: str, known_names: Collection[str]) -> Iterator[str]:
        for name in row.value if isinstance(row.value, tuple) else (row.value,):
            if isinstance(name, str) and name != "auto" and not _has(name, known_names, exact=kind != "plugin"):
                yield _unknown(row.key, row, kind, name, known_names)

    def _unknown_target(self, row: SettingRow) -> Iterator[str]:
        """Only the replacing device has to be there: a request is replaced since its own device is not."""
        try:
            target_type = DeviceName.parse(row.value).type
        except HealdError as error:
            yield f"{row.key} ({row.origin}): {error.message}"
            return
        if target_type is not None and target_type not in self._types:
            yield _unknown(row.key, row, "device type", target_type, self._types)


def _has(name: Any, known_names: Collection[str], *, exact: bool = False) -> bool:
    return name in known_names if exact else folded_id(name) in map(folded_id, known_names)


def _unknown(key: str, row: SettingRow, kind: str, name: str, known_names: Collection[str] | Any) -> str:
    by_capitals = {known_name.upper(): known_name for known_name in map(str, known_names)}
    similar_names = [by_capitals[text] for text in closest(name.upper(), by_capitals, limit=1)]
    remedy = f"did you mean {similar_names[0]}?" if similar_names else _known_names_hint(by_capitals.values(), kind)
    return f"{key} ({row.origin}) names the {kind} '{name}', which is not there; {remedy}"


def _known_names_hint(known_names: Collection[str], kind: str) -> str:
    return "heald ops --all lists them" if kind == "op" else f"known: {', '.join(sorted(known_names)) or 'none'}"


def _not_installed(mention: str, plugin_id: str, known_ids: Collection[str]) -> str:
    similar_ids = closest(plugin_id, known_ids)
    remedy = f"did you mean {similar_ids[0]}?" if similar_ids else plugin_hint(folded_id(plugin_id))
    return f"{mention} is for a plugin that is not installed{f'; {remedy}' if remedy else ''}"
