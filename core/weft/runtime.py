"""The runtime of a process: its config, the plugins that were loaded, the host context that programs run in."""

from __future__ import annotations

import threading
from typing import Any

from .config import Config, load_config
from .discovery import PluginRecord, Plugins, load_plugins
from .host_context import DeviceRecord, HostContext


class Runtime:
    """Plugins loaded under one config, and a host context over them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.plugins: Plugins = load_plugins(config)
        self.host = HostContext(self.plugins.registries, config.placement.order, config.allocator.name,
                                config.allocator.limit, config.work_queue, config.debug)


_lock = threading.RLock()
_default: list[Runtime] = []
_registered: list[Any] = []


def runtime(config: Any = None) -> Runtime:
    """The process's own runtime, made when first asked for; with `config` a new one under that config."""
    with _lock:
        if config is None and _default:
            return _default[0]
        made = Runtime(load_config(config))
        for module in _registered:
            made.plugins.register(module)
        if config is None:
            _default.append(made)
        return made


def register(module_or_path: Any) -> PluginRecord:
    """Load a plugin without installing it: a module, its dotted name, or the path of a one-file plugin.

    It counts for sessions made from now on. Raises PluginError when it cannot be used.
    """
    with _lock:
        record = runtime().plugins.register(module_or_path)
        _registered.append(module_or_path)
        return record


def plugins() -> list[PluginRecord]:
    """Every plugin that was found, with its status and reason."""
    return runtime().plugins.listing()


def devices() -> list[DeviceRecord]:
    """Every device of every type, scanned now, with its status and reason."""
    return runtime().host.records()
