"""Batches of one event loop: brief requests that arrive in one turn of the loop run together, in the loop.

A thread takes requests from a loop, and hands them back one by one, for more than a small model's run costs. The loop
itself can join them: a busy loop finds many sockets ready in each turn.

    open -> full, or the end of the turn -> run here, or in a thread while its size is not proven -> split

So a batch here never waits for `batch_timeout_micros`: its requests would wait longer than they run. The only request
of a turn, as gRPC often has it, runs at once without a batch. `JoinedRows` tells how many rows of a kind may join. A
request of another kind goes to the Batcher.

Invariants
- One thread calls: that of the loop.
- An error of a joined run is told to no request that did not cause it: each then runs alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from heald.errors import HealdError, Unavailable

from .batch_rows import Key, split_outputs
from .batch_runs import BatchRuns
from .brief_runs import RunTimes
from .joined_rows import JoinedRows
from .later import Later, as_typed
from .predict import Arrays, Prediction

AVERAGED_TURNS = 16
CROWDED_TURN = 1.5  # requests; in a turn with fewer each runs at once
MOST_IN_THREADS = 4  # batches of a loop, while their sizes are not proven


class _Task(NamedTuple):
    prediction: Prediction
    rows: int
    later: Later[Arrays]
    arrival: float


class _TurnBatch:
    """Requests of one kind. `times`, `joined`: of the signature, and of these rows."""

    __slots__ = ("joined", "key", "rows", "tasks", "times")

    def __init__(self, key: Key, times: RunTimes, joined: JoinedRows) -> None:
        self.key, self.times, self.joined = key, times, joined
        self.tasks: list[_Task] = []
        self.rows = 0


class TurnBatches:
    """`run_in_thread` has a thread call a function. Raises Unavailable at the end."""

    def __init__(self, runs: BatchRuns, run_in_thread: Callable[[Callable[[], object]], object]) -> None:
        self._runs, self._call_in_thread = runs, run_in_thread
        self.loop = asyncio.get_running_loop()
        self._open: dict[Key, _TurnBatch] = {}
        self._in_threads = 0
        self._is_in_turn = False
        self._requests, self._mean_requests = 0, 0.0  # of a turn

    def count_request(self) -> bool:
        """Count a request of this turn. True where turns have one request, which runs at once."""
        if not self._is_in_turn:
            self._is_in_turn = True
            self.loop.call_soon(self._end_turn)
        self._requests += 1
        return self._mean_requests < CROWDED_TURN

    def join(self, prediction: Prediction, rows: int) -> Later[Arrays] | None:
        """The outputs, once the turn ends. None for a request that may not be brief."""
        times = prediction.signature.times
        joined = None if times is None else times.joined_rows(prediction.inputs)
        if times is None or joined is None or self._in_threads >= MOST_IN_THREADS:
            return None
        most_rows = min(joined.most_rows, self._runs.most_rows)
        if not 0 < rows <= most_rows:
            return None
        key = (joined, *[array.dtype.num for array in prediction.inputs.values()])
        batch = self._open.get(key)
        if batch is not None and batch.rows + rows > most_rows:
            self._run(batch)
            batch = None
        if batch is None:
            batch = self._open[key] = _TurnBatch(key, times, joined)
            if not self._is_in_turn:
                self.count_request()
        later: Later[Arrays] = Later()
        batch.tasks.append(_Task(prediction, rows, later, perf_counter()))
        batch.rows += rows
        if batch.rows >= most_rows:
            self._run(batch)
        return later

    def _end_turn(self) -> None:
        self._is_in_turn = False
        self._mean_requests += (self._requests - self._mean_requests) / AVERAGED_TURNS
        self._requests = 0
        for batch in [*self._open.values()]:
            self._run(batch)

    def _run(self, batch: _TurnBatch) -> None:
        """Run a batch here, or in a thread where its time is not known."""
        del self._open[batch.key]
        tasks, size = batch.tasks, self._runs.size_of(batch.rows)
        start = perf_counter()
        self._runs.record_requests([task.rows for task in tasks], [start - task.arrival for task in tasks])
        inputs = self._runs.join([task.prediction.inputs for task in tasks], batch.rows)
        if batch.times.are_brief(inputs):
            start = perf_counter()
            outcomes = self._outcomes(tasks, inputs)
            batch.joined.add(size, perf_counter() - start)
            self._finish(tasks, outcomes)
            return
        batch.joined.add_slow(size)
        if not batch.joined.most_rows:
            batch.times.part_rows(inputs)
        self._run_in_thread(tasks, inputs)

    def _run_in_thread(self, tasks: Sequence[_Task], inputs: Arrays) -> None:
        self._in_threads += 1
        try:
            self._call_in_thread(lambda: self.loop.call_soon_threadsafe(
                self._end_in_thread, tasks, self._outcomes(tasks, inputs)))
        except Unavailable as error:
            self._end_in_thread(tasks, [error] * len(tasks))

    def _end_in_thread(self, tasks: Sequence[_Task], outcomes: Sequence[Arrays | HealdError]) -> None:
        self._in_threads -= 1
        self._finish(tasks, outcomes)

    def _outcomes(self, tasks: Sequence[_Task], inputs: Arrays) -> Sequence[Arrays | HealdError]:
        """The outputs or the error of each request."""
        rows = [task.rows for task in tasks]
        try:
            return split_outputs(self._runs.run(tasks[0].prediction.signature, inputs, sum(rows)), rows)
        except Exception as error:  # noqa: BLE001 - the requests get it
            if len(tasks) == 1:
                return [as_typed(error)]
        return [outcome for task in tasks
                for outcome in self._outcomes([task], self._runs.join([task.prediction.inputs], task.rows))]

    def _finish(self, tasks: Sequence[_Task], outcomes: Sequence[Arrays | HealdError]) -> None:
        now = perf_counter()
        self._runs.record_answers(tasks[0].prediction.lease.name, [now - task.arrival for task in tasks])
        for task, outcome in zip(tasks, outcomes, strict=True):
            task.later.resolve(outcome)
