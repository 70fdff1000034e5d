"""The hooks of a plugin, and the registry that each hook receives.

A plugin's light module defines any of these functions, decorated with `hookimpl`. A hook takes `registry` and,
optionally, `config`: the plugin's own section `[plugin.<id>]`, checked against the module's frozen dataclass `Config`.

A config file that was found by searching may come from a stranger. It sets options that are numbers or booleans. It
sets another option only when its field has `field(default=..., metadata={"found": True})`: with that the plugin
promises that no value of the option is harmful.

All registrations of a plugin are gathered in a Contribution. They count only when all its hooks have returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ...errors import PluginError
from ..support.records import NamedTuple, dataclass
from .device import DeviceType
from .host_kernel import HostPack
from .kernel import KernelPack
from .op import OpDef
from .op_spec import OpSpec
from .op_table import OpTable

if TYPE_CHECKING:
    from .command import AddArguments, Command, Run
    from .compiler import Compiler, CompilerEntry
    from .graph_pass import GraphPass
    from .loader import Loader, LoaderEntry
    from .op_handler import OpHandlerEntry
    from .operator_table import OperatorTable
    from .session import SessionFactory

PLUGGY_PROJECT = "heald"
MARK = f"{PLUGGY_PROJECT}_impl"  # the attribute of a marked function, as pluggy's marker sets it
Factory = str | Callable[..., Any]  # a function, or "package.module:function", which is imported when it is used

F = TypeVar("F", bound=Callable[..., object])


@overload
def hookimpl(function: F) -> F: ...


@overload
def hookimpl(function: None = None, **options: Any) -> Callable[[F], F]: ...


def hookimpl(function: F | None = None, **options: Any) -> F | Callable[[F], F]:
    """Decorate the functions `heald_...` of a plugin's module, as `pluggy.HookimplMarker("heald")` does."""
    if options or function is None:
        import pluggy

        return pluggy.HookimplMarker(PLUGGY_PROJECT)(function, **options)
    setattr(function, MARK, dict(PLAIN_MARK))
    return function


# The options of a hook that is marked without arguments.
PLAIN_MARK = {"wrapper": False, "hookwrapper": False, "optionalhook": False, "tryfirst": False, "trylast": False,
              "specname": None}


class HookCall(NamedTuple):
    """A call of a plugin's hook, as the wrappers of other plugins see it in the place of its registry."""

    plugin: str
    hook: str


@dataclass(eq=False, repr=False)
class Contribution:
    """All registrations of one plugin."""

    plugin: str
    config: Any = None
    device_types: list[DeviceType] = field(default_factory=list)
    ops: list[OpDef] = field(default_factory=list)
    op_tables: list[OpTable] = field(default_factory=list)
    packs: list[KernelPack] = field(default_factory=list)
    host_packs: list[HostPack] = field(default_factory=list)
    allocators: dict[str, Factory] = field(default_factory=dict)
    work_queues: dict[str, Factory] = field(default_factory=dict)
    passes: list[GraphPass] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    loaders: dict[str, LoaderEntry] = field(default_factory=dict)
    graph_models: Factory | None = None
    sessions: list[SessionFactory] = field(default_factory=list)
    operators: list[OperatorTable] = field(default_factory=list)
    op_handlers: dict[str, OpHandlerEntry] = field(default_factory=dict)
    compilers: dict[str, CompilerEntry] = field(default_factory=dict)


class DeviceRegistrar:
    """Receives the device types of the hook `heald_devices`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def device(
        self, *, type: str, scan: str | Callable[..., Iterable[Any]],  # noqa: A002 - the contract's word
        kernels: str | Callable[..., None] | None = None, priority: int = 0,
    ) -> None:
        """Announce a device type. `scan(config)` yields its devices, `kernels` registers kernels for them. Nothing is
        imported before the type is used.

        Raises PluginError for a name that is not in capitals, and for a second announcement of the type.
        """
        if re.fullmatch(r"[A-Z_][A-Z0-9_]*", type) is None:
            raise PluginError(f"device type '{type}' must be written in capitals, digits and '_'")
        if any(announced.type == type for announced in self._to.device_types):
            raise PluginError(f"device type '{type}' is announced twice")
        self._to.device_types.append(DeviceType(type, scan, kernels, priority, self._to.plugin, self._to.config))
        if kernels is not None:
            self._to.packs.append(KernelPack(type, kernels, 0, self._to.plugin, is_of_device_plugin=True))


class OpRegistrar:
    """Receives the ops and operators of the hook `heald_ops`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, op: OpSpec) -> None:
        """Declare an op of the plugin. Raises InvalidArgument for a wrong notation, PluginError for a second
        declaration."""
        definition = op.definition()
        if any(op_def.name == definition.name for op_def in self._to.ops):
            raise PluginError(f"op '{definition.name}' is declared twice")
        self._to.ops.append(definition)

    def add_table(self, table: OpTable) -> None:
        """Bring an op set. Its file must be there; it is read when an op is first asked for."""
        if not isinstance(table, OpTable):
            raise PluginError(f"add_table takes an OpTable, not {type(table).__name__}", hint="OpTable(rows=Path(...))")
        if not isinstance(table.rows, Path):
            raise PluginError(f"the rows of an OpTable are a pathlib.Path, not {type(table.rows).__name__}")
        if not table.rows.is_file():
            raise PluginError(f"the op table '{table.rows}' is not there", hint="install the plugin again")
        self._to.op_tables.append(table)


    def add_operators(self, table: OperatorTable) -> None:
        """Bring the operators of TensorHandles. Raises PluginError for another object, for an unknown symbol, and for a
        second table."""
        from .operator_table import SYMBOLS, OperatorTable

        if not isinstance(table, OperatorTable):
            raise PluginError(f"add_operators takes an OperatorTable, not {type(table).__name__}")
        unknown = [symbol for symbol in table.ops if symbol not in SYMBOLS]
        if unknown:
            raise PluginError(f"the operator table has the symbol '{unknown[0]}'; symbols are {' '.join(SYMBOLS)}")
        if self._to.operators:
            raise PluginError("a second operator table is registered")
        self._to.operators.append(table)


class KernelPackRegistrar:
    """Receives the kernel packs of the hook `heald_kernels`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def kernels(self, device_type: str, register: str | Callable[..., None], *, priority: int = 0) -> None:
        """Register kernels for a device type of any plugin. They are inert while no plugin announces that type."""
        self._to.packs.append(KernelPack(device_type, register, priority, self._to.plugin))

    def host_kernels(self, register: str | Callable[..., None]) -> None:
        """Register kernels of host programs. `register(kernels)` is called when a program first asks for a host
        kernel."""
        self._to.host_packs.append(HostPack(register, self._to.plugin))


class FactoryRegistrar:
    """Receives the factories of the hooks `heald_allocators` and `heald_work_queues`."""

    def __init__(self, kind: str, entries: dict[str, Factory]) -> None:
        self._kind = kind
        self._entries = entries

    def add(self, name: str, factory: Factory) -> None:
        """Register a factory under a name that config can choose. Raises PluginError for a second factory of that name.

        `factory()` returns an allocator. `factory(config)` returns a work queue for a WorkQueueConfig. A factory that
        is named "module:function" is imported when it is chosen.
        """
        if name in self._entries:
            raise PluginError(f"{self._kind} '{name}' is registered twice")
        self._entries[name] = factory


class PassRegistrar:
    """Receives the graph passes of the hook `heald_passes`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(
        self, name: str, function: Factory, *, stage: str = "graph", after: Sequence[str] = (),
        before: Sequence[str] = (), about: str = "", preserves: str = "", repeats: str = "",
    ) -> None:
        """Register a pass, (Graph, PassContext) -> Graph, under a name. It runs unless `[passes] disable` names it. A
        pass that is named "module:function" is imported when it first runs. `stage` is "graph", for the part of the
        graph that a step needs, "pre_placement", for a session's whole graph, or "on_request", for a pass that no
        session runs by itself.

        `after` and `before` are names of passes. `heald opt --list-passes` shows `about`, the effect in a line,
        `preserves`, the properties that stay, and `repeats`, the reason why the pass is not idempotent, if it is not.

        Raises PluginError for an unknown stage, and for a second pass of that name.
        """
        from .graph_pass import FUSION, STAGES, GraphPass

        if stage not in STAGES:
            raise PluginError(f"pass '{name}' wants stage '{stage}'; stages are {', '.join(STAGES)}")
        if name == FUSION or any(graph_pass.name == name for graph_pass in self._to.passes):
            raise PluginError(f"pass '{name}' is registered twice")
        self._to.passes.append(GraphPass(name, function, stage, tuple(after), tuple(before), self._to.plugin,
                                         about, preserves, repeats))


class CommandRegistrar:
    """Receives the commands of the hook `heald_commands`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, name: str, *, help: str, add_arguments: str | AddArguments, run: str | Run) -> None:  # noqa: A002
        """Offer the command `heald NAME`; `help` is its line in `heald --help`, without a capital and a full stop.

        `add_arguments(parser)` declares its options on an ArgumentParser. `run(args)` takes the Namespace and returns
        the exit status. Either may be "module:function", which is imported when the command is chosen. Raises
        PluginError for a name that no shell takes plainly, a help that is no line of text, and a second registration.
        """
        from .command import Command

        if re.fullmatch(r"[a-z][a-z0-9-]*", name) is None:
            raise PluginError(f"command {name!r} must be written in small letters, digits and '-'")
        if not help.strip() or not help.isprintable():
            raise PluginError(f"command '{name}' has the help {help!r}", hint="write one line of text")
        for what, argument in (("add_arguments", add_arguments), ("run", run)):
            if not callable(argument) and not (
                    isinstance(argument, str) and re.fullmatch(r"[\w.]+:\w+", argument) is not None):
                raise PluginError(f"command '{name}' has {what}={argument!r}",
                                  hint="give a function, or its place as 'package.module:function'")
        if any(command.name == name for command in self._to.commands):
            raise PluginError(f"command '{name}' is registered twice")
        self._to.commands.append(Command(name, help, add_arguments, run, self._to.plugin))


class LoaderRegistrar:
    """Receives the loaders of the hook `heald_loaders`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, name: str, loader: str | Loader) -> None:
        """Register a loader under a format's name, which is `format=` of `heald.load`. A loader that is named
        "package.module:object" is imported when a file is first loaded."""
        from .loader import LoaderEntry, check_loader

        if name in self._to.loaders:
            raise PluginError(f"loader '{name}' is registered twice")
        if not isinstance(loader, str):
            check_loader(loader, name)
        self._to.loaders[name] = LoaderEntry(name, loader, self._to.plugin)

    def graph_models(self, factory: Factory) -> None:
        """Register the function that makes the models of files with a graph. Core's graphs do; a second plugin is a
        conflict. `factory(path, inputs=, outputs=, device=, config=, signature=, tags=, form=, mmap=)` takes the
        arguments of `heald.load`."""
        self._to.graph_models = factory


class SessionRegistrar:
    """Receives the session factories of the hook `heald_sessions`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, prefix: str, factory: Factory) -> None:
        """Register a session factory for the targets "PREFIX" and "PREFIX:...".

        `factory(graph, config, target=, device=)` takes the arguments of `heald.Session` as they were given, and
        returns a SessionInterface. A factory that is named "module:function" is imported when it is chosen. Raises
        PluginError for a prefix that is not written as the scheme of a URL, and for a second factory of the prefix.
        """
        from .session import SessionFactory

        if re.fullmatch(r"[a-z][a-z0-9+.-]*", prefix) is None:
            raise PluginError(f"session target {prefix!r} must be written in small letters, digits and '+.-'")
        if not callable(factory) and (not isinstance(factory, str) or re.fullmatch(r"[\w.]+:\w+", factory) is None):
            raise PluginError(f"session target '{prefix}' has the factory {factory!r}",
                              hint="give a function, or its place as 'package.module:function'")
        if any(session_factory.name == prefix for session_factory in self._to.sessions):
            raise PluginError(f"session target '{prefix}' is registered twice")
        self._to.sessions.append(SessionFactory(prefix, factory, self._to.plugin))


class OpHandlerRegistrar:
    """Receives the op handlers of the hook `heald_op_handlers`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, name: str, factory: Factory) -> None:
        """Register an op handler under a name that `handler=` and `[eager] handler` choose.

        `factory(context, fallback)` takes an OpHandlerContext and the next handler of the chain, and returns an
        OpHandler. A factory that is named "module:function" is imported when it is chosen. Raises PluginError for a
        name that is no word, which a device's handler has, and for a second factory of that name.
        """
        from .op_handler import OpHandlerEntry

        if re.fullmatch(r"[a-z][a-z0-9_-]*", name) is None:
            raise PluginError(f"op handler {name!r} must be written in small letters, digits, '_' and '-'")
        if name in self._to.op_handlers:
            raise PluginError(f"op handler '{name}' is registered twice")
        self._to.op_handlers[name] = OpHandlerEntry(name, factory, self._to.plugin)


class CompilerRegistrar:
    """Receives the compilers of the hook `heald_compilers`."""

    def __init__(self, to: Contribution) -> None:
        self._to = to

    def add(self, name: str, compiler: str | Compiler, *, device_type: str, priority: int = 0) -> None:
        """Register a compiler of groups of nodes for a device type of any plugin. It claims unless `[passes] disable`
        names it. A compiler that is named "package.module:object" is imported when a step first has such a device.

        Compilers of a higher `priority` claim first, and those of one priority in order of name. Raises PluginError for
        a name that is no word, an object without the methods of a Compiler, and a second compiler of that name.
        """
        from .compiler import CompilerEntry, check_compiler

        if not isinstance(name, str) or re.fullmatch(r"[a-z][a-z0-9_-]*", name) is None:
            raise PluginError(f"compiler {name!r} must be written in small letters, digits, '_' and '-'")
        if name in self._to.compilers:
            raise PluginError(f"compiler '{name}' is registered twice")
        if type(priority) is not int:
            raise PluginError(f"compiler '{name}' has priority={priority!r}, expected an int")
        if not isinstance(compiler, str):
            check_compiler(compiler, name)
        self._to.compilers[name] = CompilerEntry(name, compiler, device_type, priority, self._to.plugin)


class Hooks:
    """The specifications of a plugin's hooks."""

    def heald_devices(self, registry: DeviceRegistrar, config: Any) -> None:
        """Announce device types: registry.device(type=, scan=, kernels=, priority=)."""

    def heald_ops(self, registry: OpRegistrar, config: Any) -> None:
        """Declare ops, registry.add(OpSpec(...)), or an op set, registry.add_table(OpTable(...))."""

    def heald_kernels(self, registry: KernelPackRegistrar, config: Any) -> None:
        """Register kernels: for any device type with registry.kernels(type, register, priority=), for host programs
        with registry.host_kernels(register)."""

    def heald_allocators(self, registry: FactoryRegistrar, config: Any) -> None:
        """Register host allocators: registry.add(name, factory)."""

    def heald_work_queues(self, registry: FactoryRegistrar, config: Any) -> None:
        """Offer work queues: registry.add(name, factory)."""

    def heald_passes(self, registry: PassRegistrar, config: Any) -> None:
        """Offer graph passes: registry.add(name, function, stage=, after=, before=)."""

    def heald_commands(self, registry: CommandRegistrar, config: Any) -> None:
        """Offer commands of the program `heald`: registry.add(name, help=, add_arguments=, run=)."""

    def heald_loaders(self, registry: LoaderRegistrar, config: Any) -> None:
        """Register loaders of file formats: registry.add(name, loader)."""

    def heald_sessions(self, registry: SessionRegistrar, config: Any) -> None:
        """Register session factories by the prefix of their targets: registry.add(prefix, factory)."""

    def heald_op_handlers(self, registry: OpHandlerRegistrar, config: Any) -> None:
        """Register op handlers of eager ops: registry.add(name, factory)."""

    def heald_compilers(self, registry: CompilerRegistrar, config: Any) -> None:
        """Register compilers of groups of nodes: registry.add(name, compiler, device_type=, priority=)."""


def registrars(to: Contribution) -> dict[str, Any]:
    """The registry that each hook receives, by the hook's name. Its registrations go to `to`."""
    return {
        "heald_devices": DeviceRegistrar(to),
        "heald_ops": OpRegistrar(to),
        "heald_kernels": KernelPackRegistrar(to),
        "heald_allocators": FactoryRegistrar("allocator", to.allocators),
        "heald_work_queues": FactoryRegistrar("work queue", to.work_queues),
        "heald_passes": PassRegistrar(to),
        "heald_commands": CommandRegistrar(to),
        "heald_loaders": LoaderRegistrar(to),
        "heald_sessions": SessionRegistrar(to),
        "heald_op_handlers": OpHandlerRegistrar(to),
        "heald_compilers": CompilerRegistrar(to),
    }
