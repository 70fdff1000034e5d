"""Autotuning: an executable finds its fastest schedule by timing its own runs.

Short programs are recognised after one or two runs and cost nothing afterwards. Longer programs run a few times with a
clock around each call. If these costs promise that a task partition pays, both schedules are tried in turn and the
faster one stays. No estimate covers the load of other processes, BLAS's own threads or the GIL, so only trials decide.
Calls on several devices begin with a schedule that runs the devices at the same time.
The decision holds until the next trial, for longer each time: cores that were busy may be free by then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Sequence
from functools import partial
from threading import Lock
from time import perf_counter_ns

from .calls.frame_calls import FrameCall
from .frame import Cursor, Frame
from .schedule import LEAST_DIVIDED_NS, LEAST_SPEEDUP, CallEach, Schedule
from .step import Step

TRIAL_ROUNDS = 7  # rounds of a trial; each runs both schedules once
LEAST_MEASURED_SPEEDUP = 1.1  # factor by which the parallel schedule must be faster
FIRST_STAY_RUNS, LONGEST_STAY_RUNS = 100, 25_600  # runs until the next trial

Divide = Callable[[Sequence[int]], Schedule | None]
Experiment = Generator[Schedule, int, Schedule]
"""Yields the schedule of the next run, receives the run's duration in ns, returns the final schedule."""


class Autotuner:
    """Holds in `schedule` how the next step runs. The executable assigns it when the decision is known beforehand."""

    def __init__(self, flat: Schedule, divide: Divide, by_device: Schedule | None = None) -> None:
        self._lock = Lock()
        self._experiment = compare_schedules(flat, divide, by_device)
        self._measured = 0
        self.schedule = self._trial(next(self._experiment))

    def _trial(self, tried: Schedule) -> Schedule:
        """Return this schedule with a measured run. The run holds the autotuner weakly, since the autotuner owns it."""
        run = partial(_run_measured, weakref.ref(self), self._measured, tried)
        return Schedule(tried.make_frame, run, tried.run_each, tried.frames)

    def measure(self, number: int, tried: Schedule, frame: Frame, step: Step) -> None:
        """Run the frame and feed the duration to the experiment.

        The run is not measured when trial `number` already has its measurement, or another thread measures right now.
        """
        if number != self._measured or not self._lock.acquire(blocking=False):
            tried.run(frame, step)
            return
        try:
            started = perf_counter_ns()
            tried.run(frame, step)
            if number == self._measured:
                self._take_measurement(tried, perf_counter_ns() - started)
        finally:
            self._lock.release()

    def _take_measurement(self, tried: Schedule, took: int) -> None:
        self._measured += 1
        self.schedule = tried  # remains when a Ctrl-C ends the experiment
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


def compare_schedules(flat: Schedule, divide: Divide, by_device: Schedule | None = None) -> Experiment:
    """Find the faster schedule: a cold run, a warm run, two clocked runs, then trials of both schedules in turn.

    The parallel schedule stays when it is faster by LEAST_MEASURED_SPEEDUP. A trial compares the second best run of
    each schedule, since other work on the machine disturbs some runs.

    `by_device`: for calls on several devices, the schedule in which the devices work at the same time. It is tried
    first, and stays until the first trial if the devices' times overlap.
    """
    if by_device is not None and not (yield from _try_device_schedule(by_device)):
        return flat
    for _ in range(2):
        if (yield flat) < LEAST_DIVIDED_NS:
            return flat
    clock = CallClock()
    clocked = Schedule(flat.make_frame, clock.run, flat.run_each, flat.frames)
    yield clocked
    yield clocked
    parallel = divide(clock.costs)
    if parallel is None:
        return flat
    yield parallel  # cold
    stay = FIRST_STAY_RUNS
    while True:
        times: tuple[list[int], list[int]] = ([], [])
        for _ in range(TRIAL_ROUNDS):
            times[0].append((yield flat))
            times[1].append((yield parallel))
        flat_time, parallel_time = (sorted(t)[1] for t in times)
        faster, slower = (parallel, flat) if parallel_time * LEAST_MEASURED_SPEEDUP < flat_time else (flat, parallel)
        slower.frames.clear()
        for _ in range(stay):
            yield faster
        stay = min(4 * stay, LONGEST_STAY_RUNS)


def _try_device_schedule(by_device: Schedule) -> Generator[Schedule, int, bool]:
    """Try the schedule that runs the calls of each device on a thread of their own.

    It stays for the next runs when the calls of the devices could overlap by `LEAST_SPEEDUP` of a run's time. Returns
    False when a run is so short that no schedule is worth a trial.
    """
    clock = CallClock()
    run = partial(clock.run_parts, by_device.run_each)
    clocked = Schedule(by_device.make_frame, run, by_device.run_each, by_device.frames)
    took = 0
    for _ in range(2):
        took = yield clocked
        if took < LEAST_DIVIDED_NS:
            by_device.frames.clear()
            return False
    if sum(clock.costs) >= LEAST_SPEEDUP * took:
        for _ in range(FIRST_STAY_RUNS):
            yield by_device
    by_device.frames.clear()
    return True


class CallClock:
    """Runs a list with a clock around each call. `costs` has the least ns of each call so far."""

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
            raise step.end_error()
        self.costs = list(map(min, self.costs or costs, costs))

    def run_parts(self, run_each: Callable[[CallEach, Frame, Step], None], frame: Frame, step: Step) -> None:
        """Run the list by a schedule's `run_each`, which may use several threads."""
        costs = [0] * len(frame.calls)

        def call_each(index: int, call: FrameCall, _: Frame, __: Step) -> None:
            started = perf_counter_ns()
            call()
            costs[index] = perf_counter_ns() - started

        run_each(call_each, frame, step)
        self.costs = list(map(min, self.costs or costs, costs))
