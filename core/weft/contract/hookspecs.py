"""The hooks of a plugin, and what each is handed.

A plugin's light module has any of these functions, decorated with `hookimpl`. `config` is the plugin's own section
`[plugin.<id>]`, checked against the module's frozen dataclass `Config`; a hook need not take it.

A config file that was found by searching may come from a stranger. It sets options that are numbers or booleans, and
those whose field says `field(default=..., metadata={"found": True})`: the plugin promises that no value of them is
harmful.

What a plugin registers is gathered in a Contribution and counts only when all its hooks have returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pluggy

from ..errors import PluginError
from .device import DeviceType
from .graph_pass import FUSION, STAGES, GraphPass
from .host_kernel import HostPack
from .kernel import KernelPack
from .op import OpDef
from .op_spec import OpSpec

PROJECT = "weft"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
Factory = str | Callable[..., Any]


@dataclass
class Contribution:
    """All that one plugin registers."""

    plugin: str
    config: Any = None
    device_types: list[DeviceType] = field(default_factory=list)
    ops: list[OpDef] = field(default_factory=list)
    packs: list[KernelPack] = field(default_factory=list)
    host_packs: list[HostPack] = field(default_factory=list)
    allocators: dict[str, Factory] = field(default_factory=dict)
    work_queues: dict[str, Factory] = field(default_factory=dict)
    passes: list[GraphPass] = field(default_factory=list)


class DeviceRegistrar:
    def __init__(self, to: Contribution) -> None:
        self._to = to

    def device(
        self, *, type: str, scan: str | Callable[..., Iterable[Any]],  # noqa: A002 - the contract's word
        kernels: str | Callable[..., None] | None = None, priority: int = 0,
    ) -> None:
        """Announce a device type. `scan(config)` yields its devices; nothing is imported before the type is used."""
        if re.fullmatch(r"[A-Z_][A-Z0-9_]*", type) is None:
            raise PluginError(f"device type '{type}' must be written in capitals, digits and '_'")
        if any(announced.type == type for announced in self._to.device_types):
            raise PluginError(f"device type '{type}' is announced twice")
        self._to.device_types.append(DeviceType(type, scan, kernels, priority, self._to.plugin, self._to.config))
        if kernels is not None:
            self._to.packs.append(KernelPack(type, kernels, 0, self._to.plugin, own=True))


class OpRegistrar:
    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, op: OpSpec) -> None:
        """Declare an op of the plugin's own."""
        definition = op.definition()
        if any(known.name == definition.name for known in self._to.ops):
            raise PluginError(f"op '{definition.name}' is declared twice")
        self._to.ops.append(definition)


class KernelPackRegistrar:
    def __init__(self, to: Contribution) -> None:
        self._to = to

    def kernels(self, device_type: str, register: str | Callable[..., None], *, priority: int = 0) -> None:
        """Bring kernels for a device type, whoever's it is; inert where no plugin announces that type."""
        self._to.packs.append(KernelPack(device_type, register, priority, self._to.plugin))

    def host_kernels(self, register: str | Callable[..., None]) -> None:
        """Bring kernels of host programs: `register(kernels)` is called when a program first asks for one."""
        self._to.host_packs.append(HostPack(register, self._to.plugin))


class FactoryRegistrar:
    def __init__(self, kind: str, entries: dict[str, Factory]) -> None:
        self._kind = kind
        self._entries = entries

    def add(self, name: str, factory: Factory) -> None:
        """Offer a factory under a name for config to choose: `factory()` gives an allocator, `factory(config)` with a
        WorkQueueConfig a work queue. One that is named "module:function" is imported when it is chosen."""
        if name in self._entries:
            raise PluginError(f"{self._kind} '{name}' is registered twice")
        self._entries[name] = factory


class PassRegistrar:
    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(
        self, name: str, function: Factory, *, stage: str = "graph", after: Sequence[str] = (),
        before: Sequence[str] = (),
    ) -> None:
        """Offer a pass, (Graph, PassContext) -> Graph, under a name; it runs unless `[passes] disable` names it. One
        that is named "module:function" is imported when it first runs."""
        if stage not in STAGES:
            raise PluginError(f"pass '{name}' wants stage '{stage}'; stages are {', '.join(STAGES)}")
        if name == FUSION or any(known.name == name for known in self._to.passes):
            raise PluginError(f"pass '{name}' is registered twice")
        self._to.passes.append(GraphPass(name, function, stage, tuple(after), tuple(before), self._to.plugin))


class Hooks:
    """The specifications that pluggy checks a plugin's hooks against."""

    @hookspec
    def weft_devices(self, registry: DeviceRegistrar, config: Any) -> None:
        """Announce device types: registry.device(type=, scan=, kernels=, priority=)."""

    @hookspec
    def weft_ops(self, registry: OpRegistrar, config: Any) -> None:
        """Declare ops: registry.add(OpSpec(...))."""

    @hookspec
    def weft_kernels(self, registry: KernelPackRegistrar, config: Any) -> None:
        """Bring kernels for any device type, registry.kernels(type, register, priority=), and for host programs,
        registry.host_kernels(register)."""

    @hookspec
    def weft_allocators(self, registry: FactoryRegistrar, config: Any) -> None:
        """Offer host allocators: registry.add(name, factory)."""

    @hookspec
    def weft_work_queues(self, registry: FactoryRegistrar, config: Any) -> None:
        """Offer work queues: registry.add(name, factory)."""

    @hookspec
    def weft_passes(self, registry: PassRegistrar, config: Any) -> None:
        """Offer graph passes: registry.add(name, function, stage=, after=, before=)."""


def registrars(to: Contribution) -> dict[str, Any]:
    """By hook, the registry that it is handed: its entries go to `to`."""
    return {
        "weft_devices": DeviceRegistrar(to),
        "weft_ops": OpRegistrar(to),
        "weft_kernels": KernelPackRegistrar(to),
        "weft_allocators": FactoryRegistrar("allocator", to.allocators),
        "weft_work_queues": FactoryRegistrar("work queue", to.work_queues),
        "weft_passes": PassRegistrar(to),
    }
