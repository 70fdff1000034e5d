"""The machine: the streams of all its devices, and virtual time.

Nothing runs when it is enqueued. Whoever waits moves the clock: whatever starts first, on whichever stream, runs
first, until the event has come. So whoever reads a result, or reuses memory, without waiting is too early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import count
from threading import RLock

from .memory import Memory
from .order import Actor, Clock, HostMemory, joined


class Event:
    """A place in a stream. Once reached it tells when, what is over then, and what had failed."""

    __slots__ = ("clock", "failures", "is_reached", "is_recorded", "seconds")

    def __init__(self) -> None:
        self.is_recorded = False
        self.is_reached = False
        self.seconds = 0.0
        self.clock: Clock = {}
        self.failures: tuple[Exception, ...] = ()

    def reach(self, seconds: float, clock: Clock, failures: Sequence[Exception]) -> None:
        self.is_recorded = self.is_reached = True
        self.seconds, self.clock, self.failures = seconds, clock, tuple(failures)


class Stream:
    """Items that run one after the other. `seconds`: when the last of them was over; `failures`: of those that have
    run, as long as no host thread was told."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.items: deque[Item] = deque()
        self.seconds = 0.0
        self.clock: dict[Actor, int] = {}
        self.failures: list[Exception] = []

    def tick(self) -> int:
        self.clock[self.actor] = self.clock.get(self.actor, 0) + 1
        return self.clock[self.actor]

    def learn(self, clock: Clock) -> None:
        self.clock = joined(self.clock, clock)

    def fail(self, failures: Sequence[Exception]) -> None:
        self.failures += [failure for failure in failures if failure not in self.failures]

    def __str__(self) -> str:
        return f"{self.actor[0]} stream {self.actor[1]}"


class Item:
    """What a stream holds: an operation, or one of the two below. The machine notes when the host enqueued it, and
    what the host knew then."""

    number: int
    issued: float
    known: Clock

    def start(self, stream: Stream) -> float | None:
        """When it starts, as the head of its stream; None while it cannot."""
        return max(stream.seconds, self.issued)

    def run(self, stream: Stream, start: float) -> None:
        raise NotImplementedError


class Record(Item):
    def __init__(self, event: Event) -> None:
        self.event = event

    def run(self, stream: Stream, start: float) -> None:
        stream.learn(self.known)
        self.event.reach(start, dict(stream.clock), stream.failures)


class Wait(Item):
    def __init__(self, event: Event) -> None:
        self.event = event

    def start(self, stream: Stream) -> float | None:
        return max(stream.seconds, self.issued, self.event.seconds) if self.event.is_reached else None

    def run(self, stream: Stream, start: float) -> None:
        stream.seconds = start
        stream.learn(self.event.clock)
        stream.fail(self.event.failures)

    def __str__(self) -> str:
        return "an event that is recorded" if self.event.is_recorded else "an event that nobody has recorded"


class Machine:
    """`now`: the host's clock. `known`: what the host has waited for; all its threads are one to the machine."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.now = 0.0
        self.known: Clock = {}
        self.host_memory = HostMemory()
        self.memories: list[Memory] = []  # of its devices
        self._streams: dict[Actor, Stream] = {}
        self._numbers = count()

    def stream(self, device: str, stream: Hashable) -> Stream:
        actor = device, stream
        if actor not in self._streams:
            self._streams[actor] = Stream(actor)
        return self._streams[actor]

    def streams(self, device: str) -> list[Stream]:
        return [stream for stream in self._streams.values() if stream.actor[0] == device]

    def enqueue(self, stream: Stream, item: Item) -> None:
        item.number, item.issued, item.known = next(self._numbers), self.now, self.known
        stream.items.append(item)

    def advance(self) -> bool:
        """Run the item that starts first; False when none can start."""
        ready = [(start, stream.items[0].number, stream) for stream in self._streams.values() if stream.items
                 if (start := stream.items[0].start(stream)) is not None]
        if not ready:
            return False
        start, _, stream = min(ready)  # numbers differ: streams are not compared
        stream.items.popleft().run(stream, start)
        return True

    def blocked(self) -> list[str]:
        """What stands still: `SIM:0 stream 1 waits for an event that nobody has recorded`."""
        return [f"{stream} waits for {stream.items[0]}" for stream in self._streams.values()
                if stream.items and stream.items[0].start(stream) is None]

    def waited(self, event: Event) -> None:
        """The host has waited for an event that is reached."""
        self.now = max(self.now, event.seconds)
        self.known = joined(self.known, event.clock)
        self.host_memory.forget(self.known)

    def told(self, failures: Sequence[Exception]) -> None:
        """The host was told of failures: events that are reached later tell of them no more."""
        for stream in self._streams.values():
            stream.failures = [failure for failure in stream.failures if failure not in failures]
