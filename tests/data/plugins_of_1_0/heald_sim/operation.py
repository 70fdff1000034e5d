"""An operation: a launch or a copy that takes time on an engine, and what is checked when it runs.

One that fails is not done, and leaves its failure in what it would have written. So does one that reads such memory:
whoever gets a value from there is told, even where another thread was told before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from heald.api import errors

from .machine import Item, Stream
from .memory import Buffer
from .order import Access

if TYPE_CHECKING:
    from .driver import Driver


@dataclass(eq=False)
class Operation(Item):
    """`host`: the host's array that it reads, or `writes_host`. `failure`: what was wrong with it when it was
    enqueued; `loses`: it is what the device does not survive. `places`: node and op, for errors."""

    driver: Driver
    what: str
    engine: str
    takes: float
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
        return max(stream.seconds, self.issued, self.driver.engines.get(self.engine, 0.0))

    def run(self, stream: Stream, start: float) -> None:
        stream.seconds = self.driver.engines[self.engine] = start + self.takes
        self.driver.spans.append((self.engine, f"{self.what} on stream {stream.actor[1]}", start, self.takes))
        stream.learn(self.known)
        if self.loses:
            self.driver.lose()
        failure = self.driver.lost or self.failure or self._ordered(stream) or self._tainted() or self._done()
        if failure is not None:
            stream.fail([failure])
        for buffer in self.writes:
            buffer.failure = failure
        for buffer in self.buffers:
            buffer.uses -= 1
            buffer.memory.release(buffer)

    def _ordered(self, stream: Stream) -> Exception | None:
        """Note its accesses; the fault if one of them is a race."""
        access = Access(stream.actor, stream.tick(), self.what)
        raced: list[tuple[Access, object]] = []
        for buffers, writes in ((self.reads, False), (self.writes, True)):
            raced += [(earlier, buffer) for buffer in buffers
                      if (earlier := buffer.history.unordered(stream.clock, writes=writes))]
        for buffer in self.reads:
            buffer.history.note(access, writes=False)
        for buffer in self.writes:
            buffer.history.note(access, writes=True)
        memory = self.driver.machine.host_memory
        for host, writes in self._host_memory():
            if earlier := memory.unordered(host, stream.clock, writes=writes):
                raced.append((earlier, f"the same host memory ({host.nbytes} bytes)"))
            memory.note(host, access, writes=writes)
        for earlier, _ in raced:  # one missing wait is one fault: what follows counts as ordered
            stream.learn({earlier.actor: earlier.tick})
        if not raced:
            return None
        earlier, where = raced[0]
        device, number = earlier.actor
        return self.driver.found("race", f"{self.what} on {stream} and {earlier.what} on {device} stream {number} use "
                                         f"{where}, and nothing orders them",
                                 "let one wait for an event that is recorded after the other")

    def _host_memory(self) -> Iterator[tuple[np.ndarray[Any, Any], bool]]:
        """Arrays of the host that it uses, and whether it writes them."""
        if self.host is not None:
            yield self.host, self.writes_host
        for buffer in self.reads:
            if buffer.host is not None:
                yield buffer.host, False

    def _tainted(self) -> Exception | None:
        return next((buffer.failure for buffer in self.reads if buffer.failure is not None), None)

    def _done(self) -> Exception | None:
        try:
            with np.errstate(all="ignore"):
                self.compute()
        except errors.HealdError as error:
            error.__traceback__ = None  # it would hold what is called here for as long as the failure is kept
            return error.at(node=self.node, op=self.op, device=self.driver.name)
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            return errors.Unknown(f"{self.what} failed with {type(error).__name__}: {error}", node=self.node,
                                  op=self.op, device=self.driver.name)
        return None
