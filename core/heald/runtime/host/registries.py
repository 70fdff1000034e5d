"""Registries: the registrations of all plugins by kind, for placement, linking and the Host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...errors import PluginError
from ..contract import structural
from ..contract.device import DeviceTypeRegistry, load_callable
from ..contract.host_kernel import CORE_PLUGIN, HostKernelRegistry, HostPack
from ..contract.kernel import KernelRegistry
from ..contract.op_registry import OpRegistry
from ..support.plugin_guard import plugin_guard
from . import allocators, work_queues

if TYPE_CHECKING:
    from ..contract.command import CommandRegistry
    from ..contract.compiler import CompilerEntry
    from ..contract.graph_pass import GraphPass
    from ..contract.hookspecs import Contribution, Factory
    from ..contract.loader import LoaderEntry
    from ..contract.op_handler import OpHandlerEntry
    from ..contract.operator_table import OperatorTable
    from ..contract.session import SessionRegistry


class Registries:
    """Filled while plugins are loaded, one whole Contribution at a time; read after that."""

    def __init__(
        self, kernel_override: Mapping[str, str] | None = None, provider: Mapping[str, str] = MappingProxyType({}),
        disabled: Collection[str] = (),
    ) -> None:
        """`disabled`: names of compilers that are left out."""
        self.missing_plugins: dict[str, str] = {}  # plugins that are not in use, and why
        self.ops = OpRegistry(structural.OPS, self.missing_plugins)
        self.device_types = DeviceTypeRegistry(provider)
        self.kernels = KernelRegistry(self.device_types, kernel_override, self.ops)
        self.host_kernels = HostKernelRegistry()
        self.host_kernels.add_pack(HostPack("heald.runtime.host_kernels:register", CORE_PLUGIN))
        self.allocators: dict[str, str | Callable[..., Any]] = dict(allocators.BUILT_IN_ALLOCATORS)
        self.work_queues: dict[str, str | Callable[..., Any]] = dict(work_queues.BUILT_IN_QUEUES)
        self.passes: dict[str, GraphPass] = {}
        self.operators: OperatorTable | None = None
        self._owners: dict[tuple[str, str], str] = {}  # (kind, name) to the plugin that registered it; none for core's
        self.op_handlers: dict[str, OpHandlerEntry] = {}
        self.compilers: dict[str, CompilerEntry] = {}
        self._disabled = frozenset(disabled)
        self.graph_models: Factory | None = None  # makes models of files whose Source has a graph

    @cached_property
    def commands(self) -> CommandRegistry:
        from ..contract.command import CommandRegistry

        return CommandRegistry()

    @cached_property
    def sessions(self) -> SessionRegistry:
        from ..contract.session import SessionRegistry

        return SessionRegistry()

    @cached_property
    def loaders(self) -> dict[str, LoaderEntry]:
        from ..contract.loader import LoaderEntry

        return {"bef": LoaderEntry("bef", "heald.runtime.program.bef.loader:LOADER", CORE_PLUGIN)}

    def owner_of(self, kind: str, name: str) -> str | None:
        """The plugin that registered the "allocator", "work queue" or other part of this name; None for core's."""
        return self._owners.get((kind, name))

    def enabled_compilers(self) -> list[CompilerEntry]:
        """Return the compilers that config does not disable, in the order in which they claim."""
        if not self.compilers:
            return []
        from ..contract.compiler import compilers_by_priority

        return compilers_by_priority(entry for name, entry in self.compilers.items() if name not in self._disabled)

    def check_factories(self, queues: Iterable[str], handlers: Iterable[str]) -> None:
        """Import the factories that config names. Raises PluginError for one that cannot be imported.

        A queue or handler is made when a run first asks for it; its name is checked before that.
        """
        handler_factories = {name: entry.factory for name, entry in self.op_handlers.items()}
        for kind, factories, names in (("work queue", self.work_queues, queues),
                                       ("op handler", handler_factories, handlers)):
            for name in names:
                owner = self._owners.get((kind, name))
                if owner not in (None, CORE_PLUGIN):
                    with plugin_guard(f"the factory of {kind} '{name}' of plugin {owner}"):
                        load_callable(factories[name])

    def add(self, brought: Contribution) -> None:
        """Add all registrations of a plugin. If one of them does not fit, none is added, and the error names it."""
        named = (
            ("allocator", self.allocators, brought.allocators),
            ("work queue", self.work_queues, brought.work_queues),
            ("pass", self.passes, {p.name: p for p in brought.passes}),
            ("loader", self.loaders if brought.loaders else {}, brought.loaders),
            ("op handler", self.op_handlers, brought.op_handlers),
            ("compiler", self.compilers, brought.compilers),
            ("table", {} if self.operators is None else {"operators": self.operators},
             dict.fromkeys(("operators",) if brought.operators else ())),
            ("function", {} if self.graph_models is None else {"graph_models": self.graph_models},
             dict.fromkeys(("graph_models",) if brought.graph_models else ())),
        )
        for kind, registered, theirs in named:
            for name in registered.keys() & theirs.keys():
                owner = self._owners.get((kind, name))
                whose = "heald's own" if owner in (None, CORE_PLUGIN) else f"plugin {owner}'s"
                block = "" if owner in (None, CORE_PLUGIN) else f"; or set [plugins] block = ['{owner}']"
                raise PluginError(f"{kind} '{name}' is {whose} already",
                                  hint=f"rename it, or leave it out, in plugin {brought.plugin}{block}")
        self._owners.update({(kind, name): brought.plugin for kind, _, theirs in named for name in theirs})
        for op in brought.ops:
            self.ops.check(op)
        for table in brought.op_tables:
            self.ops.add_table(table, brought.plugin)
        for op in brought.ops:
            self.ops.add(op, brought.plugin)
        for announced in brought.device_types:
            self.device_types.add(announced)
        for pack in brought.packs:
            self.kernels.add_pack(pack)
        for host_pack in brought.host_packs:
            self.host_kernels.add_pack(host_pack)
        self.allocators |= brought.allocators
        self.work_queues |= brought.work_queues
        self.passes |= {p.name: p for p in brought.passes}
        for command in brought.commands:
            self.commands.add(command)
        for factory in brought.sessions:
            self.sessions.add(factory)
        self.operators = brought.operators[0] if brought.operators else self.operators
        self.graph_models = brought.graph_models or self.graph_models
        if brought.loaders:
            self.loaders.update(brought.loaders)
        self.op_handlers |= brought.op_handlers
        self.compilers |= brought.compilers
