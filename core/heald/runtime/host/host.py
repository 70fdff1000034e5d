"""Host: the environment that programs run in. To the devices of the process it adds the work queue, the host allocator,
the memory budget, the resources that programs share, cancellation and diagnostics. It closes the devices and
queues that it opened.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from ...errors import Cancelled, HealdError, HealdWarning, NotFound, closest, describe_exception
from ..config.debug import DebugConfig
from ..config.files import FilesConfig
from ..config.limits import DEFAULT_NESTED_CALLS
from ..contract.allocator import HostAllocator
from ..contract.device import load_callable
from ..contract.work_queue import ConcurrentWorkQueue, WorkQueueConfig
from ..support.available_memory import available_memory
from ..support.memory_size import share_or_bytes
from ..support.unraisable import report_unraisable
from ..values.async_value import AsyncValue
from .allocators import make_allocator
from .cancellation import CancelToken
from .device_fault import device_fault
from .device_memory import DeviceMemory
from .device_record import DeviceRecord
from .device_set import DeviceSet
from .file_policy import FilePolicy
from .host_memory import HostMemory
from .registries import Registries
from .resources import Resources
from .work_queues import BUILT_IN_QUEUES, make_work_queue

if TYPE_CHECKING:
    from .parallel import QueueWorkers, Workers
    from .stream_waiter import StreamWaiter


class LastingStep(Protocol):
    """A step that serves many runs. `Host.cancel_execution` cancels it, and `Host.restart` restarts it."""

    def cancel(self, error: HealdError) -> None: ...

    def restart(self) -> None: ...


class StoppableFrame(Protocol):
    """A frame that begins no further call of a step once `stop` was called for that step."""

    def stop(self, step: Any) -> None: ...


class Host(DeviceSet):
    """A DeviceSet with a work queue and a host allocator.

    `order`: Placement's order of device types, or "auto".
    `allocator`: An allocator, or the name of one as in [allocator].
    `limit`: The most bytes in use of a named allocator: a number, "2GiB", or "80%" of physical memory.
    `work_queue`: A work queue, or the configuration of one as in [work_queue].
    `work_queues`: The configurations of the queues that runs ask for by name, as in [work_queues.NAME].
    `memory`: The memory budget of the host's programs, as in [limits].
    `nested_calls`: The most levels of nested function calls, as in [limits].
    `files`: The files that ops may open, as in [files]; None without it.
    `diagnostics`: Called with each error that a kernel reports, on the thread of that kernel. Errors that are merely
        passed on are not reported again.

    `output`: the text stream that kernels print to; None for the standard output of the moment.

    Devices and queues are closed when the Host is closed, when it is collected, or when the process ends.

    Raises NotFound for the name of an allocator that is not registered, InvalidArgument for a limit that cannot be
    read.
    """

    def __init__(
        self, registries: Registries, order: str | Sequence[str] = "auto", allocator: str | HostAllocator = "plain",
        limit: int | str | None = None, work_queue: WorkQueueConfig | ConcurrentWorkQueue | None = None,
        debug: DebugConfig | None = None, diagnostics: Callable[[HealdError], Any] | None = None,
        memory: int | str = "80%", nested_calls: int = DEFAULT_NESTED_CALLS, files: FilesConfig | None = None,
        work_queues: Mapping[str, WorkQueueConfig] = MappingProxyType({}), output: TextIO | None = None,
    ) -> None:
        super().__init__(registries, order)
        self.allocator: HostAllocator = (make_allocator(registries.allocators, allocator, limit,
                                                        registries.owner_of("allocator", allocator))
                                         if isinstance(allocator, str) else allocator)
        self.memory = HostMemory(self.allocator, share_or_bytes(memory, available_memory, "[limits] memory"))
        self.most_nested_calls = nested_calls
        self.files = FilePolicy(files or FilesConfig())
        self.debug = debug or DebugConfig()
        self.output = output
        self.resources = Resources()
        self.cancellation = CancelToken()  # parent of every step on this host
        self._diagnostics = diagnostics
        self.frames: weakref.WeakValueDictionary[int, StoppableFrame] = weakref.WeakValueDictionary()  # by id
        self.linked: dict[int, Any] = {}  # by id of a program that users hold: its functions, linked for this host
        self.lasting: weakref.WeakValueDictionary[int, LastingStep] = weakref.WeakValueDictionary()  # by id
        self._queues: list[ConcurrentWorkQueue] = []  # at most one: empty until the queue is first asked for
        if work_queue is None or isinstance(work_queue, WorkQueueConfig):
            self._queue_config = work_queue or WorkQueueConfig()
        else:
            self._queues.append(work_queue)
        self.offers: deque[None] = deque()  # jobs' offers of help that no thread of the queue has taken yet
        self._named_configs = work_queues
        self._named: dict[str, QueueWorkers] = {}  # by the name of a queue: empty until a run first asks for it
        weakref.finalize(self, _close, self._records, self._queues, self._named, self._waiters, self.device_memory)

    @property
    def work_queue(self) -> ConcurrentWorkQueue:
        """The work queue that configuration chose. It is made when first asked for. Raises as `make_work_queue`
        does."""
        for queue in self._queues:  # no lock for an existing queue: a device may be opening under the lock
            return queue
        with self._lock:
            if not self._queues:
                self._queues.append(self._make_queue(self._queue_config, "work_queue"))
            return self._queues[0]

    @property
    def has_work_queue(self) -> bool:
        """True once the work queue has been made."""
        return bool(self._queues)

    def import_work_queue(self) -> None:
        """Import the module of the chosen work queue, if it is one of heald's own, so that making it takes no time."""
        if not self._queues and self._queue_config.name in BUILT_IN_QUEUES:
            load_callable(BUILT_IN_QUEUES[self._queue_config.name])

    def _make_queue(self, config: WorkQueueConfig, section: str) -> ConcurrentWorkQueue:
        registries = self.registries
        return make_work_queue(registries.work_queues, config, section, registries.owner_of("work queue", config.name))

    def workers(self, name: str) -> Workers:
        """The workers of the queue that [work_queues.NAME] describes. The queue is made when first asked for.

        Raises NotFound for an unknown name, and as `make_work_queue` does.
        """
        from .parallel import QueueWorkers

        workers = self._named.get(name)
        if workers is not None:  # no lock for an existing queue, as in `work_queue`
            return workers
        config = self._named_configs.get(name)
        if config is None:
            raise _no_queue(name, self._named_configs)
        with self._lock:
            if name not in self._named:
                queue = self._make_queue(config, f"work_queues.{name}")
                self._named[name] = QueueWorkers(queue)
            return self._named[name]

    def await_values(self, values: Iterable[AsyncValue], timeout: float | None = None) -> bool:
        """Block until all values are available. Returns False when a value is still pending after `timeout` seconds.

        Like the work queue's method, but the queue is not asked for values that are available already.
        """
        pending = [value for value in values if not value.is_available()]
        return not pending or self.work_queue.await_values(pending, timeout)

    def cancel_execution(self) -> None:
        """Cancel every run and every pending op on this host, and all later ones until `restart`."""
        self.cancellation.cancel()
        for step in self._lasting_steps():
            step.cancel(Cancelled("the host was cancelled"))

    def restart(self) -> None:
        """Permit programs and ops to run again after `cancel_execution`."""
        self.cancellation = CancelToken()
        for step in self._lasting_steps():
            step.restart()

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

    def print_line(self, line: str) -> None:
        """Write a line to the host's output, and flush it. Lines of several threads do not mix."""
        output = self.output or sys.stdout
        if output is None:  # standard output is closed
            return
        output.write(f"{line}\n")
        output.flush()

    def report(self, error: HealdError, diagnostics: Callable[[HealdError], Any] | None = None) -> None:
        """Pass an error to the diagnostics handler, once; to `diagnostics` in its place, where a call brings one. An
        exception of the handler is reported as unraisable."""
        handler = diagnostics or self._diagnostics
        if handler is None or error.is_reported:
            return
        error.is_reported = True
        try:
            handler(error)
        except Exception as fault:  # noqa: BLE001 - a handler's fault is not the kernel's
            report_unraisable(fault, "a diagnostics handler", handler)

    def close(self) -> None:
        """Cancel every run, then close the queues and every device that was opened."""
        self.cancel_execution()
        with self._lock:
            _close(self._records, self._queues, self._named, self._waiters, self.device_memory)


def _no_queue(name: str, queue_names: Iterable[str]) -> NotFound:
    similar_names = closest(name, queue_names)
    return NotFound(f"no work queue is called '{name}'; config names {', '.join(sorted(queue_names)) or 'none'}",
                    hint=f"did you mean {similar_names[0]}?" if similar_names else
                    "describe it in config, as [work_queues.NAME]")


def _close(
    records: dict[str, list[DeviceRecord]], queues: list[ConcurrentWorkQueue], named: dict[str, QueueWorkers],
    waiters: dict[int, StreamWaiter], memory: DeviceMemory,
) -> None:
    """Close everything that a host opened. A function of its parts, since it is the host's finalizer, too."""
    faults: list[str] = []
    for waiter in waiters.values():
        waiter.close()
    waiters.clear()
    for queue in [*queues, *(workers.work_queue for workers in named.values())]:
        try:
            queue.close()
        except Exception as error:  # noqa: BLE001 - a plugin's fault: the others are closed all the same
            kind = type(queue)
            faults.append(f"close of work queue {kind.__module__}.{kind.__name__} raised {describe_exception(error)}")
    queues.clear()
    named.clear()
    memory.close()
    for record in [r for of_type in records.values() for r in of_type]:
        if record.is_open and record.device is not None:
            try:
                record.device.close()
            except Exception as error:  # noqa: BLE001 - as above
                fault = device_fault(error, record.device, record.name, record.plugin)
                faults.append(f"{fault.message}; {fault.hint}" if fault.hint else fault.message)
    records.clear()
    for text in faults:
        warnings.warn(text, HealdWarning, stacklevel=2)
