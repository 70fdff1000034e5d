"""The machine: the streams of all its devices, and virtual time.

Enqueueing runs nothing. A waiting host thread moves the clock: of all streams, the item that starts first runs first,
until the event is reached. So a program that reads a result, or reuses memory, without waiting is always too early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import count
from threading import RLock

from .happens_before import Actor, Clock, HostMemory, join_clocks
from .memory import Memory


class Event:
    """A position in a stream. A reached event has its time, the clock of the operations that are over, and their
    failures."""

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
    """Items that run one after the other.

    `seconds`: the end of the last item that ran; `failures`: of items that ran, until a host thread is told.
    """

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
        self.clock = join_clocks(self.clock, clock)

    def fail(self, failures: Sequence[Exception]) -> None:
        self.failures += [failure for failure in failures if failure not in self.failures]

    def __str__(self) -> str:
        return f"{self.actor[0]} stream {self.actor[1]}"


class Item:
    """An item of a stream: an operation, a Record or a Wait.

    The machine notes the time at which the host enqueued it (`issued`), and the host's clock then (`issuing_clock`).
    """

    number: int
    issued: float
    issuing_clock: Clock

    def start(self, stream: Stream) -> float | None:
        """The time at which the item starts as the head of its stream; None while it cannot start."""
        return max(stream.seconds, self.issued)

    def run(self, stream: Stream, start: float) -> None:
        raise NotImplementedError


class Record(Item):
    def __init__(self, event: Event) -> None:
        self.event = event

    def run(self, stream: Stream, start: float) -> None:
        stream.learn(self.issuing_clock)
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
        return "an event that is recorded" if self.event.is_recorded else "an event that was never recorded"


class Machine:
    """The streams of all devices. `now`: the host's time; `host_clock`: the clock of the operations that the host
    has waited for. All threads of the host count as one."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.now = 0.0
        self.host_clock: Clock = {}
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
        item.number, item.issued, item.issuing_clock = next(self._numbers), self.now, self.host_clock
        stream.items.append(item)

    def advance(self) -> bool:
        """Run the item that starts first. Returns False when no item can start."""
        ready = [(start, stream.items[0].number, stream) for stream in self._streams.values() if stream.items
                 if (start := stream.items[0].start(stream)) is not None]
        if not ready:
            return False
        start, _, stream = min(ready)  # numbers differ: streams are not compared
        stream.items.popleft().run(stream, start)
        return True

    def blocked_streams(self) -> list[str]:
        """The streams that wait: `SIM:0 stream 1 waits for an event that was never recorded`."""
        return [f"{stream} waits for {stream.items[0]}" for stream in self._streams.values()
                if stream.items and stream.items[0].start(stream) is None]

    def advance_host(self, event: Event) -> None:
        """Advance the host to a reached event that it has waited for."""
        self.now = max(self.now, event.seconds)
        self.host_clock = join_clocks(self.host_clock, event.clock)
        self.host_memory.forget(self.host_clock)

    def drop_failures(self, failures: Sequence[Exception]) -> None:
        """Drop failures that the host was told of, so that later events do not repeat them."""
        for stream in self._streams.values():
            stream.failures = [failure for failure in stream.failures if failure not in failures]
