"""Batching: requests for one signature run together, as TensorFlow Serving's batching session runs them.

A request joins the open batch of its kind: of its version, its signature, and the types and shapes of its inputs
without their first dimension. Another kind has a batch of its own, so no request waits for one that cannot join it.

    open -> closed (full, or too old) -> running -> split among its requests

A batch closes when it is full, and when its first request has waited `batch_timeout_micros`. Threads take the batches
in that order. A request that is past its deadline, or cancelled, gets its error at once and leaves its place; the
others of its batch go on. Only a batch that all have left is cancelled.

Requests of a small model join in the event loop of their front instead (`turn_batches`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.errors import Cancelled, DeadlineExceeded, HealdError, InvalidArgument, Unavailable, typed_error

from .batch_rows import Key, key_of, row_count, split_inputs, split_outputs
from .batch_runs import BatchRuns
from .batching_parameters import FILE_OF_VERSION, BatchingParameters, read_batching_parameters
from .deadlines import Deadlines
from .later import Later
from .metrics import Metrics
from .predict import Arrays, Prediction
from .turn_batches import TurnBatches


class _Task(NamedTuple):
    """One request, or a part of one: `rows` of its inputs."""

    prediction: Prediction
    inputs: Arrays
    rows: int
    future: Future[Arrays]
    arrival: float


class _Batch:
    def __init__(self, key: Key) -> None:
        self.key = key
        self.tasks: list[_Task] = []
        self.rows = 0
        self.token = heald.CancelToken()
        self._waiting = 0  # requests without an answer
        self._lock = threading.Lock()

    def add(self, task: _Task) -> None:
        self.tasks.append(task)
        self.rows += task.rows
        with self._lock:
            self._waiting += 1

    def leave(self) -> None:
        """A request has its answer. A run that no request waits for is cancelled."""
        with self._lock:
            self._waiting -= 1
            is_deserted = not self._waiting
        if is_deserted:
            self.token.cancel()


class Batcher:
    """The batches of one set of parameters, and their threads. Any thread may call."""

    def __init__(self, parameters: BatchingParameters, metrics: Metrics) -> None:
        self._parameters, self._runs = parameters, BatchRuns(parameters, metrics)
        self._most_rows = self._runs.most_rows
        self._of_thread = threading.local()  # the batches of an event loop
        self._open: dict[Key, _Batch] = {}
        self._closed: deque[_Batch] = deque()
        self._functions: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._is_ended = False
        self._deadlines = Deadlines(f"{parameters.thread_pool_name}-deadlines")
        self._threads = [threading.Thread(target=self._work, name=f"{parameters.thread_pool_name}-{number}",
                                          daemon=True) for number in range(parameters.num_batch_threads)]
        for thread in self._threads:
            thread.start()

    def runs_alone(self, prediction: Prediction) -> bool:
        """True where a request is to run at once: it is alone in its turn of the calling event loop."""
        rows = row_count(prediction.inputs)
        return (0 < rows <= self._parameters.max_batch_size and self._runs.size_of(rows) == rows
                and self._turn_batches().count_request())

    def record_alone(self, prediction: Prediction) -> None:
        """Record the run of such a request."""
        rows = row_count(prediction.inputs)
        self._runs.record_requests([rows], [0.0])
        self._runs.record_run(rows, rows)

    def join_turn(self, prediction: Prediction) -> Later[Arrays] | None:
        """The outputs by a batch of the calling event loop; None for a request that may not be brief."""
        times = prediction.signature.times
        if times is None or not times.has_brief or self._parameters.pad_variable_length_inputs or self._is_ended:
            return None
        return self._turn_batches().join(prediction, row_count(prediction.inputs))

    def _turn_batches(self) -> TurnBatches:
        """Those of the calling event loop."""
        turn_batches: TurnBatches | None = getattr(self._of_thread, "turn_batches", None)
        if turn_batches is None or turn_batches.loop.is_closed():
            turn_batches = self._of_thread.turn_batches = TurnBatches(self._runs, self._run_in_thread)
        return turn_batches

    def _run_in_thread(self, function: Callable[[], object]) -> None:
        """Call a function in a thread of the batches. Raises Unavailable."""
        with self._changed:
            if self._is_ended:
                raise Unavailable("the server is ending")
            self._functions.append(function)
            self._changed.notify()

    def submit(self, prediction: Prediction) -> Future[Arrays]:
        """The future of the outputs for this request's rows.

        Raises InvalidArgument for inputs without a common first dimension, and for too many rows; Unavailable for a
        full queue.
        """
        rows = row_count(prediction.inputs)
        most_rows = self._parameters.max_batch_size
        if rows > most_rows:
            raise InvalidArgument(f"Task size {rows} is larger than maximum input batch size {most_rows}")
        future: Future[Arrays] = Future()
        future.set_running_or_notify_cancel()
        parts = split_inputs(prediction.inputs, rows, self._most_rows)
        futures: list[Future[Arrays]] = [future] if len(parts) == 1 else [Future() for _ in parts]
        now = monotonic()
        with self._changed:
            if self._is_ended:
                raise Unavailable("the server is ending")
            tasks = [_Task(prediction, inputs, count, part, now)
                     for (inputs, count), part in zip(parts, futures, strict=True)]
            self._check_room(tasks)
            for task in tasks:
                self._enqueue(task)
            self._changed.notify_all()
        if len(parts) > 1:
            _Joined(futures, future)
        return future

    def _key(self, task: _Task) -> Key:
        return key_of(task.prediction, pads=self._parameters.pad_variable_length_inputs)

    def _check_room(self, tasks: Sequence[_Task]) -> None:
        """Raises Unavailable when more batches would wait than may."""
        batch = self._open.get(self._key(tasks[0]))
        joins = batch is not None and batch.rows + tasks[0].rows <= self._most_rows
        if len(self._open) + len(self._closed) + len(tasks) - joins > self._parameters.max_enqueued_batches:
            raise Unavailable("The batch scheduling queue to which this task was submitted is full")

    def _enqueue(self, task: _Task) -> None:
        key = self._key(task)
        batch = self._open.get(key)
        if batch is not None and batch.rows + task.rows > self._most_rows:
            self._close(batch)
            batch = None
        if batch is None:
            batch = self._open[key] = _Batch(key)
        batch.add(task)
        self._watch(task, batch)
        if batch.rows == self._most_rows:
            self._close(batch)

    def _watch(self, task: _Task, batch: _Batch) -> None:
        """Free a request from its batch at its deadline or cancellation."""
        prediction, deadlines = task.prediction, self._deadlines
        late = cancelled = 0
        if prediction.deadline is not None:
            late = deadlines.add(prediction.deadline, lambda: _leave(
                task, DeadlineExceeded("the deadline of the request has passed")))
        if prediction.cancel is not None:
            cancelled = prediction.cancel.on_cancel(
                lambda: _leave(task, Cancelled("the caller has cancelled the request")))

        def on_done(_: Future[Arrays]) -> None:
            deadlines.drop(late)
            if prediction.cancel is not None:
                prediction.cancel.forget(cancelled)
            batch.leave()

        task.future.add_done_callback(on_done)

    def _close(self, batch: _Batch) -> None:
        self._open.pop(batch.key, None)
        self._closed.append(batch)

    def _work(self) -> None:
        while True:
            work = self._next_work()
            if work is None:
                return
            if isinstance(work, _Batch):
                self._run(work)
            else:
                work()

    def _next_work(self) -> _Batch | Callable[[], object] | None:
        """Wait for a function, or a batch that is closed or too old. Returns None at the end."""
        with self._changed:
            while not self._is_ended:
                if self._functions:
                    return self._functions.popleft()
                if self._closed:
                    return self._closed.popleft()
                oldest = next(iter(self._open.values()), None)  # batches are opened in the order of time
                if oldest is None:
                    self._changed.wait()
                    continue
                seconds = oldest.tasks[0].arrival + self._parameters.batch_timeout_micros / 1e6 - monotonic()
                if seconds <= 0:
                    self._close(oldest)
                    continue
                self._changed.wait(seconds)
        return None

    def _run(self, batch: _Batch) -> None:
        now = monotonic()
        tasks = [task for task in batch.tasks if not task.future.done()]
        if not tasks:
            return
        rows = [task.rows for task in tasks]
        self._runs.record_requests(rows, [now - task.arrival for task in tasks])
        try:
            inputs = self._runs.join([task.inputs for task in tasks], sum(rows))
            parts = split_outputs(self._runs.run(tasks[0].prediction.signature, inputs, sum(rows),
                                                 heald.RunOptions(cancel=batch.token)), rows)
        except HealdError as error:
            _fail(tasks, error)
        except Exception as error:  # noqa: BLE001 - the requests get it, and the thread goes on
            _fail(tasks, typed_error(error))
        else:
            times = tasks[0].prediction.signature.times
            if times is not None:
                times.join_rows(inputs)
            for task, part in zip(tasks, parts, strict=True):
                with suppress(InvalidStateError):  # its deadline has passed
                    task.future.set_result(part)

    def close(self) -> None:
        """End the threads after their batches. Requests that wait get Unavailable."""
        with self._changed:
            self._is_ended = True
            left = [*self._closed, *self._open.values()]
            self._closed.clear()
            self._open.clear()
            functions = [*self._functions]
            self._functions.clear()
            self._changed.notify_all()
        for function in functions:
            function()
        for batch in left:
            _fail(batch.tasks, Unavailable("the server is ending"))
        for thread in self._threads:
            thread.join()
        self._deadlines.close()


class _Joined:
    """The future of a request that ran in several parts."""

    def __init__(self, parts: Sequence[Future[Arrays]], future: Future[Arrays]) -> None:
        self._parts, self._future = parts, future
        self._left = len(parts)
        self._lock = threading.Lock()
        for part in parts:
            part.add_done_callback(self._on_part)

    def _on_part(self, part: Future[Arrays]) -> None:
        error = part.exception()
        with self._lock:
            self._left -= 1
            is_last = not self._left
        with suppress(InvalidStateError):
            if error is not None:
                self._future.set_exception(error)
            elif is_last and not self._future.done():
                results = [part.result() for part in self._parts]
                self._future.set_result({name: np.concatenate([result[name] for result in results])
                                        for name in results[0]})


def _leave(task: _Task, error: HealdError) -> None:
    with suppress(InvalidStateError):
        task.future.set_exception(error)


def _fail(tasks: Sequence[_Task], error: HealdError) -> None:
    for task in tasks:
        _leave(task, error)


class Batchers:
    """The batching of all models: one queue of parameters, or one for each version with a file of its own.

    With `per_model`, `batching_params.pbtxt` in a version's folder decides; a version without it is not batched.
    """

    def __init__(self, parameters: BatchingParameters | None, metrics: Metrics, *, per_model: bool = False) -> None:
        self._parameters, self._metrics, self._per_model = parameters, metrics, per_model
        self._batchers: dict[Any, Batcher | None] = {}
        self._lock = threading.Lock()

    def of(self, prediction: Prediction) -> Batcher | None:
        """The batcher of a request, or None where its model is not batched."""
        if self._parameters is None:
            return None
        lease = prediction.lease
        key = (lease.name, lease.version, str(lease.path)) if self._per_model else lease.name
        with self._lock:
            if key not in self._batchers:
                self._batchers[key] = self._make(prediction)
            return self._batchers[key]

    def _make(self, prediction: Prediction) -> Batcher | None:
        assert self._parameters is not None
        if not self._per_model:
            return Batcher(self._parameters, self._metrics)
        file = prediction.lease.path / FILE_OF_VERSION
        if not file.is_file():
            return None
        parameters = read_batching_parameters(file)
        return Batcher(parameters._replace(num_batch_threads=self._parameters.num_batch_threads,
                                    thread_pool_name=self._parameters.thread_pool_name), self._metrics)

    def close(self) -> None:
        with self._lock:
            batchers = [batcher for batcher in self._batchers.values() if batcher is not None]
            self._batchers.clear()
        for batcher in batchers:
            batcher.close()
