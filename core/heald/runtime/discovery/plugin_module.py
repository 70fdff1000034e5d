"""From a plugin's light module to its Contribution: import, version of the contract, settings, hooks.

Hooks are called directly, with the semantics of pluggy's PluginManager. Importing pluggy takes 4 ms of a start, and one
PluginManager with the hooks of all installed plugins 9 ms: median of 20 starts, of 93 ms for a host and 161 ms for
`heald.load`. A start imports pluggy only for a plugin with hooks of more than the plain form.

- Each hook of a plugin is called once. Its exception is the fault of its plugin, as is a hook that takes too long.
- Wrappers nest as pluggy's: `tryfirst` outermost, `trylast` innermost, a later plugin around an earlier one,
  but among `trylast` within it. A wrapper observes, and never changes a result.
- `tryfirst` and `trylast` of other hooks are accepted and decide nothing: priorities and names decide between rivals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from ...errors import DeadlineExceeded, InvalidArgument, PluginError, closest
from ..config.config import Config, plugin_config
from ..contract.api_version import API
from ..contract.hookspecs import MARK, PLAIN_MARK, PLUGGY_PROJECT, Contribution, Hooks, registrars
from ..support.install import CORE, named_hint
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple
from ..support.time_limit import run_within
from .plugin_record import Incompatible

if TYPE_CHECKING:
    import pluggy

    from .hook_observers import HookObserver

LONGEST_HOOKS_SECONDS = 10.0  # of all hooks of a plugin; no other plugin works before they end
HookTable = dict[str, tuple[Callable[..., Any], tuple[str, ...]]]  # by hook, its function and parameters
WrapperTable = dict[str, tuple[Callable[..., Any], tuple[str, ...], int]]  # and -1 for tryfirst, 1 for trylast
Source = ModuleType | Path | str  # a module, the file of a one-file plugin, "package.module"
_SPECS = [name for name in vars(Hooks) if name.startswith("heald_")]
_WRAPPERS = (staticmethod, classmethod, MethodType)  # pluggy takes them for hooks
_OPEN_PARAMETERS = CO_VARARGS | CO_VARKEYWORDS


def import_plugin(source: Source, *, is_installed: bool = True) -> ModuleType:
    """The plugin's module. Raises PluginError when it does not exist or cannot be imported.

    `is_installed`: a distribution announces it; else config or the command line names it.
    """
    if isinstance(source, Path):
        return _import_file(source)
    if isinstance(source, ModuleType):
        return source
    try:
        with plugin_guard(f"import of {source}"):
            return import_module(source)
    except PluginError as error:
        missing = getattr(error.__cause__, "name", None)
        if isinstance(error.__cause__, ModuleNotFoundError) and f"{source}.".startswith(f"{missing}."):
            hint = (f"reinstall the distribution that '{missing}' is part of" if is_installed else
                    f"install the folder of its pyproject.toml with pip, or set PYTHONPATH to that of '{missing}'")
            raise PluginError(f"module {source} does not exist: no '{missing}' on sys.path", hint=hint) from error
        raise


class PluginHooks(NamedTuple):
    """The hooks of one plugin, and its settings. `observer`: its wrappers around the hooks of others, if it has any."""

    table: HookTable
    config: Any
    observer: HookObserver | None = None


def read_hooks(module: ModuleType, plugin_id: str, config: Config, distribution: str | None) -> PluginHooks:
    """Check a plugin's module and settings. Raises PluginError, and InvalidArgument for its settings."""
    _check_api(module, distribution)
    plain = plain_hooks(module)  # Pluggy's import and checks take as long as the hooks of three plugins.
    hooks, wrappers = (plain, {}) if plain is not None else hooks_and_wrappers(module, plugin_id)
    settings = _settings(module, plugin_id, config)
    if not wrappers:
        return PluginHooks(hooks, settings)
    from .hook_observers import HookObserver

    return PluginHooks(hooks, settings, HookObserver(plugin_id, wrappers, settings))


def contribution(
    module: ModuleType, plugin_id: str, hooks: PluginHooks, observers: Sequence[HookObserver] = ()
) -> Contribution:
    """All registrations of a plugin, gathered by calling its hooks. Raises PluginError.

    `observers`: the plugins whose wrappers see each call.
    """
    brought = Contribution(plugin_id, hooks.config)
    called: list[str] = []  # names of hooks, in order

    def call(name: str, registry: Any) -> None:
        function, parameters = hooks.table[name]
        handed = {"registry": registry, "config": hooks.config}
        with plugin_guard(f"hook {name}"):
            function(**{parameter: handed[parameter] for parameter in parameters})

    def call_all() -> Contribution:
        for name, registry in registrars(brought).items():
            if name in hooks.table:
                called.append(name)
                if observers:
                    from .hook_observers import call_observed

                    call_observed(observers, name, plugin_id, partial(call, name, registry))
                else:
                    call(name, registry)
        return brought

    if _is_being_imported(module.__name__):
        return call_all()  # in another thread a hook's imports would wait for this import
    try:
        return run_within(LONGEST_HOOKS_SECONDS, lambda: f"hook {called[-1]}", call_all)
    except DeadlineExceeded as error:
        raise PluginError(error.message, hint="hooks only register: leave slow work to scans and to kernels") from None


def _is_being_imported(module: str) -> bool:
    """True while the module, or a package that it is in, is being imported: its import called heald."""
    parts = module.split(".")
    specs = (getattr(sys.modules.get(".".join(parts[:count])), "__spec__", None) for count in range(1, len(parts) + 1))
    return any(getattr(spec, "_initializing", False) for spec in specs)


def _import_file(path: Path) -> ModuleType:
    """Import a one-file plugin. The module's name is the file's name, so that the plugin may write it in
    "module:function"."""
    from importlib import util  # installed plugins need it not

    if not path.is_file():
        raise PluginError(f"the file {path} does not exist")
    name = path.stem
    spec = sys.modules[name].__spec__ if name in sys.modules else util.find_spec(name)
    if spec is not None and (spec.origin is None or Path(spec.origin).resolve() != path.resolve()):
        raise PluginError(f"a module called '{name}' exists already", hint=f"rename {path.name}")
    if name in sys.modules:
        return sys.modules[name]
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = util.module_from_spec(spec)
    try:
        with plugin_guard(f"import of {path}"):
            spec.loader.exec_module(module)
    except PluginError:
        del sys.modules[name]
        raise
    return module


def _check_api(module: ModuleType, distribution: str | None) -> None:
    required = vars(module).get("HEALD_API")
    if not (isinstance(required, tuple) and len(required) == 2 and all(type(part) is int for part in required)):
        fault = "is missing" if required is None else f"= {required!r} is not a pair of integers"
        raise PluginError(f"HEALD_API {fault} in {module.__name__}: it must state the plugin API",
                          hint=f"write HEALD_API = {API}")
    if required[0] == API[0] and required <= API:
        return
    outdated = CORE if required > API else distribution or ""
    raise Incompatible(
        f"it is written for plugin API {required[0]}.{required[1]}, this heald has {API[0]}.{API[1]}",
        hint=named_hint(outdated, [outdated]) or f"change it to fit HEALD_API = {API}")


def plain_hooks(module: ModuleType) -> HookTable | None:
    """The hooks of a module whose hooks are functions of `registry` and, optionally, `config`, marked without options.
    None for any other module."""
    hooks: HookTable = {}
    for name, value in vars(module).items():
        is_function = type(value) is FunctionType
        mark = vars(value).get(MARK) if is_function else None
        if mark is None and name not in _SPECS and type(value) not in _WRAPPERS:
            continue
        if mark != PLAIN_MARK or name not in _SPECS or "__wrapped__" in vars(value):
            return None
        code = value.__code__
        parameters = code.co_varnames[: code.co_argcount]
        is_usual = not (value.__defaults__ or code.co_kwonlyargcount or code.co_flags & _OPEN_PARAMETERS)
        if not is_usual or parameters not in (("registry",), ("registry", "config"), ("config", "registry")):
            return None
        hooks[name] = value, parameters
    return hooks


def hooks_and_wrappers(module: ModuleType, plugin_id: str) -> tuple[HookTable, WrapperTable]:
    """The hooks of a module and its wrappers of hooks, as a PluginManager of pluggy takes them. Raises PluginError."""
    import pluggy

    manager = pluggy.PluginManager(PLUGGY_PROJECT)
    for spec in _SPECS:
        pluggy.HookspecMarker(PLUGGY_PROJECT)(getattr(Hooks, spec))
    manager.add_hookspecs(Hooks)
    marked = SimpleNamespace()  # the hooks alone: other attributes of the module may be lazy and raise
    for name, value in vars(module).items():
        options = manager.parse_hookimpl_opts(module, name)
        if options is not None and _is_hook(name, options):
            setattr(marked, name, value)
        elif options is None and name in _SPECS:
            raise PluginError(f"{name} is not marked as a hook", hint="decorate it with @hookimpl")
    try:
        manager.register(marked, plugin_id)
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split()),
                          hint="a hook takes `registry` and, optionally, `config`") from error
    hooks: HookTable = {}
    wrappers: WrapperTable = {}
    for caller in manager.get_hookcallers(marked) or ():
        for impl in caller.get_hookimpls():
            parameters = *impl.argnames, *impl.kwargnames
            if impl.wrapper:
                wrappers[caller.name] = impl.function, parameters, impl.trylast - impl.tryfirst
            else:
                hooks[caller.name] = impl.function, parameters
    return hooks, wrappers


def _is_hook(name: str, options: pluggy.HookimplOpts) -> bool:
    """True for a hook of heald. False for an unknown hook that is optional. Raises PluginError for an unknown hook that
    is not, and for a wrapper of pluggy's old form."""
    called = options["specname"] or name
    if called not in _SPECS:
        if options["optionalhook"]:
            return False
        similar_hooks = closest(called, _SPECS)
        hint = f"did you mean {similar_hooks[0]}?" if similar_hooks else f"hooks are {', '.join(_SPECS)}"
        raise PluginError(f"there is no hook called {called}", hint=hint)
    if options["hookwrapper"]:
        raise PluginError(f"hook {called} is declared as a wrapper of the old form", hint="write wrapper=True")
    return True


def _settings(module: ModuleType, plugin_id: str, config: Config) -> Any:
    declared = vars(module).get("Config")
    if declared is not None:
        return plugin_config(config, plugin_id, declared)
    for setting in config.plugin_layers(plugin_id):
        if setting.found_file is not None:
            continue  # `Config.warnings` reports it
        raise InvalidArgument(f"{setting.origin}: plugin {plugin_id} takes no settings")
    return None
