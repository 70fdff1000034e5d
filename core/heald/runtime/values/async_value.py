"""AsyncValue: a future, in one of five states.

    available   has a payload (read without a lock, because the state is final)
    error       has a HealdError, which its dependents receive instead of a payload
    dead        belongs to a branch that control flow did not take: one object for all, DEAD
    pending     waits for one call of emplace, set_error or forward_to
    indirect    was forwarded, and has the state and content of the other value

A Chain has no payload: it tells that an effect has happened. READY is a Chain whose effect has happened.

The thread that completes a value runs the callbacks that wait for it, but never within the completion of another value.
So a chain of any length that completes at once takes a queue and no stack.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ...errors import FailedPrecondition, HealdError, Internal, InvalidArgument
from ..support.unraisable import report_unraisable

Callback = Callable[[], Any]

_PENDING, _AVAILABLE, _ERROR, _DEAD, _INDIRECT = range(5)


class AsyncValue:
    """A future, made pending. `available` and `failed` make values that are complete from the start. Any thread may
    call."""

    __slots__ = ("__weakref__", "_content", "_lock", "_state", "_waiting")

    def __init__(self) -> None:
        self._state = _PENDING
        self._content: Any = None  # the payload, the error, or the value that this value was forwarded to
        self._waiting: list[Callback] = []
        self._lock = threading.Lock()

    def is_available(self) -> bool:
        """True when the value is complete: it has a payload or an error, or is dead."""
        return self._target()._state != _PENDING

    def is_error(self) -> bool:
        return self._target()._state == _ERROR

    def is_dead(self) -> bool:
        return self._target()._state == _DEAD

    @property
    def error(self) -> HealdError | None:
        """The error; None for a value in any other state."""
        target = self._target()
        return target._content if target._state == _ERROR else None

    def get(self) -> Any:
        """The payload. Never waits.

        Raises the error of an error, InvalidArgument for a dead value, FailedPrecondition for a pending one: waiting is
        the task of a work queue.
        """
        target = self._target()
        if target._state == _AVAILABLE:
            return target._content
        if target._state == _ERROR:
            raise target._content
        if target._state == _DEAD:
            raise InvalidArgument("this value is dead: control flow did not take its branch")
        raise FailedPrecondition("this value is not available yet", hint="wait for it with a work queue's await_values")

    def and_then(self, callback: Callback) -> None:
        """Register a callback for completion. It is called at once when the value is complete, else on the thread that
        completes the value."""
        target = self._target()
        while True:
            if target._state in (_AVAILABLE, _ERROR, _DEAD):
                _call([callback])
                return
            with target._lock:
                if target._state == _PENDING:
                    target._waiting.append(callback)
                    return
            target = target._target()

    def emplace(self, payload: Any) -> None:
        """Complete the value with a payload. Raises Internal when it is complete or forwarded already."""
        self._complete(_AVAILABLE, payload)

    def set_error(self, error: HealdError) -> None:
        """Complete the value with an error. Raises Internal when it is complete or forwarded already."""
        self._complete(_ERROR, error)

    def forward_to(self, other: AsyncValue) -> None:
        """Take on the present or later state of `other`. Raises Internal when this value is complete or forwarded
        already, and when it would be forwarded to itself."""
        other = other._target()
        if other is self:
            raise Internal("an AsyncValue is forwarded to itself")
        self._check_pending()
        with self._lock:
            self._check_pending()
            self._state, self._content = _INDIRECT, other
            waiting, self._waiting = self._waiting, []
        for callback in waiting:
            other.and_then(callback)

    def _complete(self, state: int, content: Any) -> None:
        self._check_pending()  # before the lock: a value made complete has none
        with self._lock:
            self._check_pending()
            self._content = content
            self._state = state
            waiting, self._waiting = self._waiting, []
        if waiting:
            _call(waiting)

    def _check_pending(self) -> None:
        if self._state != _PENDING:
            raise Internal("an AsyncValue is completed twice")

    def _target(self) -> AsyncValue:
        """The value at the end of the chain of forwardings. The chain is shortened for later calls."""
        if self._state != _INDIRECT:
            return self
        target = self._content
        while target._state == _INDIRECT:
            target = target._content
        self._content = target
        return target  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        target = self._target()
        kind = ("pending", "available", "error", "dead")[target._state]
        return f"<AsyncValue {kind}{'' if target._content is None else f': {target._content!r}'}>"


def available(payload: Any) -> AsyncValue:
    """Return a complete value with this payload."""
    return _new_complete(_AVAILABLE, payload)


def failed(error: HealdError) -> AsyncValue:
    """Return a complete value with this error."""
    return _new_complete(_ERROR, error)


def payload_of(value: Any) -> Any:
    """The payload of an available AsyncValue. Pending values, errors, DEAD and all other objects are returned
    unchanged."""
    if not isinstance(value, AsyncValue):
        return value
    target = value._target()
    return target._content if target._state == _AVAILABLE else value


def when_available(values: Iterable[AsyncValue], then: Callback) -> None:
    """Call `then` once all these values are available: now, or in the thread that completes the last one."""
    waits = [value for value in values if not value.is_available()]
    left, lock = len(waits), threading.Lock()

    def on_available() -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        then()

    for value in waits:
        value.and_then(on_available)
    if not waits:
        then()


def error_among(values: Iterable[AsyncValue]) -> HealdError | None:
    """The error of the first of these values that has one."""
    return next((value.error for value in values if value.error is not None), None)


def _new_complete(state: int, content: Any) -> AsyncValue:
    value = AsyncValue.__new__(AsyncValue)  # no lock and no list: a complete value never needs them
    value._state, value._content = state, content
    return value


DEAD = _new_complete(_DEAD, None)  # the AsyncValue of a value that is not computed: a Switch selected the other side
READY = available(None)  # a Chain


class _Completions(threading.local):
    """The callbacks that a thread has yet to call; None while it calls none."""

    queue: deque[Callback] | None = None


_completions = _Completions()


def _call(callbacks: list[Callback]) -> None:
    """Call each callback. A thread that is calling callbacks already queues these behind them.

    An exception of a callback goes to `sys.unraisablehook`, since a kernel stores its own errors in a value before
    callbacks run. An interrupt is raised after the last callback.
    """
    if _completions.queue is not None:
        _completions.queue.extend(callbacks)
        return
    queue = _completions.queue = deque(callbacks)
    interrupt: BaseException | None = None
    while queue:
        callback = queue.popleft()
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - the other callbacks have other owners
            report_unraisable(error, "a callback of an AsyncValue", callback)
        except BaseException as error:  # noqa: BLE001 - raised after the last callback, so that none is lost
            interrupt = error
    _completions.queue = None
    if interrupt is not None:
        raise interrupt
