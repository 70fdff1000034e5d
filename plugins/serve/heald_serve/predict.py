"""The neutral core: a leased version and arrays by name become a future of arrays by name.

A front finds a lease (`ModelManager.find`), makes the arrays, and waits for the future; the event loop never runs a
model. Each request has a deadline and a token. A request that is past its deadline or cancelled does not start; one
that runs is ended by its RunOptions. Beyond the threads only so many requests wait: further ones are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, perf_counter
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

from .models.servable import Lease
from .models.served_model import ServedSignature, check_inputs

Arrays = Mapping[str, Any]


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

    def close(self) -> None:
        """End the threads; requests that wait are Unavailable."""


class Predictor:
    """Runs predictions in threads. Any thread may call.

    `threads`: the runs at a time. `most_queued`: the requests that may wait for a thread.
    `batching_of`: the batching of a request's signature, or None; None where nothing is batched.
    `on_run`: gets the name of the model and the seconds of each run.
    """

    def __init__(
        self, threads: int, most_queued: int = 64, *,
        batching_of: Callable[[Prediction], Batching | None] | None = None,
        on_run: Callable[[str, float], None] = lambda _name, _seconds: None,
    ) -> None:
        self._most_pending = threads + most_queued
        self._batching_of, self._on_run = batching_of, on_run
        self._executor = ThreadPoolExecutor(threads, "heald-serve-run")
        self._pending = 0
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
        batching = None if self._batching_of is None else self._batching_of(prediction)
        with self._lock:
            if self._is_closed:
                raise Unavailable("the server is ending")
            if batching is None:
                self._check_pending()
            self._pending += 1
        try:
            future = self._executor.submit(self._run, prediction) if batching is None else self._batch(
                batching, prediction)
        except BaseException:
            self._forget()
            raise
        future.add_done_callback(lambda _: self._forget())
        return future

    def check_room(self) -> None:
        """Raises Unavailable when a request would be refused. A front asks before it reads a body: in an overload most
        requests are refused, and each refusal takes time from the others."""
        if self._batching_of is None:
            self._check_pending()

    def _check_pending(self) -> None:
        if self._pending >= self._most_pending:
            raise Unavailable(f"{self._pending} requests run or wait already", hint="try again later")

    def _batch(self, batching: Batching, prediction: Prediction) -> Future[Arrays]:
        start = perf_counter()
        future = batching.submit(prediction)
        future.add_done_callback(lambda _: self._on_run(prediction.lease.name, perf_counter() - start))
        return future

    def _forget(self) -> None:
        with self._lock:
            self._pending -= 1

    def _run(self, prediction: Prediction) -> Arrays:
        start = perf_counter()
        outputs = run(prediction)
        self._on_run(prediction.lease.name, perf_counter() - start)
        return outputs

    def close(self) -> None:
        """Refuse further predictions, and wait for the running ones."""
        with self._lock:
            self._is_closed = True
        self._executor.shutdown(cancel_futures=True)


def run(prediction: Prediction) -> Arrays:
    """Run a prediction in this thread. Raises typed errors alone."""
    options = heald.RunOptions(timeout=prediction.check_time(), cancel=prediction.cancel)
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
