"""Step: one run of a program, as its kernels and those who wait for it see it: what it may use, and when it must end.

A step is cancelled once, by whoever comes first: its user, its deadline, its first error, the end of its session.
Kernels that have started are asked to end (`on_cancel`, or by polling `cancelled`); others are not started any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from .errors import Cancelled, DeadlineExceeded, WeftError
from .forked import inherited

if TYPE_CHECKING:
    from .host_context import HostContext
    from .trace import Trace


class CancelToken:
    """Given to runs by their caller, who may cancel them from any thread, as often as he likes."""

    # Takes no lock: signal handlers and finalisers may cancel. Whoever stores a callback looks at `is_cancelled` after
    # that, whoever cancels looks at the callbacks after he has set it: one of them sees the other at least, and who
    # gets the callback out of the dict calls it.

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], Any]] = {}
        self._numbers = count(1)
        self.is_cancelled = False
        inherited.add(self)

    def cancel(self) -> None:
        """Cancel every run that has this token, and those that will be given it."""
        self.is_cancelled = True
        for number in list(self._callbacks):
            self._call(number)

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when it is cancelled, at once if it is; gives a number for `forget`."""
        number = next(self._numbers)
        self._callbacks[number] = callback
        if self.is_cancelled:
            self._call(number)
        return number

    def forget(self, number: int) -> None:
        self._callbacks.pop(number, None)

    def forked(self) -> None:
        self._callbacks.clear()  # those of runs whose threads are not here, and which may have locked something

    def _call(self, number: int) -> None:
        callback = self._callbacks.pop(number, None)
        if callback is not None:
            callback()


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
        self._first: dict[None, WeftError] = {}  # the error of whoever came first: setting a default is atomic
        self._ended = CancelToken()
        self._parents = [(parent, parent.on_cancel(self._cancel_by_parent)) for parent in parents]

    def cancelled(self) -> bool:
        """True when the step must end: kernels that take long ask this now and then."""
        if self.deadline is not None and self.error is None and monotonic() >= self.deadline:
            self.cancel(DeadlineExceeded(f"the run took longer than its timeout of {self._timeout} s"))
        return self.error is not None

    def cancel(self, error: WeftError) -> None:
        """End the step with this error, unless it has one already."""
        if self.error is None:
            self.error = self._first.setdefault(None, error)
        self._ended.cancel()

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when the step must end, at once if it must; gives a number for `forget`."""
        return self._ended.on_cancel(callback)

    def forget(self, number: int) -> None:
        self._ended.forget(number)

    def close(self) -> None:
        """The step is over: its parents forget it, and it the error, whose traceback may hold all that the run had."""
        if self.error is not None:
            self.error = self._first[None] = Cancelled("the run has ended")
        for parent, number in self._parents:
            parent.forget(number)

    def _cancel_by_parent(self) -> None:
        self.cancel(Cancelled("the run was cancelled"))
