"""An operation: a launch or a copy that takes time on an engine, with the checks of its run.

A failed operation writes nothing, and leaves its failure in its output buffers. An operation that reads such a buffer
fails, too. So each reader of a value gets the failure, even after another thread was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from heald.api import errors

from .device_state import DeviceState
from .happens_before import Access
from .machine import Item, Stream
from .memory import Buffer


@dataclass(eq=False)
class Operation(Item):
    """A launch or a copy, as the driver enqueued it.

    `host`: the host's array that it reads, or writes if `writes_host`; `failure`: the mistake that was found when it
    was enqueued; `loses`: the device does not survive it; `node`, `op`: for errors.
    """

    device: DeviceState
    what: str
    engine: str
    seconds: float
    compute: Callable[[], object]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    host: np.ndarray[Any, Any] | None = None
    writes_host: bool = False
    failure: Exception | None = None
    loses: bool = False
    node: str | None = None
    op: str | None = None

    @property
    def buffers(self) -> list[Buffer]:
        return list(dict.fromkeys((*self.reads, *self.writes)))

    def start(self, stream: Stream) -> float | None:
        return max(stream.seconds, self.issued, self.device.engines.get(self.engine, 0.0))

    def run(self, stream: Stream, start: float) -> None:
        stream.seconds = self.device.engines[self.engine] = start + self.seconds
        self.device.spans.append((self.engine, f"{self.what} on stream {stream.actor[1]}", start, self.seconds))
        stream.learn(self.issuing_clock)
        if self.loses:
            self.device.lose()
        failure = (self.device.lost or self.failure or self._find_race(stream) or self._failure_of_inputs()
                   or self._compute())
        if failure is not None:
            stream.fail([failure])
        for buffer in self.writes:
            buffer.failure = failure
        for buffer in self.buffers:
            buffer.uses -= 1
            buffer.memory.release(buffer)

    def _find_race(self, stream: Stream) -> Exception | None:
        """Note the operation's accesses. Returns the fault if one of them is a race."""
        access = Access(stream.actor, stream.tick(), self.what)
        races: list[tuple[Access, object]] = []
        for buffers, writes in ((self.reads, False), (self.writes, True)):
            races += [(earlier, buffer) for buffer in buffers
                      if (earlier := buffer.history.conflict(stream.clock, writes=writes))]
        for buffer in self.reads:
            buffer.history.add(access, writes=False)
        for buffer in self.writes:
            buffer.history.add(access, writes=True)
        memory = self.device.machine.host_memory
        for host, writes in self._host_memory():
            if earlier := memory.conflict(host, stream.clock, writes=writes):
                races.append((earlier, f"the same host memory ({host.nbytes} bytes)"))
            memory.add(host, access, writes=writes)
        for earlier, _ in races:  # one missing wait is one fault: later operations count as ordered
            stream.learn({earlier.actor: earlier.tick})
        if not races:
            return None
        earlier, memory_name = races[0]
        device, number = earlier.actor
        message = (f"{self.what} on {stream} and {earlier.what} on {device} stream {number} use {memory_name}, and "
                   "nothing orders them")
        return self.device.report_mistake("race", message,
                                          "let one wait for an event that is recorded after the other")

    def _host_memory(self) -> Iterator[tuple[np.ndarray[Any, Any], bool]]:
        """Yield the host's arrays that the operation uses, each with True if it is written."""
        if self.host is not None:
            yield self.host, self.writes_host
        for buffer in self.reads:
            if buffer.host is not None:
                yield buffer.host, False

    def _failure_of_inputs(self) -> Exception | None:
        return next((buffer.failure for buffer in self.reads if buffer.failure is not None), None)

    def _compute(self) -> Exception | None:
        try:
            with np.errstate(all="ignore"):
                self.compute()
        except errors.HealdError as error:
            error.__traceback__ = None  # a traceback keeps its frames alive as long as the failure is kept
            return error.at(node=self.node, op=self.op, device=self.device.name)
        except Exception as error:  # noqa: BLE001 - the waiting thread gets it
            return errors.Unknown(f"{self.what} failed with {type(error).__name__}: {error}", node=self.node,
                                  op=self.op, device=self.device.name)
        return None
