"""A transport between two processes: a Rendezvous over a pipe, as a plugin would write one.

A message belongs to a step, whose number both processes know. One thread per process receives messages, one sends them:
`send` and `abort` never block.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from heald.api import AsyncValue, Rendezvous, RendezvousKey, errors
from heald.runtime.host.rendezvous import LocalRendezvous


class Wire:
    """One end of the pipe, with the tensors that have come, by step. `requests` has all messages that are not of a
    step."""

    def __init__(self, pipe: Connection) -> None:
        self.requests: SimpleQueue[Any] = SimpleQueue()
        self.outgoing: SimpleQueue[Any] = SimpleQueue()
        self._pipe = pipe
        self._came: dict[int, LocalRendezvous] = {}
        self._lost: errors.HealdError | None = None
        self._lock = threading.Lock()
        for work in (self._receive, self._send):
            threading.Thread(target=work, daemon=True).start()

    def meeting(self, step: int) -> Rendezvous:
        return PipeRendezvous(self, step, self.came(step))

    def came(self, step: int) -> LocalRendezvous:
        with self._lock:
            meeting = self._came.setdefault(step, LocalRendezvous())
        if self._lost is not None:
            meeting.abort(self._lost)
        return meeting

    def _send(self) -> None:
        with suppress(OSError):  # the other process has ended: `_receive` tells the steps
            while True:
                self._pipe.send(self.outgoing.get())

    def _receive(self) -> None:
        while True:
            try:
                what, step, *details = self._pipe.recv()
            except (EOFError, OSError):
                break
            if what == "tensor":
                key, value, is_dead = details
                self.came(step).send(RendezvousKey.parse(key), value, is_dead)
            elif what == "abort":
                self.came(step).abort(getattr(errors, details[0])(details[1]))
            else:
                self.requests.put((what, step, *details))
        self._lost = errors.Unavailable("the other process has ended")
        for step in list(self._came):
            self.came(step)
        self.requests.put(("end", 0))


class PipeRendezvous:
    """The rendezvous of one step, which sends tensors to the other process and receives tensors from there."""

    def __init__(self, wire: Wire, step: int, came: LocalRendezvous) -> None:
        self._wire, self._step, self._came = wire, step, came
        self._is_aborted = False

    def send(self, key: RendezvousKey, value: Any, is_dead: bool = False) -> None:
        self._wire.outgoing.put(("tensor", self._step, str(key), value, is_dead))

    def recv(self, key: RendezvousKey) -> AsyncValue:
        return self._came.recv(key)

    def abort(self, error: errors.HealdError) -> None:
        if not self._is_aborted:
            self._is_aborted = True
            self._wire.outgoing.put(("abort", self._step, type(error).__name__, error.message))
        self._came.abort(error)


def serve(pipe: Connection, halves: Any) -> None:
    """Run requested halves of graphs until the other process ends. `halves()`: the graphs by name."""
    import heald

    graphs, wire = halves(), Wire(pipe)
    while (request := wire.requests.get())[0] != "end":
        name, step, targets, feeds = request
        with heald.Session(graphs[name], rendezvous=lambda step=step: wire.meeting(step)) as session:
            try:
                session.run([], feeds, targets=targets)
                outcome = "ok"
            except heald.errors.HealdError as error:
                outcome = f"{type(error).__name__}: {error}"
        wire.outgoing.put(("done", step, outcome))
