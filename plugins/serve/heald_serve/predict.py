"""The neutral core: a leased version and arrays by name become a future of arrays by name.

A front finds a lease (`ModelManager.find`), makes the arrays, and waits for the future; the event loop never runs a
model. Each request has a deadline and a token. A request that is past its deadline or cancelled does not start; one
that runs is ended by its RunOptions.

Beyond the threads only so many requests wait: those that the runs of `queue_seconds` take, and `most_queued` at most.
Further ones are refused. The time between the ends of runs, while requests wait, says how many that are. Batched
requests wait in their batches, and have the bound of time alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from time import monotonic, perf_counter, thread_time
from typing import Any, NamedTuple, Protocol

import heald
from heald.errors import (
    Cancelled,
    DeadlineExceeded,
    HealdError,
    InvalidArgument,
    Unavailable,
    typed_error,
)

from .brief_runs import BRIEF_SECONDS, LARGEST_BRIEF_BYTES
from .later import Later
from .models.servable import Lease
from .models.served_model import ServedSignature, check_inputs, has_types

Arrays = Mapping[str, Any]
AVERAGED_RUNS = 16  # of the mean time between the ends of runs
MEASURED_SECONDS, FIRST_SECONDS = 0.01, 1.0  # between two measurements; before the first one


class Prediction(NamedTuple):
    """A request to run a signature of a leased version.

    `deadline`: on the clock of `time.monotonic`; None for no limit.
    """

    lease: Lease
    signature: ServedSignature
    inputs: Arrays
    deadline: float | None = None
    cancel: heald.CancelToken | None = None

    def check_time(self) -> float | None:
        """The seconds that are left. Raises DeadlineExceeded and Cancelled."""
        if self.cancel is not None and self.cancel.is_cancelled:
            raise Cancelled("the caller has cancelled the request")
        if self.deadline is None:
            return None
        seconds = self.deadline - monotonic()
        if seconds <= 0:
            raise DeadlineExceeded("the deadline of the request has passed")
        return seconds


class Batching(Protocol):
    """A layer before the runs of a signature: it joins requests."""

    def submit(self, prediction: Prediction) -> Future[Arrays]:
        """The future of the outputs."""

    def runs_alone(self, prediction: Prediction) -> bool:
        """True where a request is to run at once in the calling event loop, without a batch."""

    def record_alone(self, prediction: Prediction) -> None:
        """Record the run of such a request."""

    def join_turn(self, prediction: Prediction) -> Later[Arrays] | None:
        """The outputs by a batch of the calling event loop, or None."""

    def close(self) -> None:
        """End the threads; requests that wait are Unavailable."""


class Predictor:
    """Runs predictions in threads. Any thread may call.

    `threads`: the runs at a time. `most_queued`: the requests that may wait for a thread. `queue_seconds`: the time
    that they may take together, None for any.
    `batching_of`: the batching of a request's signature, or None; None where nothing is batched.
    `on_run`: gets the name of the model and the seconds of each run.
    """

    def __init__(
        self, threads: int, most_queued: int = 64, *, queue_seconds: float | None = None,
        batching_of: Callable[[Prediction], Batching | None] | None = None,
        on_run: Callable[[str, float], None] = lambda _name, _seconds: None,
    ) -> None:
        self._threads, self._most_pending, self._queue_seconds = threads, threads + most_queued, queue_seconds
        self._limit = self._most_pending  # of pending predictions, by the measured time
        self._batched_limit = inf  # the same for batched ones, whose number the batches' queue bounds
        self._busy_seconds, self._ends = 0.0, 0  # since the last measurement
        self._interval: float | None = None  # seconds between the ends of runs
        self._last_end = 0.0
        self._batching_of, self._on_run = batching_of, on_run
        self._executor = ThreadPoolExecutor(threads, "heald-serve-run")
        self._pending = 0
        self._admitted = 0  # requests between the conversion of their bodies and their answers
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def pending(self) -> int:
        """The predictions that run or wait."""
        return self._pending

    def submit(self, prediction: Prediction) -> Future[Arrays]:
        """The future of the outputs of the signature, by name.

        Raises InvalidArgument for inputs that the signature does not have, Unavailable when too many requests wait.
        The future raises the errors of the run, DeadlineExceeded and Cancelled.
        """
        check_inputs(prediction.signature, prediction.inputs)
        batching = self._batching(prediction)
        with self._lock:
            if self._is_closed:
                raise Unavailable("the server is ending")
            self._check_limit(self._pending, self._limit if batching is None else self._batched_limit)
            if not self._pending:
                self._last_end = perf_counter()
            self._pending += 1
        try:
            future = self._executor.submit(self._run, prediction) if batching is None else self._batch(
                batching, prediction)
        except BaseException:
            self._count_end()
            raise
        future.add_done_callback(lambda _: self._count_end())
        return future

    def may_be_brief(self, lease: Lease) -> bool:
        """True where a run of this version may be one for the caller's thread."""
        return not self._is_closed and any(signature.times is not None and signature.times.has_brief
                                           for signature in lease.signatures.values())

    def run_briefly(self, prediction: Prediction) -> Arrays | None:
        """The outputs, by a run in the caller's thread, without limits; None for a run that may take longer than a
        hand-over to a thread, for one that joins a batch, and for inputs that do not fit. Raises the errors of the run.
        """
        times = prediction.signature.times
        if (times is None or not times.has_brief or self._is_closed
                or prediction.inputs.keys() != prediction.signature.inputs.keys()
                or not has_types(prediction.signature, prediction.inputs)):
            return None
        batching = self._batching(prediction)
        if (batching is not None and not batching.runs_alone(prediction)) or not times.are_brief(prediction.inputs):
            return None
        start, cpu = perf_counter(), thread_time()
        outputs = run(prediction, is_limited=False)
        seconds = perf_counter() - start
        busy = seconds if seconds <= BRIEF_SECONDS else thread_time() - cpu  # the system may stop a thread for long
        times.add(prediction.inputs, busy if _size(outputs) <= LARGEST_BRIEF_BYTES else inf)
        self._on_run(prediction.lease.name, seconds)
        if batching is not None:
            batching.record_alone(prediction)
        return outputs

    def join_turn(self, prediction: Prediction) -> Later[Arrays] | None:
        """The outputs by a batch of the calling event loop, without limits. None where nothing is batched, for a run
        that may take longer, and for inputs that do not fit. Raises InvalidArgument for inputs without rows."""
        if (self._batching_of is None or self._is_closed
                or prediction.inputs.keys() != prediction.signature.inputs.keys()
                or not has_types(prediction.signature, prediction.inputs)):
            return None
        batching = self._batching(prediction)
        return None if batching is None else batching.join_turn(prediction)

    def _batching(self, prediction: Prediction) -> Batching | None:
        return None if self._batching_of is None else self._batching_of(prediction)

    def check_room(self) -> None:
        """Raises Unavailable when a request would be refused. A front asks before it reads a body: in an overload most
        requests are refused, and each refusal takes time from the others."""
        self._check_limit(max(self._pending, self._admitted), self._front_limit())

    @contextmanager
    def admission(self) -> Iterator[None]:
        """A place for a request from the conversion of its body to its answer. Raises Unavailable.

        Without it many requests would wait for their conversions, and be refused after them.
        """
        with self._lock:
            self._check_limit(self._admitted, self._front_limit())
            self._admitted += 1
        try:
            yield
        finally:
            with self._lock:
                self._admitted -= 1

    def _front_limit(self) -> float:
        """The limit before a request is read: it may be a batched one."""
        return self._limit if self._batching_of is None else self._batched_limit

    @property
    def most_pending(self) -> int:
        return self._most_pending

    def is_full(self) -> bool:
        """True while a request would be refused."""
        return max(self._pending, self._admitted) >= self._front_limit()

    def _check_limit(self, requests: int, limit: float) -> None:
        if requests >= limit:
            raise Unavailable(f"{requests} requests run or wait already", hint="try again later")

    def _batch(self, batching: Batching, prediction: Prediction) -> Future[Arrays]:
        start = perf_counter()
        future = batching.submit(prediction)
        future.add_done_callback(lambda _: self._on_run(prediction.lease.name, perf_counter() - start))
        return future

    def _count_end(self) -> None:
        with self._lock:
            self._pending -= 1
            self._ends += 1
            now = perf_counter()
            self._busy_seconds += now - self._last_end
            self._last_end = now
            is_first = self._interval is None and self._ends < AVERAGED_RUNS  # it may be one of a batch, or linked
            if self._busy_seconds >= (FIRST_SECONDS if is_first else MEASURED_SECONDS):
                self._measure_ends()

    def _measure_ends(self) -> None:
        """Adapt the limits to the mean time between ends. The ends of a batch come together: they count as one step."""
        interval, weight = self._busy_seconds / self._ends, min(self._ends / AVERAGED_RUNS, 1.0)
        self._busy_seconds, self._ends = 0.0, 0
        self._interval = interval if self._interval is None else (
            self._interval + (interval - self._interval) * weight)
        if self._queue_seconds is not None:
            waiting = self._queue_seconds / max(self._interval, 1e-9)
            self._limit = min(self._most_pending, self._threads + int(min(waiting, self._most_pending)))
            self._batched_limit = self._threads + waiting

    def _run(self, prediction: Prediction) -> Arrays:
        start, times = perf_counter(), prediction.signature.times
        cpu = thread_time()
        outputs = run(prediction)
        if times is not None:
            times.add(prediction.inputs, thread_time() - cpu)
        self._on_run(prediction.lease.name, perf_counter() - start)
        return outputs

    def close(self) -> None:
        """Refuse further predictions, and wait for the running ones."""
        with self._lock:
            self._is_closed = True
        self._executor.shutdown(cancel_futures=True)


def _size(outputs: Arrays) -> int:
    return sum([output.nbytes for output in outputs.values()])


def run(prediction: Prediction, *, is_limited: bool = True) -> Arrays:
    """Run a prediction in this thread, within its deadline and until its cancellation. Raises typed errors alone."""
    timeout = prediction.check_time()
    options = heald.RunOptions(timeout=timeout, cancel=prediction.cancel) if is_limited else None
    try:
        return prediction.signature.call(prediction.inputs, options)
    except HealdError:
        raise
    except Exception as error:
        raise typed_error(error) from error


def choose_outputs(outputs: Arrays, output_filter: Sequence[str]) -> Arrays:
    """The outputs that a filter names, all without a filter."""
    return {name: outputs[name] for name in output_filter or outputs}


def check_filter(signature: ServedSignature, output_filter: Sequence[str]) -> None:
    """Raises InvalidArgument for an unknown or repeated name."""
    for at, name in enumerate(output_filter):
        if name not in signature.outputs:
            raise InvalidArgument(f"output tensor alias not found in signature: {name} Outputs expected to be in the "
                                  f"set {{{','.join(sorted(signature.outputs))}}}.")
        if name in output_filter[:at]:
            raise InvalidArgument(f"duplicate output tensor alias: {name}")
