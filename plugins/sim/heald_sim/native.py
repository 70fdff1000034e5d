"""The native handle of a device, `device.native`: kernels and tests drive the simulated device with it.

Mistakes of the program are collected in `report`. The next wait for a later event raises them as Internal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from heald.api import TensorMetadata, errors

from .config import Config
from .device_state import DeviceState
from .faults import Faults
from .machine import Event, Item, Machine, Record, Stream, Wait
from .memory import POISON, Buffer, Memory, Part
from .operation import Operation

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kernel:
    """`compute(*inputs, *outputs)` works on arrays of this metadata. A launch takes `flops` operations."""

    op: str
    node: str
    compute: Callable[..., object]
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    flops: float


class Native(DeviceState):
    """The simulated driver of one device."""

    def __init__(self, name: str, machine: Machine, config: Config) -> None:
        super().__init__(name, machine)
        self.memory = Memory(name, config.memory)
        machine.memories.append(self.memory)
        self._faults = Faults(config.faults, f"{config.seed} {name}")
        self._config = config
        self._captured: list[tuple[Kernel, Sequence[Buffer | Array]]] | None = None  # launches, while a call captures
        self._failures_without_stream: list[Exception] = []  # failures without a stream: the next wait raises them

    @property
    def now(self) -> float:
        """The host's clock, in seconds of virtual time."""
        return self.machine.now

    def fail(self, specification: str) -> None:
        """Plant a fault, as `faults` in the config does; calls count from now on. Raises InvalidArgument."""
        with self.machine.lock:
            self._faults.add(specification)

    def allocate(self, nbytes: int) -> Buffer | None:
        """Raises Unavailable when the device is lost."""
        with self.machine.lock:
            if self.lost is not None:
                raise copy(self.lost)
            if self._faults.strikes("allocate"):
                return None
            buffer = self.memory.allocate(nbytes)
            while buffer is None and self.memory.late and self.machine.advance():
                self._catch_up()
                buffer = self.memory.allocate(nbytes)
            return buffer

    def wrap(self, host: Array) -> Buffer | None:
        """A buffer over a host array, None unless config permits it. Raises Unavailable when the device is lost."""
        with self.machine.lock:
            if self.lost is not None:
                raise copy(self.lost)
            return self.memory.wrap(host) if self._config.wraps else None

    def part(self, buffer: Buffer, start: int, nbytes: int) -> Part:
        """A part of a buffer. Raises InvalidArgument for bytes that the buffer has not, and for a wrong alignment."""
        if not 0 <= start <= start + nbytes <= buffer.nbytes or start % (self._config.part_alignment or 1):
            raise errors.InvalidArgument(f"{nbytes} bytes from byte {start} on are no part of {buffer}",
                                         device=self.name)
        return Part(buffer, start, nbytes)

    def free(self, buffer: Buffer) -> None:
        with self.machine.lock:
            if buffer.state == "live":
                buffer.memory.free(buffer)
            elif buffer.state in ("freed", "returned"):
                self._failures_without_stream.append(self.report_mistake("double free", f"{buffer} was freed before"))

    def write(self, stream: Hashable, host: Array, buffer: Buffer) -> None:
        """Copy in. The bytes behind the array, up to the alignment of copies, are poison afterwards."""
        alignment = self._config.copy_alignment
        nbytes = -(-host.nbytes // alignment) * alignment

        def compute() -> None:
            buffer.bytes(host.nbytes)[:] = _bytes(host)
            buffer.bytes(nbytes)[host.nbytes :] = POISON

        self._copy(stream, "copy in", "in", nbytes, self._config.link_bandwidth, writes=(buffer,), host=host,
                   compute=compute)

    def read(self, stream: Hashable, buffer: Buffer, host: Array) -> None:
        self._copy(stream, "copy out", "out", host.nbytes, self._config.link_bandwidth, reads=(buffer,), host=host,
                   compute=lambda: np.copyto(_bytes(host), buffer.bytes(host.nbytes)))

    def copy(self, stream: Hashable, source: object, target: object) -> bool:
        """Copy between this device and another of the machine. False for any other pair of buffers."""
        if not isinstance(source, Buffer) or not isinstance(target, Buffer):
            return False
        memories = [source.memory, target.memory]
        if self.memory not in memories or not all(m in self.machine.memories for m in memories):
            return False
        count = min(source.nbytes, target.nbytes)
        self._copy(stream, "peer copy", "peer", count, self._config.peer_bandwidth, reads=(source,), writes=(target,),
                   compute=lambda: np.copyto(target.bytes(count), source.bytes(count)))
        return True

    def launch(
        self, stream: Hashable, kernel: Kernel, arguments: Sequence[Buffer | Array], *, in_graph: bool = False
    ) -> None:
        """Enqueue the kernel. `arguments`: inputs, then outputs. Host arrays are read now, like launch parameters.
        `in_graph`: behind other kernels of one launch, so without its latency."""
        if self._captured is not None:
            self._captured.append((kernel, [a if isinstance(a, Buffer) else a.copy() for a in arguments]))
            return
        metas = (*kernel.inputs, *kernel.outputs)
        operands = [a if isinstance(a, Buffer) else a.copy() for a in arguments]
        sized = [(a, meta) for a, meta in zip(operands, metas, strict=True) if isinstance(a, Buffer)]
        moved = sum(meta.nbytes for _, meta in sized)
        seconds = max(kernel.flops / self._config.flops, moved / self._config.bandwidth)
        seconds += 0 if in_graph else self._config.launch_latency

        def compute() -> None:
            kernel.compute(*[a.array(meta.dtype, meta.dims) if isinstance(a, Buffer) else a
                             for a, meta in zip(operands, metas, strict=True)])

        inputs = operands[: len(kernel.inputs)]
        operation = Operation(
            self, f"launch of {kernel.op} ({kernel.node})", "compute", seconds, compute,
            tuple(a for a in inputs if isinstance(a, Buffer)),
            tuple(a for a in operands[len(inputs):] if isinstance(a, Buffer)), node=kernel.node, op=kernel.op)
        self._submit(stream, operation, "launch", [(a, meta.nbytes) for a, meta in sized])

    def capture(self, stream: Hashable, calls: Iterable[Callable[[], object]]) -> Callable[[], None]:
        """Return a call that enqueues the launches of these calls as one. Nothing is enqueued now."""
        with self.machine.lock:
            captured: list[tuple[Kernel, Sequence[Buffer | Array]]] = []
            self._captured = captured
            try:
                for call in calls:
                    call()
            finally:
                self._captured = None
        return partial(self._replay, stream, captured)

    def event(self) -> Event:
        """An event to be recorded later. A stream may wait for it earlier."""
        return Event()

    def record(self, stream: Hashable, event: Event | None = None) -> Event:
        """Raises InvalidArgument for an event that was recorded before."""
        with self.machine.lock:
            event = Event() if event is None else event
            if event.is_recorded:
                raise errors.InvalidArgument("an event is recorded once", device=self.name)
            self._enqueue(self.machine.stream(self.name, stream), Record(event))
            event.is_recorded = True
            return event

    def wait(self, stream: Hashable, event: Event) -> None:
        with self.machine.lock:
            self._enqueue(self.machine.stream(self.name, stream), Wait(event))

    def synchronize(self, event: Event) -> None:
        """Wait for the event. Raises an earlier failure, Internal for a deadlock, Unavailable for a lost device."""
        with self.machine.lock:
            while not event.is_reached:
                if not self.machine.advance():
                    raise self._deadlock(str(Wait(event)))
            self.machine.advance_host(event)
            failures = [*self._failures_without_stream, *event.failures]
            self._failures_without_stream.clear()
            self.machine.drop_failures(failures)
            if self.lost is not None:
                raise copy(self.lost)  # a copy: a raised error holds the frames that it passed
            if failures:
                raise copy(failures[0])

    def finish(self) -> None:
        """Run every item that can run. The reports get the mistakes, and a deadlock for the items that cannot."""
        with self.machine.lock:
            while self.machine.advance():
                self._catch_up()
            if any(stream.items for stream in self.machine.streams(self.name)):
                self._deadlock("the end")

    def reset(self) -> None:
        """Start a lost device anew, with empty memory and empty streams."""
        with self.machine.lock:
            reset_error = errors.Unavailable("the device was reset", device=self.name)
            for stream in self.machine.streams(self.name):
                for item in stream.items:
                    if isinstance(item, Record):
                        item.event.reach(self.now, dict(stream.clock), [reset_error])
                stream.items.clear()
                stream.failures.clear()
            self.memory.lose()
            self._failures_without_stream.clear()
            self.lost = None

    def trace(self) -> dict[str, Any]:
        """The operations that ran, in virtual time. As JSON, chrome://tracing and Perfetto read it."""
        return {"traceEvents": [{"ph": "X", "pid": self.name, "tid": engine, "name": what, "ts": start * 1e6,
                                 "dur": seconds * 1e6} for engine, what, start, seconds in self.spans]}

    def _replay(self, stream: Hashable, launches: Sequence[tuple[Kernel, Sequence[Buffer | Array]]]) -> None:
        for number, (kernel, arguments) in enumerate(launches):
            self.launch(stream, kernel, arguments, in_graph=number > 0)

    def _copy(
        self, stream: Hashable, what: str, engine: str, nbytes: int, bandwidth: float, *,
        compute: Callable[[], object], reads: tuple[Buffer, ...] = (), writes: tuple[Buffer, ...] = (),
        host: Array | None = None,
    ) -> None:
        seconds = self._config.copy_latency + nbytes / bandwidth
        operation = Operation(self, what, engine, seconds, compute, reads, writes, host, writes_host=not writes)
        self._submit(stream, operation, "copy", [(buffer, nbytes) for buffer in operation.buffers])

    def _submit(self, stream: Hashable, operation: Operation, kind: str, needs: list[tuple[Buffer, int]]) -> None:
        with self.machine.lock:
            planted_fault = self._faults.strikes("lost", kind)
            operation.loses = planted_fault == "lost"
            operation.failure = self._misuse(operation, needs)
            if operation.failure is None and planted_fault == kind:
                operation.failure = errors.Internal(f"a planted fault: {operation.what} failed", node=operation.node,
                                                    op=operation.op, device=self.name)
            self._enqueue(self.machine.stream(self.name, stream), operation)
            for buffer in operation.buffers:
                buffer.uses += 1

    def _misuse(self, operation: Operation, needs: list[tuple[Buffer, int]]) -> errors.HealdError | None:
        what = operation.what
        for buffer in operation.writes:
            if buffer.host is not None:
                return self.report_mistake("write to the host", f"{what} writes {buffer}, which is memory of the host")
        for buffer, nbytes in needs:
            if buffer.state in ("freed", "returned"):
                return self.report_mistake("use after free", f"{what} uses {buffer}, which was freed")
            if buffer.state == "lost":
                return self.report_mistake("use after reset", f"{what} uses {buffer}, which is older than the reset")
            if buffer.device != self.name and operation.engine != "peer":
                return self.report_mistake("wrong device", f"{what} on {self.name} uses {buffer}")
            if nbytes > buffer.nbytes:
                return self.report_mistake("overrun", f"{what} uses {nbytes} bytes of {buffer}")
        return None

    def _enqueue(self, stream: Stream, item: Item) -> None:
        """Enqueue an item. The host waits while the stream is full. Raises Internal for a deadlock."""
        while len(stream.items) >= self._config.queue:
            if not self.machine.advance():
                raise self._deadlock(f"room in {stream}")
            self.machine.now = max(self.machine.now, stream.seconds)
        self.machine.now += self._config.enqueue
        self.machine.enqueue(stream, item)

    def _catch_up(self) -> None:
        """Advance the host's clock to the end of the last item. The host gains no knowledge about order."""
        self.machine.now = max([self.machine.now, *(s.seconds for s in self.machine.streams(self.name))])

    def _deadlock(self, awaited: str) -> errors.HealdError:
        blocked = "".join(f"; {line}" for line in self.machine.blocked_streams())
        return self.report_mistake("deadlock", f"the host waits for {awaited}, and nothing can run{blocked}")


def _bytes(host: Array) -> Array:
    return host.reshape(-1).view(np.uint8)
