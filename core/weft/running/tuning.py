"""Tuning: an executable finds out which way its steps are run fastest, by running them.

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
from .pieces import LEAST_WORK
from .step import Step
from .way import Way

ROUNDS = 7  # in which both ways are tried
MARGIN = 1.1  # how much faster pieces have to be
FIRST_STAY, LONGEST_STAY = 100, 25_600  # runs until the next trial

Divide = Callable[[Sequence[int]], Way | None]
Experiment = Generator[Way, int, Way]  # yields the way of the next run, is sent its ns; returns the one that stays


class Tuning:
    """`way` is how the next step is to be run: set when the decision is known already, found out otherwise."""

    def __init__(self, flat: Way, divide: Divide) -> None:
        self._lock = Lock()
        self._experiment = experiment(flat, divide)
        self._measured = 0
        self.way = self._trial(next(self._experiment))

    def _trial(self, tried: Way) -> Way:
        """This way, measured; without a reference to the tuning, which has it."""
        run = partial(_run_measured, weakref.ref(self), self._measured, tried)
        return Way(tried.make_frame, run, tried.run_each, tried.frames)

    def measure(self, number: int, tried: Way, frame: Frame, step: Step) -> None:
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

    def _go_on(self, tried: Way, took: int) -> None:
        self._measured += 1
        self.way = tried  # stays when a Ctrl-C ends the experiment
        try:
            self.way = self._trial(self._experiment.send(took))
        except StopIteration as end:
            self.way = end.value or tried


def _run_measured(of: weakref.ref[Tuning], number: int, tried: Way, frame: Frame, step: Step) -> None:
    tuning = of()
    if tuning is None:
        tried.run(frame, step)
    else:
        tuning.measure(number, tried, frame, step)


def experiment(flat: Way, divide: Divide) -> Experiment:
    """Cold, warm, by the clock, then both in turn: pieces stay when they were faster by MARGIN, the second best run of
    each compared: other work on the machine disturbs some."""
    for _ in range(2):
        if (yield flat) < LEAST_WORK:
            return flat
    clock = Clock()
    clocked = Way(flat.make_frame, clock.run, flat.run_each, flat.frames)
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
