"""Stands in for a vendor's library: what kernels and tests drive a device with.

What a program does wrong is kept in `report`, and raised as Internal by whoever waits for an event behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from heald.api import TensorMetadata, errors

from .faults import Faults
from .machine import Event, Item, Machine, Record, Stream, Wait
from .memory import Buffer, Memory
from .operation import Operation

if TYPE_CHECKING:
    from .plugin import Config

Array = np.ndarray[Any, Any]
SPANS = 1 << 16  # that the trace keeps


class Fault(NamedTuple):
    """`kind`: race, use after free, double free, use after reset, wrong device, overrun, write to the host,
    deadlock."""

    kind: str
    message: str


@dataclass(frozen=True)
class Kernel:
    """`compute(*inputs, *outputs)`, over arrays of this metadata; `flops` that a launch takes."""

    op: str
    node: str
    compute: Callable[..., object]
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    flops: float


class Driver:
    def __init__(self, name: str, machine: Machine, config: Config) -> None:
        self.name = name
        self.machine = machine
        self.memory = Memory(name, config.memory)
        machine.memories.append(self.memory)
        self.report: list[Fault] = []
        self.lost: Exception | None = None
        self.engines: dict[str, float] = {}  # when each is free
        self.spans: deque[tuple[str, str, float, float]] = deque(maxlen=SPANS)  # engine, what, start, seconds
        self._faults = Faults(config.faults, f"{config.seed} {name}")
        self._config = config
        self._owed: list[Exception] = []  # to the next that waits: they belong to no stream

    @property
    def now(self) -> float:
        """The host's clock, in seconds of virtual time."""
        return self.machine.now

    def fail(self, specification: str) -> None:
        """Plant a fault, as `faults` in the config does; calls count from now on. Raises InvalidArgument."""
        with self.machine.lock:
            self._faults.add(specification)

    def found(self, kind: str, message: str, hint: str | None = None) -> errors.HealdError:
        """The error for what the program does wrong, which is reported once."""
        if (fault := Fault(kind, message)) not in self.report:
            self.report.append(fault)
        return errors.Internal(f"{kind}: {message}", device=self.name, hint=hint)

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
        """A buffer over a host array, if the config lets the device read those. Raises Unavailable as allocate does."""
        with self.machine.lock:
            if self.lost is not None:
                raise copy(self.lost)
            return self.memory.wrap(host) if self._config.wraps else None

    def free(self, buffer: Buffer) -> None:
        with self.machine.lock:
            if buffer.state == "live":
                buffer.memory.free(buffer)
            elif buffer.state == "freed":
                self._owed.append(self.found("double free", f"{buffer} was freed before"))

    def write(self, stream: Hashable, host: Array, buffer: Buffer) -> None:
        self._copy(stream, "copy in", "in", host.nbytes, self._config.link_bandwidth, writes=(buffer,), host=host,
                   compute=lambda: np.copyto(buffer.bytes(host.nbytes), _bytes(host)))

    def read(self, stream: Hashable, buffer: Buffer, host: Array) -> None:
        self._copy(stream, "copy out", "out", host.nbytes, self._config.link_bandwidth, reads=(buffer,), host=host,
                   compute=lambda: np.copyto(_bytes(host), buffer.bytes(host.nbytes)))

    def copy(self, stream: Hashable, source: object, target: object) -> bool:
        """Between the memories of two devices of the machine, one of them this; False for any other."""
        if not isinstance(source, Buffer) or not isinstance(target, Buffer):
            return False
        memories = [source.memory, target.memory]
        if self.memory not in memories or not all(m in self.machine.memories for m in memories):
            return False
        count = min(source.nbytes, target.nbytes)
        self._copy(stream, "peer copy", "peer", count, self._config.peer_bandwidth, reads=(source,), writes=(target,),
                   compute=lambda: np.copyto(target.bytes(count), source.bytes(count)))
        return True

    def launch(self, stream: Hashable, kernel: Kernel, arguments: Iterable[Buffer | Array]) -> None:
        """Inputs, then outputs. An input in host memory is read now, as launch parameters are."""
        metas = (*kernel.inputs, *kernel.outputs)
        given = [a if isinstance(a, Buffer) else a.copy() for a in arguments]
        sized = [(a, meta) for a, meta in zip(given, metas, strict=True) if isinstance(a, Buffer)]
        moved = sum(meta.nbytes for _, meta in sized)
        takes = max(kernel.flops / self._config.flops, moved / self._config.bandwidth)

        def compute() -> None:
            kernel.compute(*[a.array(meta.dtype, meta.dims) if isinstance(a, Buffer) else a
                             for a, meta in zip(given, metas, strict=True)])

        inputs = given[: len(kernel.inputs)]
        operation = Operation(
            self, f"launch of {kernel.op} ({kernel.node})", "compute", self._config.launch_latency + takes, compute,
            tuple(a for a in inputs if isinstance(a, Buffer)),
            tuple(a for a in given[len(inputs):] if isinstance(a, Buffer)), node=kernel.node, op=kernel.op)
        self._submit(stream, operation, "launch", [(a, meta.nbytes) for a, meta in sized])

    def event(self) -> Event:
        """An event to be recorded later: a stream may wait for it before."""
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
        """Raises what had failed before the event, Internal for a deadlock, Unavailable when the device is lost."""
        with self.machine.lock:
            while not event.is_reached:
                if not self.machine.advance():
                    raise self._deadlock(str(Wait(event)))
            self.machine.waited(event)
            failures = [*self._owed, *event.failures]
            self._owed.clear()
            self.machine.told(failures)
            if self.lost is not None:
                raise copy(self.lost)  # a copy: what is raised holds the frames that it went through
            if failures:
                raise copy(failures[0])

    def finish(self) -> None:
        """Run all that can run; what is wrong with it is in the reports, what cannot run as a deadlock."""
        with self.machine.lock:
            while self.machine.advance():
                self._catch_up()
            if any(stream.items for stream in self.machine.streams(self.name)):
                self._deadlock("the end")

    def lose(self) -> None:
        if self.lost is None:
            self.lost = errors.Unavailable("the device is lost", device=self.name,
                                           hint="native.reset() makes it new, for another host")

    def reset(self) -> None:
        """A lost device begins anew, and has nothing of what was in its memory or its streams."""
        with self.machine.lock:
            gone = errors.Unavailable("the device was reset", device=self.name)
            for stream in self.machine.streams(self.name):
                for item in stream.items:
                    if isinstance(item, Record):
                        item.event.reach(self.now, dict(stream.clock), [gone])
                stream.items.clear()
                stream.failures.clear()
            self.memory.lose()
            self._owed.clear()
            self.lost = None

    def trace(self) -> dict[str, Any]:
        """What ran, in virtual time, in the form that chrome://tracing and Perfetto read as JSON."""
        return {"traceEvents": [{"ph": "X", "pid": self.name, "tid": engine, "name": what, "ts": start * 1e6,
                                 "dur": seconds * 1e6} for engine, what, start, seconds in self.spans]}

    def _copy(
        self, stream: Hashable, what: str, engine: str, nbytes: int, bandwidth: float, *,
        compute: Callable[[], object], reads: tuple[Buffer, ...] = (), writes: tuple[Buffer, ...] = (),
        host: Array | None = None,
    ) -> None:
        takes = self._config.copy_latency + nbytes / bandwidth
        operation = Operation(self, what, engine, takes, compute, reads, writes, host, writes_host=not writes)
        self._submit(stream, operation, "copy", [(buffer, nbytes) for buffer in operation.buffers])

    def _submit(self, stream: Hashable, operation: Operation, kind: str, needs: list[tuple[Buffer, int]]) -> None:
        with self.machine.lock:
            struck = self._faults.strikes("lost", kind)
            operation.loses = struck == "lost"
            operation.failure = self._misuse(operation, needs)
            if operation.failure is None and struck == kind:
                operation.failure = errors.Internal(f"a planted fault: {operation.what} failed", node=operation.node,
                                                    op=operation.op, device=self.name)
            self._enqueue(self.machine.stream(self.name, stream), operation)
            for buffer in operation.buffers:
                buffer.uses += 1

    def _misuse(self, operation: Operation, needs: list[tuple[Buffer, int]]) -> errors.HealdError | None:
        what = operation.what
        for buffer in operation.writes:
            if buffer.host is not None:
                return self.found("write to the host", f"{what} writes {buffer}, which is memory of the host")
        for buffer, nbytes in needs:
            if buffer.state == "freed":
                return self.found("use after free", f"{what} uses {buffer}, which was freed")
            if buffer.state == "lost":
                return self.found("use after reset", f"{what} uses {buffer}, which is older than the reset")
            if buffer.device != self.name and operation.engine != "peer":
                return self.found("wrong device", f"{what} on {self.name} uses {buffer}")
            if nbytes > buffer.nbytes:
                return self.found("overrun", f"{what} uses {nbytes} bytes of {buffer}")
        return None

    def _enqueue(self, stream: Stream, item: Item) -> None:
        """When the stream is full the host waits. Raises Internal where it would wait for ever."""
        while len(stream.items) >= self._config.queue:
            if not self.machine.advance():
                raise self._deadlock(f"room in {stream}")
            self.machine.now = max(self.machine.now, stream.seconds)
        self.machine.now += self._config.enqueue
        self.machine.enqueue(stream, item)

    def _catch_up(self) -> None:
        """The host has waited for what ran last, and knows nothing of it."""
        self.machine.now = max([self.machine.now, *(s.seconds for s in self.machine.streams(self.name))])

    def _deadlock(self, awaited: str) -> errors.HealdError:
        blocked = "".join(f"; {line}" for line in self.machine.blocked())
        return self.found("deadlock", f"the host waits for {awaited}, and nothing can run{blocked}")


def _bytes(host: Array) -> Array:
    return host.reshape(-1).view(np.uint8)
