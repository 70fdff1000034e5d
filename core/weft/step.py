"""Step: one run of a program, as its kernels and those who wait for it see it: what it may use, and when it must end.

A step is cancelled once, by whoever comes first: its user, its deadline, its first error, the end of its session.
Kernels that have started are asked to end (`on_cancel`, or by polling `cancelled`); others are not started any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from .errors import Cancelled, DeadlineExceeded, WeftError
from .parallel import Job

if TYPE_CHECKING:
    from .host_context import HostContext
    from .trace import Trace


class CancelToken:
    """Given to runs by their caller, who may cancel them from any thread, as often as he likes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], Any]] = {}
        self._numbers = 0
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel every run that has this token, and those that will be given it."""
        with self._lock:
            self.is_cancelled = True
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when it is cancelled, at once if it is; gives a number for `forget`."""
        with self._lock:
            if not self.is_cancelled:
                self._numbers += 1
                self._callbacks[self._numbers] = callback
                return self._numbers
        callback()
        return 0

    def forget(self, number: int) -> None:
        with self._lock:
            self._callbacks.pop(number, None)


@dataclass(frozen=True)
class RunOptions:
    """How one run is to go: at most `timeout` seconds; until `cancel` is cancelled; with a `trace` of its kernels,
    which the run's RunMetadata gets."""

    timeout: float | None = None
    cancel: CancelToken | None = None
    trace: bool = False


class Step:
    """`timeout`: seconds from now; `parents`: tokens whose cancellation is this step's; `trace`: what its kernels'
    times are recorded in."""

    def __init__(
        self, host: HostContext, timeout: float | None = None, parents: tuple[CancelToken, ...] = (),
        trace: Trace | None = None,
    ) -> None:
        self.host = host
        self.trace = trace
        self.error: WeftError | None = None  # why the step must end
        self.deadline = None if timeout is None else monotonic() + timeout
        self._timeout = timeout
        self._ended = CancelToken()
        self._parents = [(parent, parent.on_cancel(self._cancel_by_parent)) for parent in parents]

    def cancelled(self) -> bool:
        """True when the step must end: kernels that take long ask this now and then."""
        if self.deadline is not None and self.error is None and monotonic() >= self.deadline:
            self.cancel(DeadlineExceeded(f"the run took longer than its timeout of {self._timeout} s"))
        return self.error is not None

    def cancel(self, error: WeftError) -> None:
        """End the step with this error, unless it has one already."""
        with self._ended._lock:
            if self.error is not None:
                return
            self.error = error
        self._ended.cancel()

    def parallel_for(self, count: int, work: Callable[[int], object]) -> None:
        """Call `work` with every number below `count`, here and on threads of the work queue that have nothing to do.

        Returns when all has ended; raises what the first one to fail has raised, when what had begun has ended. For
        kernels that split their work, into parts of 100 us or more.
        """
        Job(self.host, [0] * count, [()] * count, lambda _, number: work(number)).run()

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when the step must end, at once if it must; gives a number for `forget`."""
        return self._ended.on_cancel(callback)

    def forget(self, number: int) -> None:
        self._ended.forget(number)

    def close(self) -> None:
        """The step is over: its parents forget it, and it the error, whose traceback may hold all that the run had."""
        if self.error is not None:
            self.error = Cancelled("the run has ended")
        for parent, number in self._parents:
            parent.forget(number)

    def _cancel_by_parent(self) -> None:
        self.cancel(Cancelled("the run was cancelled"))
