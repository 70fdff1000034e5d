"""Targets: the choice of the session factory by a target's prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import HealdError, InvalidArgument, NotFound, PluginError, closest, describe_exception
from ...runtime.config.config import Config
from ...runtime.contract.session import (
    LOCAL_TARGETS,
    SessionFactory,
    SessionInterface,
    in_this_process,
    stays_here,
)
from ...runtime.host.registries import Registries
from ...runtime.service.runtime import runtime
from ..graph.graph import Graph


def is_local(target: object) -> bool:
    """True for a target of core's own session. Raises InvalidArgument for an object that is no text."""
    if not isinstance(target, str):
        raise InvalidArgument(f"target is a {type(target).__name__}, expected a text", hint="target='' runs here")
    return target in LOCAL_TARGETS


def target_of_config(config: Config) -> str:
    """Return the target of sessions that name none: "" within `in_this_process`."""
    return "" if stays_here() else config.cluster.target


def session_at(
    target: str, graph: Any = None, config: Any = None, *, device: str | None = None, **others: Any
) -> SessionInterface:
    """Return the session that the factory for this target makes.

    `others`: Arguments that only core's own session takes.

    Raises NotFound for a prefix without a factory; PluginError when several plugins have the prefix, and when the
    factory fails; InvalidArgument for arguments that do not fit; the errors of heald that the factory raises.
    """
    check_arguments(graph, device)
    if refused := [name for name, value in others.items() if value]:
        raise InvalidArgument(f"a session of target '{target}' takes no {' and '.join(refused)}",
                              hint="the plugin of the target makes these itself")
    factory = _factory(target, runtime(config).plugins.registries)
    try:
        with in_this_process():
            return factory.make(graph, config, target, device)
    except HealdError:
        raise
    except (Exception, SystemExit) as error:  # a plugin may raise anything
        raise PluginError(f"session factory '{factory.name}' of plugin {factory.plugin} raised "
                          f"{' '.join(describe_exception(error).split())}") from error

def check_arguments(graph: object, device: object) -> None:
    """Raises InvalidArgument for a graph or a device of another type."""
    if not isinstance(graph, Graph):
        raise InvalidArgument(f"Session takes a Graph, not {type(graph).__name__}",
                              hint="heald.Session(heald.graphdef.load(path))")
    if device is not None and not isinstance(device, str):
        raise InvalidArgument(f"device is a {type(device).__name__}; give a name", hint="device='CPU:0'")


def _factory(target: str, registries: Registries) -> SessionFactory:
    prefix = target.partition(":")[0]
    factory = registries.sessions.get(prefix)
    if factory is not None:
        return factory
    prefixes = [usable.name for usable in registries.sessions.usable()]
    suggestions = closest(prefix, [*prefixes, "local"])
    raise NotFound(f"no plugin serves the target '{target}'; prefixes: {', '.join(['local', *prefixes])}"
                   f"{_out_of_use(registries.missing_plugins)}",
                   hint=f"did you mean {suggestions[0]}?" if suggestions else
                   "install a plugin that serves it; `heald plugins` lists those that are here")


def _out_of_use(missing: Mapping[str, str]) -> str:
    """The plugins that are not in use, each with the reason: one of them may have the prefix."""
    return "".join(f"; plugin {name} is {why}" for name, why in missing.items())
