"""A model of steps over many workers, by discrete events in simulated time. `ray_simulation.py` measures its constants.

A step is the session's: a call to each worker, messages between workers, an answer from each, and one wait for all.
"""

# The model
#
# - A process pays `barrier` for a call: one half when it sends the call, one half when it takes the answer. It does
#   one such thing at a time. So the session's barrier costs it that much for each worker.
# - A call, and an answer, is under way for `message`. Calls under way do not slow one another.
# - A tensor of n bytes keeps its sender busy for half of n * `byte`, and its receiver for the other half. A message
#   between workers is a call, so each of the two pays its half of `barrier`, too.
# - A worker sends when its work is done, and its part of the step ends when the answers to its messages are there.
# - A part takes its seconds times 1 + E. E is exponential with the mean `spread`, and independent in each worker and
#   step. So the slowest of W parts takes 1 + spread * (1 + 1/2 + ... + 1/W) in the mean.
# - Each worker fails after an exponential time, and ends the step. The run continues `restart` seconds later from the
#   last step that was saved.
#
# A worker alone takes barrier + 2 * message + its seconds. The model knows neither cores nor links that workers share.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random
from typing import NamedTuple

Action = Callable[[float], None]  # takes the time at which it happens
HOPELESS = 1000  # times the time without failures, after which a run counts as endless


class Constants(NamedTuple):
    """Seconds of a message under way, of a byte, and of a process for a call and its answer."""

    message: float
    byte: float
    barrier: float


class Links(NamedTuple):
    """The messages of a step: the workers whose tensors a worker needs `before` its work, and `after` it."""

    before: Mapping[int, Sequence[int]]
    after: Mapping[int, Sequence[int]]


def no_links(workers: int) -> Links:  # noqa: ARG001 - all patterns take it
    """Workers send nothing to each other: parts of a batch whose results the session fetches."""
    return Links({}, {})


def neighbours(workers: int) -> Links:
    """Each worker sends its result to the next, in a ring: parts of a grid."""
    return Links({}, {task: [(task - 1) % workers] for task in range(workers) if workers > 1})


def chain(workers: int) -> Links:
    """Each worker needs the result of the one before it: the layers of a network."""
    return Links({task: [task - 1] for task in range(1, workers)}, {})


def gather(workers: int) -> Links:
    """All workers send their result to worker 0: the sum of gradients."""
    return Links({}, {0: list(range(1, workers))})


PATTERNS: Mapping[str, Callable[[int], Links]] = {
    "no messages": no_links, "neighbours": neighbours, "chain": chain, "gather": gather}


class _Events:
    """Actions in the order of their times. Actions of one time happen in the order in which they were planned."""

    def __init__(self) -> None:
        self._planned: list[tuple[float, int, Action]] = []
        self._numbers = count()

    def plan(self, time: float, action: Action) -> None:
        heappush(self._planned, (time, next(self._numbers), action))

    def run(self) -> None:
        while self._planned:
            time, _, action = heappop(self._planned)
            action(time)


class _Process:
    """A process that does one thing at a time."""

    def __init__(self) -> None:
        self._free = 0.0

    def work(self, now: float, seconds: float) -> float:
        """Return the time at which work that arrives now is done."""
        self._free = max(now, self._free) + seconds
        return self._free


class _Worker:
    """A worker in one step. `missing`: the things that it waits for before its work, and before its end."""

    def __init__(self, before: int, after: int, sends: int) -> None:
        self.process = _Process()
        self.before = before + 1  # the call of the session
        self.after = after + sends + 1  # the answers to its messages, and its work


class _Step:
    def __init__(self, constants: Constants, links: Links, seconds: Sequence[float], tensor_bytes: float) -> None:
        self._constants, self._seconds = constants, seconds
        self._half = constants.barrier / 2
        self._half_of_message = self._half + tensor_bytes * constants.byte / 2
        self._events, self._session = _Events(), _Process()
        self._receivers: dict[int, list[tuple[int, bool]]] = {task: [] for task in range(len(seconds))}
        for is_before, needs in ((True, links.before), (False, links.after)):
            for task, sources in needs.items():
                for source in sources:
                    self._receivers[source].append((task, is_before))
        self._workers = [_Worker(len(links.before.get(task, ())), len(links.after.get(task, ())),
                                 len(self._receivers[task])) for task in range(len(seconds))]
        self._end = 0.0

    def run(self) -> float:
        """Return the seconds until the session has all answers."""
        for task in range(len(self._seconds)):
            called = self._session.work(0.0, self._half) + self._constants.message
            self._events.plan(called, lambda now, task=task: self._arrive(task, now, is_before=True))
        self._events.run()
        return self._end

    def _arrive(self, task: int, now: float, *, is_before: bool) -> None:
        worker = self._workers[task]
        if is_before:
            worker.before -= 1
            if not worker.before:
                self._events.plan(now + self._seconds[task], lambda done: self._send(task, done))
            return
        worker.after -= 1
        if not worker.after:
            self._events.plan(now + self._constants.message, self._take_answer)

    def _send(self, task: int, now: float) -> None:
        for receiver, is_before in self._receivers[task]:
            sent_at = self._workers[task].process.work(now, self._half_of_message)
            self._events.plan(sent_at + self._constants.message, lambda arrived, receiver=receiver, is_before=is_before:
                              self._receive(task, receiver, arrived, is_before=is_before))
        self._arrive(task, now, is_before=False)

    def _receive(self, source: int, task: int, now: float, *, is_before: bool) -> None:
        taken_at = self._workers[task].process.work(now, self._half_of_message)
        self._events.plan(taken_at, lambda time: self._arrive(task, time, is_before=is_before))
        self._events.plan(taken_at + self._constants.message, lambda time: self._arrive(source, time, is_before=False))

    def _take_answer(self, now: float) -> None:
        self._end = self._session.work(now, self._half)


def simulate_step(constants: Constants, links: Links, seconds: Sequence[float], tensor_bytes: float = 0) -> float:
    """Return the seconds of a step. `seconds`: of the work of each worker; `tensor_bytes`: of each message."""
    return _Step(constants, links, seconds, tensor_bytes).run()


def straggle(seconds: float, workers: int, spread: float, random: Random) -> list[float]:
    """Return the seconds of the parts of a step, each with its own delay."""
    return [seconds * (1 + (random.expovariate(1 / spread) if spread else 0.0)) for _ in range(workers)]


def simulate_steps(
    constants: Constants, pattern: str, workers: int, seconds: float, *, tensor_bytes: float = 0, spread: float = 0,
    seed: int = 0,
) -> Iterator[float]:
    """Yield the seconds of one step after the other, without end."""
    random, links = Random(seed), PATTERNS[pattern](workers)  # noqa: S311 - a simulation is not secret
    while True:
        yield simulate_step(constants, links, straggle(seconds, workers, spread, random), tensor_bytes)


class Failures(NamedTuple):
    """Seconds of a worker's mean life, of a restart with the restoring of state, and of saving; steps between saves."""

    life: float
    restart: float
    save: float
    interval: int


def simulate_run(step_seconds: Iterator[float], steps: int, workers: int, failures: Failures, seed: int = 0) -> float:
    """Return the seconds of a run of `steps` steps. `inf` means that failures come faster than the run advances."""
    random = Random(seed)  # noqa: S311 - a simulation is not secret
    clock = ideal = 0.0
    finished = saved = 0
    failure = random.expovariate(workers / failures.life)
    while finished < steps:
        seconds = next(step_seconds)
        ideal = ideal or seconds * steps
        if (finished + 1) % failures.interval == 0:
            seconds += failures.save
        if clock + seconds > failure:
            clock, finished = failure + failures.restart, saved
            failure = clock + random.expovariate(workers / failures.life)
            if clock > HOPELESS * ideal:
                return inf
            continue
        clock, finished = clock + seconds, finished + 1
        if finished % failures.interval == 0:
            saved = finished
    return clock
