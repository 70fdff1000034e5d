"""The runtime of a process: its config, the loaded plugins, and the host on which programs run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from ...errors import HealdError, InvalidArgument, boundary
from ..config.config import Config, load_config
from ..contract.allocator import HostAllocator
from ..contract.work_queue import ConcurrentWorkQueue, WorkQueueConfig
from ..discovery.discovery import PluginRecord, Plugins
from ..host.device_record import DeviceRecord
from ..host.host import Host
from ..host.registries import Registries
from ..support.fork_safety import inherited


class HostContext(Host):
    """A host of the user's own, over the plugins that `config` allows.

    `work_queue`, `allocator`: a name or an object, in place of the config's choice.
    `diagnostics`: called with each error of a kernel.
    `config`: a dict, a path or a Config.
    `output`: a text stream that kernels print to, in place of the standard output.

    Raises InvalidArgument for an object that lacks the methods of its protocol.
    """

    @boundary
    def __init__(
        self, *, work_queue: str | WorkQueueConfig | ConcurrentWorkQueue | None = None,
        allocator: str | HostAllocator | None = None, diagnostics: Callable[[HealdError], Any] | None = None,
        config: Any = None, output: TextIO | None = None,
    ) -> None:
        settings = load_config(config)
        _check_has("work_queue", work_queue, "add_task")
        _check_has("allocator", allocator, "allocate")
        _check_has("output", output, "write")
        plugins = _load(settings)
        plugins.check()
        self.config = settings = plugins.usable_config()
        if work_queue is None or isinstance(work_queue, str):
            work_queue = replace(settings.work_queue, name=work_queue or settings.work_queue.name)
        super().__init__(plugins.registries, settings.placement.order,
                         settings.allocator.name if allocator is None else allocator,
                         settings.allocator.limit, work_queue, settings.debug, diagnostics,
                         memory=settings.limits.memory, nested_calls=settings.limits.nested_calls, files=settings.files,
                         work_queues=settings.work_queues, output=output)


def _check_has(argument: str, argument_value: object, method: str) -> None:
    """Raises InvalidArgument for an object that is neither a name nor of the protocol with this method."""
    if not isinstance(argument_value, str | WorkQueueConfig | None) and not hasattr(argument_value, method):
        raise InvalidArgument(f"{argument} is a {type(argument_value).__name__}, which has no method '{method}'",
                              hint="give a name, or an object of that protocol")


class Runtime:
    """Plugins loaded under one config, and a host over them.

    `distributions`: load the plugins of these alone, until `load_others`.

    Plugins and config are compared by `check`, once all plugins are there. The host is made after that, at its first
    use, so that config may name an allocator of a plugin that is registered before.
    """

    def __init__(self, config: Config, distributions: Collection[str] | None = None) -> None:
        self.plugins = _load(config, distributions)
        self._has_all = distributions is None
        if not self._has_all and self.plugins.usable_config() is not config:  # another plugin may have the part
            self.plugins.load()
            self._has_all = True
        self.config = self.plugins.usable_config()
        self._is_checked = False
        self.apart: dict[str, list[DeviceRecord]] = {}  # by device type: the devices that another process has scanned
        self._hosts: list[Host] = []  # at most one

    @property
    def host(self) -> Host:
        """The host over the plugins. Raises NotFound for the name of an allocator that no plugin registers."""
        for host in self._hosts:
            return host
        with process_scope.lock:
            if not self._hosts:
                self.config = self.plugins.usable_config()
                self._hosts.append(self._make_host(self.config))
            return self._hosts[0]

    def _make_host(self, config: Config) -> Host:
        return Host(self.plugins.registries, config.placement.order, config.allocator.name,
                    config.allocator.limit, config.work_queue, config.debug, memory=config.limits.memory,
                    nested_calls=config.limits.nested_calls, files=config.files,
                    work_queues=config.work_queues)

    def load_others(self) -> None:
        """Load the plugins that were left out."""
        with process_scope.lock:
            if not self._has_all:
                self._has_all = True
                self.plugins.load()
                self.check()

    def check(self) -> None:
        """Warn and raise as `Plugins.check`, once, and not before all plugins are loaded."""
        if self._has_all and not self._is_checked:
            registries = self.host.registries  # raises for the name of an allocator that is not there
            self.plugins.check()
            self._check_parts(registries)
            self._is_checked = True


    def _check_parts(self, registries: Registries) -> None:
        """Raises PluginError for a work queue or op handler in config whose factory cannot be imported."""
        config = self.config
        handler = config.eager.handler
        registries.check_factories(
            [config.work_queue.name, *(queue.name for queue in config.work_queues.values())],
            [handler] if isinstance(handler, str) else handler)


class ProcessScope:
    """The default runtime and the registered plugins of a process.

    One thread at a time makes a runtime or registers a plugin, under the lock.
    """

    def __init__(self, registered: Iterable[Any] = ()) -> None:
        self.lock = threading.RLock()
        self.default: Runtime | None = None  # made on first use
        self.registered = list(registered)  # modules, dotted names and paths, as `register` takes them
        inherited.add(self)

    def forked(self) -> None:
        self.lock = threading.RLock()  # the other attributes hold finished objects only


process_scope = ProcessScope()


def _load(config: Config, distributions: Collection[str] | None = None) -> Plugins:
    """Load installed plugins, plugins that the config names, and plugins that the process has registered."""
    plugins = Plugins(config)
    plugins.load(distributions)
    for module in process_scope.registered:
        plugins.register(module)
    return plugins


def runtime(config: Any = None, distributions: Collection[str] | None = None, *, checks: bool = True) -> Runtime:
    """Return the runtime of the process, made on first use; with `config` a new runtime under that config. A Runtime
    given as config is returned.

    `distributions`: the distributions whose plugins are needed. A runtime that is made for them loads no
        others; a later call without them does.
    `checks`: False leaves out the comparison of plugins and config.
    """
    if isinstance(config, Runtime):
        return config
    with process_scope.lock:
        default = process_scope.default
        if config is None and default is not None:
            if distributions is None or not default.plugins.distributions().issuperset(distributions):
                default.load_others()
            created = default
        else:
            created = Runtime(load_config(config), distributions)
        if checks:
            created.check()
        if config is None and process_scope.default is None:
            process_scope.default = created
        return created


def default_host() -> Host:
    """Return the host of sessions without a config of their own, with its devices and registries."""
    return runtime().host


@boundary
def register(module_or_path: Any) -> PluginRecord:
    """Load a plugin without installing it: a module, its dotted name, or the path of a one-file plugin.

    Later sessions use it. Raises PluginError when the plugin cannot be used, InvalidArgument for other objects.
    """
    if not isinstance(module_or_path, ModuleType | Path | str) or module_or_path == "":
        raise InvalidArgument(f"a plugin is a module, a name or a path, not this {type(module_or_path).__name__}",
                              hint="give a module, its dotted name, or the path of a one-file plugin")
    with process_scope.lock:
        record = runtime(checks=False).plugins.register(module_or_path)  # the checks come with the first use
        process_scope.registered.append(module_or_path)
        return record


def plugins() -> list[PluginRecord]:
    """List every plugin that discovery found, with its status and reason."""
    return runtime(checks=False).plugins.listing()


def devices() -> list[DeviceRecord]:
    """Scan every device type that was not scanned yet, and list every device with its status and reason.

    Device types that serve on request only, and are not in use, are scanned in processes of their own: their records
    have no device.
    """
    owner = runtime()
    return [record for device_type in owner.host.preference() for record in _records(owner, device_type)]


def _records(owner: Runtime, device_type: str) -> list[DeviceRecord]:
    nobody = scanned_apart(device_type)
    if nobody is None:
        return owner.host.records(device_type)
    if device_type not in owner.apart:
        from .device_process import list_apart, record_of

        owner.apart[device_type] = [record_of(row) for row in list_apart(nobody, registered_plugin_names())]
    return owner.apart[device_type]


def scanned_apart(device_type: str) -> dict[str, Any] | None:
    """None for a device type that a list of all devices scans in this process. For any other, the row of the type as
    long as no device is known."""
    from .device_process import can_start_python

    owner = runtime()
    host = owner.host
    if host.is_scanned(device_type) or device_type not in host.on_request() or not can_start_python():
        return None
    plugin = host.registries.device_types.claims(device_type)[0].plugin
    record = owner.plugins.loaded_record(plugin)
    if record is None or record.module in [m.__name__ for m in process_scope.registered if isinstance(m, ModuleType)]:
        return None  # another process has no way to the module
    return {"name": f"{device_type}:*", "type": device_type, "plugin": plugin, "attributes": {}}


def registered_plugin_names() -> list[str]:
    """The paths and dotted names of the plugins that the process has registered."""
    return [str(plugin) for plugin in process_scope.registered if not isinstance(plugin, ModuleType)]
