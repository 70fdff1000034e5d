"""Happens-before: vector clocks of streams, and the detection of unordered accesses to memory.

A clock has, for each stream, the number of operations that are known to be over. An operation's clock joins three: its
stream's clock, the host's clock when the host enqueued it, and the clocks of the events its stream waited for. Two
operations race when neither clock covers the other and one of them writes, at any timing. A shared engine, or a
slow stream, orders nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

Actor = tuple[str, Hashable]  # device and stream
Clock = Mapping[Actor, int]


class Access(NamedTuple):
    """An operation that accessed memory: the `tick`-th of its stream."""

    actor: Actor
    tick: int
    what: str

    def is_known(self, clock: Clock) -> bool:
        return clock.get(self.actor, 0) >= self.tick


def join_clocks(clock: Clock, other: Clock) -> dict[Actor, int]:
    return dict(clock) | {actor: tick for actor, tick in other.items() if tick > clock.get(actor, 0)}


class History:
    """The last write of a buffer, and the reads since."""

    __slots__ = ("_last_write", "_reads")

    def __init__(self) -> None:
        self._last_write: Access | None = None
        self._reads: dict[Actor, Access] = {}

    def conflict(self, clock: Clock, *, writes: bool) -> Access | None:
        """A conflicting access that the clock does not cover, None without one."""
        earlier: Iterable[Access] = [] if self._last_write is None else [self._last_write]
        return _first_unknown([*earlier, *self._reads.values()] if writes else earlier, clock)

    def add(self, access: Access, *, writes: bool) -> None:
        if writes:
            self._last_write = access
            self._reads.clear()
        else:
            self._reads[access.actor] = access


class HostSpan(NamedTuple):
    """Host memory that an operation accesses. `array` keeps the memory from being reused."""

    start: int
    end: int
    writes: bool
    access: Access
    array: np.ndarray[Any, Any]


class HostMemory:
    """Accesses of the devices to host memory that the host does not know to be over."""

    def __init__(self) -> None:
        self._spans: list[HostSpan] = []

    def conflict(self, array: np.ndarray[Any, Any], clock: Clock, *, writes: bool) -> Access | None:
        start, end = _extent(array)
        return _first_unknown((span.access for span in self._spans if span.start < end and start < span.end
                               and (writes or span.writes)), clock)

    def add(self, array: np.ndarray[Any, Any], access: Access, *, writes: bool) -> None:
        self._spans.append(HostSpan(*_extent(array), writes, access, array))

    def forget(self, clock: Clock) -> None:
        """Drop accesses that the host's clock covers: every later operation inherits that clock."""
        self._spans = [span for span in self._spans if not span.access.is_known(clock)]


def _first_unknown(accesses: Iterable[Access], clock: Clock) -> Access | None:
    return next((access for access in accesses if not access.is_known(clock)), None)


def _extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    start: int = array.__array_interface__["data"][0]
    return start, start + array.nbytes
