"""OpRegistry: the ops of core and of all plugins by name, with their metadata functions and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ...errors import InvalidArgument, NotFound, PluginError, closest
from ..support.install import brings_named_ops, plugin_hint, plugin_of_op
from .op import OP_SET_PLUGIN, Attrs, MetadataRule, OpDef
from .op_table import Metas, OpCost, OpTable

CORE_OWNER = ""  # in the place of a plugin's id: core itself
_NONE: Mapping[str, Any] = MappingProxyType({})
MISSING_HINT = "'heald ops --missing MODEL' lists all that a model lacks"


class OpRegistry:
    """Ops by name: core's own ops, the ops of plugins' tables, and single ops of plugins.

    `missing` has the plugins that are not in use, each with the reason, for the error of an unknown op.
    """

    def __init__(self, core_ops: Mapping[str, OpDef] = _NONE, missing: Mapping[str, str] = _NONE) -> None:
        self._sources: list[tuple[str, Mapping[str, OpDef]]] = [(CORE_OWNER, core_ops)]  # (plugin, ops)
        self._added: dict[str, dict[str, OpDef]] = {}  # by plugin, its single ops
        self._tables: list[OpTable] = []
        self._has_op_set = False  # the table of a plugin that is no pack of a few named ops
        self._missing = missing
        self._known: dict[str, OpDef] = {}
        self._rules: dict[str, MetadataRule | None] = {}  # of ops that were asked for

    def get(self, name: str) -> OpDef:
        """The op called `name`.

        Raises NotFound with the names nearest to it, PluginError where two plugins declare it differently.
        """
        op = self._known.get(name)
        if op is None:
            op = self._known[name] = self._find_op(name)
        return op

    def __contains__(self, name: str) -> bool:
        return any(name in ops for _, ops in self._sources)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({name for _, ops in self._sources for name in ops}))

    def check(self, op: OpDef) -> None:
        """Raise InvalidArgument when an op of this name exists with another signature."""
        if op.name in self and self.get(op.name).signature != op.signature:
            raise InvalidArgument(
                f"op {op.name} is {_owner(self.plugin_of(op.name))} already, with another signature", op=op.name,
                hint="declare an equal signature, or name it MINE>OP, with a prefix of your own")

    def add(self, op: OpDef, plugin: str) -> None:
        """Add a plugin's op, checked before; naming an existing op again changes nothing."""
        if op.name not in self:
            if plugin not in self._added:
                self._added[plugin] = {}
                self._sources.append((plugin, self._added[plugin]))
            self._added[plugin][op.name] = op

    def add_table(self, table: OpTable, plugin: str) -> None:
        """Add a plugin's op set. A row is compared with the rows of other tables when its op is first asked for."""
        self._sources.append((plugin, table))
        self._tables.append(table)
        self._has_op_set = self._has_op_set or not brings_named_ops(plugin)
        self._known.clear()
        self._rules.clear()

    def plugin_of(self, name: str) -> str | None:
        """The plugin that brought the op first; None for core's own ops and for unknown ones."""
        plugin = next((plugin for plugin, ops in self._sources if name in ops), CORE_OWNER)
        return None if plugin == CORE_OWNER else plugin

    def metadata(self, op: OpDef) -> MetadataRule | None:
        """The op's metadata function, or None where neither plugin nor table has one."""
        if op.metadata is not None:
            return MetadataRule(op.metadata, op.values)
        if op.name not in self._rules:
            rules = (table.rule(op.name) for table in self._tables if op.name in table)
            self._rules[op.name] = next((rule for rule in rules if rule is not None), None)
        return self._rules[op.name]

    def cost(self, op: str, attrs: Attrs, inputs: Metas, outputs: Metas) -> OpCost | None:
        """The work of a node by the op's own table, or None where that is not known."""
        costs = (table.cost(op, attrs, inputs, outputs) for table in self._tables if op in table)
        return next((cost for cost in costs if cost is not None), None)

    def tiers(self) -> dict[str, int]:
        """The tier of each op that real graphs were found to have, as the tables say."""
        return {op: tier for table in self._tables for op, tier in table.tier_of.items()}

    def probes(self) -> list[str]:
        """The ops by which devices are probed, as the tables say."""
        return [table.probe for table in self._tables if table.probe is not None]

    def _find_op(self, name: str) -> OpDef:
        declared = [(plugin, ops[name]) for plugin, ops in self._sources if name in ops]
        if not declared:
            raise self._unknown(name)
        first, op = declared[0]
        for plugin, other in declared[1:]:
            if other.signature != op.signature:
                raise PluginError(f"op {name} of plugin {plugin} and {_owner(first)} have different signatures",
                                  op=name, hint=f"[plugins] block = ['{plugin}'] leaves one of them out")
        return op

    def _unknown(self, name: str) -> NotFound:
        return NotFound(f"no op is called '{name}'", op=name, hint=partial(self.hint_of_unknown, name))

    def hint_of_unknown(self, name: str) -> str:
        """The way to an op that is not registered: its plugin, or the nearest names."""
        plugin = plugin_of_op(name)
        if plugin is not None:
            return self._hint_of_plugin(plugin)
        spelled = name.replace("_", "").lower()
        similar_names = [op for op in self if op.lower() == spelled] or closest(name, self)
        hints = [f"did you mean {' or '.join(similar_names)}?" if similar_names else
                 "a plugin may bring it: heald plugins"]
        if not self._has_op_set:
            hints.append(self._without_tables())
        return "; ".join([*hints, MISSING_HINT])

    def _hint_of_plugin(self, plugin: str) -> str:
        """The way to an op that this plugin alone brings."""
        if plugin in self._missing:
            return f"plugin {plugin} brings it, which is {self._missing[plugin]}"
        return f"plugin {plugin} brings it: {plugin_hint(plugin)}"

    def _without_tables(self) -> str:
        if OP_SET_PLUGIN in self._missing:
            return f"no op set is in use: plugin {OP_SET_PLUGIN} is {self._missing[OP_SET_PLUGIN]}"
        return f"no op set is in use; TensorFlow's is installed with: {plugin_hint(OP_SET_PLUGIN)}"


def _owner(plugin: str | None) -> str:
    return "heald's own" if plugin in (None, CORE_OWNER) else f"plugin {plugin}'s"
