"""Promises: values that come later. The first to settle a promise wins: its call, or a cancellation."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from heald.api import AsyncValue, TensorMetadata
from heald.errors import HealdError
from heald.runtime.support import kernel_errors
from heald.runtime.values import error_among, when_available

from .handle_state import Failed, Pending, Ready, State

if TYPE_CHECKING:
    from .core_runtime import CoreRuntime


Begun = tuple[Sequence[State], AsyncValue | None]


class Promises:
    """The promises of one runtime that are not settled yet."""

    def __init__(self) -> None:
        self._open: dict[int, Promise] = {}
        self.queued: set[QueuedCall] = set()  # tasks refer to them weakly: a host's queue would keep the host alive

    def make(self) -> Promise:
        promise = Promise(self._open)
        self._open[id(promise)] = promise
        return promise

    def fail(self, error: HealdError) -> None:
        """Settle every open promise with this error."""
        for promise in list(self._open.values()):
            promise.settle(Failed(error))


class Promise:
    """One value that comes later: `value`, whose payload will be a Ready."""

    __slots__ = ("_lock", "_open", "value")

    def __init__(self, among: dict[int, Promise]) -> None:
        self.value = AsyncValue()
        self._lock = threading.Lock()
        self._open = among

    def settle(self, state: State) -> None:
        """Complete the value with this state, now or when the state is settled itself. Later calls do nothing."""
        if isinstance(state, Pending):
            later = state.value
            if state.demand is not None:
                state.demand()
            later.and_then(lambda: self.settle(Failed(later.error) if later.error is not None else later.get()))
            return
        with self._lock:
            if self._open.pop(id(self), None) is None:
                return
        if isinstance(state, Ready):
            self.value.emplace(state)
        else:
            self.value.set_error(state.error)


    def follow(self, value: AsyncValue | None) -> None:
        """Settle, without a payload, when a chain is complete: now if it is None."""
        if value is None:
            self.settle(OVER)
        else:
            value.and_then(lambda: self.settle(OVER if value.error is None else Failed(value.error)))


class QueuedCall:
    """Work that starts when all of `needs` are complete, as a task of the host's work queue.

    `start()` returns a state for each of `metas`, and a value that completes when the work has begun, or None when it
    has. Its error, or the first error among `needs`, becomes the state of all results.
    `after`: values that only have to be complete; their errors do not matter.
    `started`: completed when the work has begun, without a payload.
    """

    def __init__(
        self, runtime: CoreRuntime, needs: Sequence[AsyncValue], metas: Sequence[TensorMetadata], device: str,
        start: Callable[[], Begun], failed: Callable[[HealdError], HealdError],
        after: Sequence[AsyncValue] = (),
    ) -> None:
        self._runtime = runtime
        self._needs = tuple(needs)
        self._start: Callable[[], Begun] | None = start
        self._failed = failed
        self._promises = [runtime.promises.make() for _ in metas]
        self._begun = runtime.promises.make()
        self.started = self._begun.value
        self.results = [Pending(meta, device, promise.value, runtime)
                        for meta, promise in zip(metas, self._promises, strict=True)]
        when_available((*needs, *after), self._came)

    def _came(self) -> None:
        if error_among(self._needs) is not None:
            self._run()  # nothing is computed: the error goes on at once
            return
        try:
            self._runtime.promises.queued.add(self)
            self._runtime.host.work_queue.add_task(partial(_run, weakref.ref(self)))
        except HealdError as error:  # the queue is closed
            self._settle([Failed(error)] * len(self._promises))

    def _run(self) -> None:
        self._runtime.promises.queued.discard(self)
        start, self._start = self._start, None
        error = error_among(self._needs) or self._runtime.cancelled
        if error is not None or start is None:
            self._settle([Failed(error)] * len(self._promises) if error is not None else [])
            return
        try:
            states, begun = start()
        except BaseException as raised:
            typed = self._failed(kernel_errors.as_heald_error(raised, "an op"))
            self._settle([Failed(typed)] * len(self._promises))
            if kernel_errors.is_interrupt(raised):
                raise
        else:
            self._settle(states, begun)

    def _settle(self, states: Sequence[State], begun: AsyncValue | None = None) -> None:
        for promise, state in zip(self._promises, states, strict=False):
            promise.settle(state)
        self._needs = ()
        failed = next((state for state in states if isinstance(state, Failed)), None)
        if failed is not None:
            self._begun.settle(failed)
        else:
            self._begun.follow(begun)


def _run(call: weakref.ref[QueuedCall]) -> None:
    """The task of a call, which does nothing once its runtime is gone."""
    alive = call()
    if alive is not None:
        alive._run()


OVER = Ready(None, None)  # type: ignore[arg-type]
