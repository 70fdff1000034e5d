"""Host: the environment that programs run in. It owns the devices of this process (scans, opens, probes and closes
them), the work queue, the host allocator and the resources that programs share.

Nothing is scanned, opened or imported before a caller asks for the device type, or for the queue.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from ..config.debug import DebugConfig
from ..config.files import FilesConfig
from ..config.placement import preference
from ..contract.allocator import HostAllocator
from ..contract.device import Device, DeviceName, load_callable
from ..contract.work_queue import ConcurrentWorkQueue, WorkQueueConfig
from ..errors import Cancelled, NotFound, PluginError, Unavailable, WeftError, closest
from ..support.available_memory import available_memory
from ..support.fork_safety import inherited
from ..support.memory_size import share_or_bytes
from ..values.async_value import AsyncValue
from .allocators import make_allocator
from .cancellation import CancelToken
from .device_memory import DeviceMemory
from .file_policy import FilePolicy
from .host_memory import HostMemory
from .registries import Registries
from .resources import Resources
from .work_queues import make_work_queue

if TYPE_CHECKING:
    from .stream_waiter import StreamWaiter


class LastingStep(Protocol):
    """A step that serves many runs. `Host.cancel` cancels it, and `Host.restart` restarts it."""

    def cancel(self, error: WeftError) -> None: ...

    def restart(self) -> None: ...


class StoppableFrame(Protocol):
    """A frame that begins no further call of a step once `stop` was called for that step."""

    def stop(self, step: Any) -> None: ...


@dataclass
class DeviceRecord:
    """One device, or one device type that has no device.

    `status`: `found` (not opened yet), `ok` (opened, a kernel and a copy ran) or `unavailable` (also for a lost
        device).
    `reason`, `remedy`: The cause of `unavailable`, and the action that ends it.
    """

    name: str
    type: str
    plugin: str
    status: str
    reason: str = ""
    remedy: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    device: Device | None = field(default=None, repr=False)
    is_open: bool = field(default=False, repr=False)  # also True for a lost device, until its host is closed

    def give_up(self, error: Exception) -> None:
        self.status = "unavailable"
        self.reason = error.message if isinstance(error, WeftError) else f"{type(error).__name__}: {error}"
        self.remedy = (error.hint or "") if isinstance(error, WeftError) else ""


class Host:
    """Devices, work queue and host allocator over a set of registries.

    `order`: Placement's order of device types, or "auto".
    `allocator`: An allocator, or the name of one as in [allocator].
    `limit`: The most bytes in use of a named allocator: a number, "2GiB", or "80%" of physical memory.
    `work_queue`: A work queue, or the configuration of one as in [work_queue].
    `memory`: The memory budget of the host's programs, as in [limits].
    `files`: The files that ops may open, as in [files]; None without it.
    `diagnostics`: Called with each error that a kernel reports, on the thread of that kernel. Errors that are merely
        passed on are not reported again.

    Devices and queue are closed when the Host is closed, when it is collected, or when the process ends.

    Raises NotFound for the name of an allocator that is not registered, InvalidArgument for a limit that cannot be
    read.
    """

    def __init__(
        self, registries: Registries, order: str | Sequence[str] = "auto", allocator: str | HostAllocator = "plain",
        limit: int | str | None = None, work_queue: WorkQueueConfig | ConcurrentWorkQueue | None = None,
        debug: DebugConfig | None = None, diagnostics: Callable[[WeftError], Any] | None = None,
        memory: int | str = "80%", files: FilesConfig | None = None,
    ) -> None:
        self.registries = registries
        self.allocator: HostAllocator = (make_allocator(registries.allocators, allocator, limit)
                                         if isinstance(allocator, str) else allocator)
        self.memory = HostMemory(self.allocator, share_or_bytes(memory, available_memory, "[limits] memory"))
        self.files = FilePolicy(files or FilesConfig())
        self.debug = debug or DebugConfig()
        self.resources = Resources()
        self.cancellation = CancelToken()  # parent of every step on this host
        self._diagnostics = diagnostics
        self.device_memory = DeviceMemory()
        self._waiters: dict[int, StreamWaiter] = {}
        self.frames: weakref.WeakValueDictionary[int, StoppableFrame] = weakref.WeakValueDictionary()  # by id
        self.linked: dict[int, Any] = {}  # by id of a program that users hold: its functions, linked for this host
        self.lasting: weakref.WeakValueDictionary[int, LastingStep] = weakref.WeakValueDictionary()  # by id
        self._order = order
        self._records: dict[str, list[DeviceRecord]] = {}
        self._lost: dict[int, DeviceRecord] = {}  # by id of the device
        self._queues: list[ConcurrentWorkQueue] = []  # at most one: empty until the queue is first asked for
        if work_queue is None or isinstance(work_queue, WorkQueueConfig):
            self._queue_config = work_queue or WorkQueueConfig()
        else:
            self._queues.append(work_queue)
        self.offers: deque[None] = deque()  # jobs' offers of help that no thread of the queue has taken yet
        self._lock = threading.RLock()
        weakref.finalize(self, _close, self._records, self._queues, self._waiters, self.device_memory)
        inherited.add(self)

    @property
    def work_queue(self) -> ConcurrentWorkQueue:
        """The work queue that configuration chose. It is made when first asked for. Raises as `make_work_queue`
        does."""
        for queue in self._queues:  # no lock for an existing queue: a device may be opening under the lock
            return queue
        with self._lock:
            if not self._queues:
                self._queues.append(make_work_queue(self.registries.work_queues, self._queue_config))
            return self._queues[0]

    def await_values(self, values: Iterable[AsyncValue], timeout: float | None = None) -> bool:
        """Block until all values are available. Returns False when a value is still pending after `timeout` seconds.

        Like the work queue's method, but the queue is not asked for values that are available already.
        """
        pending = [value for value in values if not value.is_available()]
        return not pending or self.work_queue.await_values(pending, timeout)

    def cancel(self) -> None:
        """Cancel every run on this host, as a RequestContext's cancel does, and every later run until `restart`."""
        self.cancellation.cancel()
        for step in self._lasting_steps():
            step.cancel(Cancelled("the host was cancelled"))

    def restart(self) -> None:
        """Permit programs to run again after `cancel`."""
        self.cancellation = CancelToken()
        for step in self._lasting_steps():
            step.restart()

    def waiter(self, device: Device) -> StreamWaiter:
        """The StreamWaiter of a device whose memory the host cannot see. It is made at the first call."""
        from .stream_waiter import StreamWaiter  # imported late: listing devices needs no NumPy

        key = id(device)
        if key not in self._waiters:
            self._waiters.setdefault(key, StreamWaiter(device, self.name_of(device)))
        return self._waiters[key]

    def stop(self, step: object) -> None:
        """Stop the frames that run this step: they begin no further call. Takes no lock, since signal handlers cancel
        runs."""
        for ref in self.frames.valuerefs():
            frame = ref()
            if frame is not None:
                frame.stop(step)

    def _lasting_steps(self) -> list[LastingStep]:
        """The lasting steps that are alive. The list of references is made in one go, because other threads may add
        steps meanwhile."""
        return [step for ref in self.lasting.valuerefs() if (step := ref()) is not None]

    def report(self, error: WeftError) -> None:
        """Pass an error to the diagnostics handler, once. An exception of the handler is reported as unraisable."""
        if self._diagnostics is None or error.is_reported:
            return
        error.is_reported = True
        try:
            self._diagnostics(error)
        except Exception as fault:  # noqa: BLE001 - a handler's fault is not the kernel's
            sys.unraisablehook(SimpleNamespace(
                exc_type=type(fault), exc_value=fault, exc_traceback=fault.__traceback__, object=self._diagnostics,
                err_msg="Exception ignored in a diagnostics handler"))

    def preference(self) -> list[str]:
        """The device types, in placement's order of preference."""
        return preference(self._order, [t.type for t in self.registries.device_types.by_priority()])

    def choices(self) -> Iterator[DeviceName]:
        """Yield the requests that placement tries, in turn, for a node without a requested device.

        First come the types that config orders, then all others by priority. Records of these others that are no
        accelerator, or have no device, come last. A type is scanned when its turn comes.
        """
        last: list[DeviceName] = []
        for device_type in self.preference():
            name = DeviceName(type=device_type)
            if not isinstance(self._order, str) and device_type in self._order:
                yield name
                continue
            records = self.records(device_type)
            others = [r for r in records if r.device is None or not r.attributes.get("accelerator", True)]
            if others:
                last += [DeviceName.parse(r.name) for r in others]
                yield from (DeviceName.parse(r.name) for r in records if r not in others)
            else:
                yield name
        yield from last

    def names(self, device_type: str) -> list[str]:
        """The short names of the usable devices of a type. Its devices are opened and probed at the first call."""
        return [r.name for r in self.records(device_type) if self._open(r)]

    def first(self, device_type: str, index: int | None = None) -> str | None:
        """The short name of the first usable device of a type, or of the device with this index; None when there is
        none. With an index no other device is opened."""
        return next((r.name for r in self.records(device_type)
                     if index in (None, DeviceName.parse(r.name).index) and self._open(r)), None)

    def why_not(self, device_type: str, index: int | None) -> str:
        """The reason why no device of this type, or of this type and index, is usable."""
        wanted = DeviceName(type=device_type, index=index).short
        for record in self.records(device_type):
            if record.status == "unavailable" and (index is None or record.name in (wanted, f"{device_type}:*")):
                return f"unavailable: {record.reason}" + (f"; {record.remedy}" if record.remedy else "")
        have = [r.name for t in self.preference() for r in self._records.get(t, ()) if r.status != "unavailable"]
        if self.registries.device_types.get(device_type) is None:
            known = ", ".join(self.preference()) or "none"
            return "; ".join((f"no plugin brings the device type {device_type}", f"device types: {known}",
                              *self.missing_plugins()))
        return f"no such device; devices: {', '.join(have) or 'none'}"

    def missing_plugins(self) -> list[str]:
        """Each plugin that is not in use, with the reason: it may be the one that provides a missing thing."""
        return [f"plugin {name} is {why}" for name, why in self.registries.missing_plugins.items()]

    def records(self, device_type: str | None = None) -> list[DeviceRecord]:
        """The records of a device type, or of every type. A type is scanned if it was not yet."""
        if device_type is None:
            return [r for t in self.preference() for r in self.records(t)]
        with self._lock:
            if device_type not in self._records:
                self._records[device_type] = self._scan(device_type)
            return self._records[device_type]

    def opened(self) -> list[DeviceRecord]:
        """The records of the devices in use so far."""
        return [r for records in self._records.values() for r in records if r.status == "ok"]

    def name_of(self, device: Device) -> str:
        """The short name of a device of this host; its type for a device without a record."""
        return next((r.name for rs in self._records.values() for r in rs if r.device is device), device.type)

    def failed(self, device: Device, error: WeftError) -> None:
        """Note an error that a device raised while it ran.

        Unavailable, raised by a device outside host memory, means that the device is lost. A lost device stays lost for
        this host, even if it works again: the content of its memory is gone.
        """
        if isinstance(error, Unavailable) and not device.attributes.get("host_visible"):
            with self._lock:
                for record in [r for r in self.opened() if r.device is device]:
                    record.give_up(error)
                    self._lost[id(device)] = record

    def check(self, devices: Iterable[Device]) -> None:
        """Raises Unavailable when one of these devices was lost."""
        if self._lost:
            for record in [self._lost[id(device)] for device in devices if id(device) in self._lost]:
                raise Unavailable(f"device {record.name} is unavailable: {record.reason}", device=record.name,
                                  hint=record.remedy or None)

    def is_host_visible(self, name: str) -> bool:
        """True when the buffers of this device are host memory."""
        records = self.records(name.partition(":")[0])
        return any(r.name == name and r.attributes.get("host_visible") for r in records)

    def host_device(self) -> str | None:
        """The short name of a device that works on host memory: an open one, else the first in placement's order. None
        when there is none."""
        ordered = (record for device_type in self.preference() for record in self.records(device_type))
        return next((r.name for r in chain(self.opened(), ordered)
                     if r.attributes.get("host_visible") and self._open(r)), None)

    def open(self, name: str) -> Device:
        """The device of this short name, opened and probed. Raises NotFound when there is no such device, Unavailable
        when it cannot be used."""
        wanted = DeviceName.parse(name)
        if wanted.type is None:
            raise NotFound(f"'{name}' names no device type", device=name, hint="write a name like CPU:0")
        for record in self.records(wanted.type):
            if record.name == DeviceName(type=wanted.type, index=wanted.index or 0).short and self._open(record):
                assert record.device is not None
                return record.device
        reason = self.why_not(wanted.type, wanted.index)
        if reason.startswith("unavailable"):
            raise Unavailable(f"device {name} is {reason}", device=name)
        near = closest(name, [r.name for t in self.preference() for r in self.records(t)])
        raise NotFound(f"device {name}: {reason}", device=name, hint=f"did you mean {near[0]}?" if near else None)

    def close(self) -> None:
        """Cancel every run, then close the queue and every device that was opened."""
        self.cancel()
        with self._lock:
            _close(self._records, self._queues, self._waiters, self.device_memory)

    def forked(self) -> None:
        self._lock = threading.RLock()  # a device that was being opened is still `found`: it is opened anew

    def _scan(self, device_type: str) -> list[DeviceRecord]:
        announced = self.registries.device_types.get(device_type)
        if announced is None:
            return []
        nobody = DeviceRecord(f"{device_type}:*", device_type, announced.plugin, "unavailable")
        try:
            scan = load_callable(announced.scan)
            found = list(scan(announced.config))
        except Exception as error:  # noqa: BLE001 - a plugin's fault becomes a record
            nobody.give_up(error)
            return [nobody]
        if not found:
            nobody.reason = f"plugin {announced.plugin} found none"
            return [nobody]
        return [DeviceRecord(f"{device_type}:{i}", device_type, announced.plugin, "found", device=device,
                             attributes=dict(device.attributes)) for i, device in enumerate(found)]

    def _open(self, record: DeviceRecord) -> bool:
        """Open and probe a device with status `found`. Returns True when the device is usable."""
        with self._lock:
            if record.status == "found":
                assert record.device is not None
                from .probe import probe_once

                try:
                    failed = self.registries.kernels.failure(record.type, record.plugin)
                    if failed is not None:
                        raise PluginError(f"the kernels of plugin {record.plugin} failed to load: {failed}")
                    record.device.open()
                    try:
                        probe_once(record.device, self.registries, record.plugin)
                    except BaseException:
                        record.device.close()
                        raise
                    record.status, record.is_open = "ok", True
                except Exception as error:  # noqa: BLE001 - a plugin's fault becomes a record
                    record.give_up(error)
            return record.status == "ok"


def _close(
    records: dict[str, list[DeviceRecord]], queues: list[ConcurrentWorkQueue], waiters: dict[int, StreamWaiter],
    memory: DeviceMemory,
) -> None:
    for waiter in waiters.values():
        waiter.close()
    waiters.clear()
    for queue in queues:
        queue.close()
    queues.clear()
    memory.close()
    for record in [r for of_type in records.values() for r in of_type]:
        if record.is_open and record.device is not None:
            record.device.close()
    records.clear()
