"""QueuedCall: work of a runtime that starts when its inputs have come, as a task of the host's work queue."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial

from heald.api import AsyncValue, TensorMetadata
from heald.errors import HealdError
from heald.runtime.support import kernel_errors
from heald.runtime.values import error_among, when_available

from .context import EagerContext
from .handle_state import Failed, State

Task = Callable[[], object]
Started = tuple[Sequence[State], AsyncValue | None]  # states of the results, and the value that QueuedCall describes


class QueuedCall:
    """Work that starts when all of `needs` are complete, as a task of the host's work queue.

    `start()` returns a state for each of `metas`, and a value that completes when the work has begun, or None when it
    has. Its error, or the first error among `needs`, becomes the state of all results.
    `after`: values that only have to be complete; their errors do not matter.
    `add_task`: takes the task; by default that of the host's work queue.
    `runs_here()`: True when the thread that completes the last input runs the work itself.
    `started`: completed when the work has begun, without a payload; None unless `is_followed`. A promise costs 2 us.
    """

    def __init__(
        self, context: EagerContext, needs: Sequence[AsyncValue], metas: Sequence[TensorMetadata], device: str,
        start: Callable[[], Started], failed: Callable[[HealdError], HealdError],
        after: Sequence[AsyncValue] = (), add_task: Callable[[Task], object] | None = None,
        runs_here: Callable[[], bool] = bool, *, is_followed: bool = True,
    ) -> None:
        self._context = context
        self._needs = tuple(needs)
        self._start: Callable[[], Started] | None = start
        self._failed = failed
        self._add_task = add_task
        self._runs_here = runs_here
        self._promises = [context.promises.make() for _ in metas]
        self._begun = context.promises.make() if is_followed else None
        self.started = None if self._begun is None else self._begun.value
        self.results = [context.pending_state(meta, device, promise.value)
                        for meta, promise in zip(metas, self._promises, strict=True)]
        when_available((*needs, *after), self._on_inputs)

    def _on_inputs(self) -> None:
        if error_among(self._needs) is not None or self._runs_here():
            self._run()  # an error goes on at once: nothing is computed
            return
        try:
            self._context.promises.queued.add(self)
            add_task = self._add_task or self._context.host.work_queue.add_task
            add_task(partial(_run_if_alive, weakref.ref(self)))
        except HealdError as error:  # the queue is closed
            self._settle([Failed(error)] * len(self._promises))

    def _run(self) -> None:
        self._context.promises.queued.discard(self)
        start, self._start = self._start, None
        error = error_among(self._needs) or self._context.cancelled
        if error is not None or start is None:
            self._settle([Failed(error)] * len(self._promises) if error is not None else [])
            return
        try:
            states, begun = start()
            start = None  # its inputs are free before calls on the results run
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
        if self._begun is None:
            return
        failed = next((state for state in states if isinstance(state, Failed)), None)
        if failed is not None:
            self._begun.settle(failed)
        else:
            self._begun.settle_after(begun)


def _run_if_alive(call: weakref.ref[QueuedCall]) -> None:
    """The task of a call, which does nothing once its runtime is gone."""
    queued = call()
    if queued is not None:
        queued._run()
