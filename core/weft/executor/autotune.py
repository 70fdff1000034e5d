"""Autotuning: an executable finds its fastest schedule by running its steps.

Short programs are told after one run and cost nothing from then on. Others are run a few times with a clock around
each call; if dividing them by these costs promises to pay, both ways are tried in turn and the faster one stays: what
the machine's cores do besides, BLAS's own threads and the GIL are in no estimate. It stays until the next trial, for
longer each time: cores that were busy may be free.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Sequence
from functools import partial
from threading import Lock
from time import perf_counter_ns

from .frame import Cursor, Frame
from .schedule import Schedule
from .step import Step
from .task_partition import LEAST_WORK

ROUNDS = 7  # in which both ways are tried
MARGIN = 1.1  # how much faster pieces have to be
FIRST_STAY, LONGEST_STAY = 100, 25_600  # runs until the next trial

Divide = Callable[[Sequence[int]], Schedule | None]
Experiment = Generator[Schedule, int, Schedule]
"""Yields the schedule of the next run, is sent its ns; returns the one that stays."""


class Autotuner:
    """`schedule` is how the next step is to be run: set when the decision is known already, found out otherwise."""

    def __init__(self, flat: Schedule, divide: Divide) -> None:
        self._lock = Lock()
        self._experiment = experiment(flat, divide)
        self._measured = 0
        self.schedule = self._trial(next(self._experiment))

    def _trial(self, tried: Schedule) -> Schedule:
        """This way, measured; without a reference to the autotuner, which has it."""
        run = partial(_run_measured, weakref.ref(self), self._measured, tried)
        return Schedule(tried.make_frame, run, tried.run_each, tried.frames)

    def measure(self, number: int, tried: Schedule, frame: Frame, step: Step) -> None:
        """Run, and go on with the experiment; only run when that run is measured already, or right now."""
        if number != self._measured or not self._lock.acquire(blocking=False):
            tried.run(frame, step)
            return
        try:
            started = perf_counter_ns()
            tried.run(frame, step)
            if number == self._measured:
                self._go_on(tried, perf_counter_ns() - started)
        finally:
            self._lock.release()

    def _go_on(self, tried: Schedule, took: int) -> None:
        self._measured += 1
        self.schedule = tried  # stays when a Ctrl-C ends the experiment
        try:
            self.schedule = self._trial(self._experiment.send(took))
        except StopIteration as end:
            self.schedule = end.value or tried


def _run_measured(of: weakref.ref[Autotuner], number: int, tried: Schedule, frame: Frame, step: Step) -> None:
    autotuner = of()
    if autotuner is None:
        tried.run(frame, step)
    else:
        autotuner.measure(number, tried, frame, step)


def experiment(flat: Schedule, divide: Divide) -> Experiment:
    """Cold, warm, by the clock, then both in turn: pieces stay when they were faster by MARGIN, the second best run of
    each compared: other work on the machine disturbs some."""
    for _ in range(2):
        if (yield flat) < LEAST_WORK:
            return flat
    clock = Clock()
    clocked = Schedule(flat.make_frame, clock.run, flat.run_each, flat.frames)
    yield clocked
    yield clocked
    pieces = divide(clock.costs)
    if pieces is None:
        return flat
    yield pieces  # cold
    stay = FIRST_STAY
    while True:
        times: tuple[list[int], list[int]] = ([], [])
        for _ in range(ROUNDS):
            times[0].append((yield flat))
            times[1].append((yield pieces))
        flat_time, pieces_time = (sorted(t)[1] for t in times)
        faster, slower = (pieces, flat) if pieces_time * MARGIN < flat_time else (flat, pieces)
        slower.frames.clear()
        for _ in range(stay):
            yield faster
        stay = min(4 * stay, LONGEST_STAY)


class Clock:
    """Runs the flat list with a clock around each call; `costs` are the least ns of each so far."""

    def __init__(self) -> None:
        self.costs: list[int] = []

    def run(self, frame: Frame, step: Step) -> None:
        costs = []
        frame.cursor = cursor = Cursor()
        cursor.calls = calls = iter(frame.calls)
        if step.error is not None:
            raise step.error
        for call in calls:
            started = perf_counter_ns()
            call()
            costs.append(perf_counter_ns() - started)
        if cursor.is_stopped:
            raise step.end()
        self.costs = list(map(min, self.costs or costs, costs))
