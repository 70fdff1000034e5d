"""AsyncValue: a value that is there, or will be, or never will be.

    available   a payload (lock-free: nothing can change any more)
    error       a WeftError, which travels to dependents instead of a payload
    dead        what control flow did not take: one object for all, DEAD
    pending     somebody will call emplace, set_error or forward_to, once
    indirect    pending, then forwarded to another value: it is what that one is

A Chain has no payload: it says that something has happened. READY is the one that has.

Whoever completes a value runs what waits for it, on its own thread, but never within another value's completion: a
chain of any length that completes at once takes a queue and no stack.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ..errors import FailedPrecondition, Internal, InvalidArgument, WeftError

Callback = Callable[[], Any]

_PENDING, _AVAILABLE, _ERROR, _DEAD, _INDIRECT = range(5)


class AsyncValue:
    """Made pending; `available` and `failed` make values that are complete from birth."""

    __slots__ = ("__weakref__", "_content", "_lock", "_state", "_waiting")

    def __init__(self) -> None:
        self._state = _PENDING
        self._content: Any = None  # the payload, the error, or the value that this one is forwarded to
        self._waiting: list[Callback] = []
        self._lock = threading.Lock()

    def is_available(self) -> bool:
        """True when a payload, an error or death is known."""
        return self._target()._state != _PENDING

    def is_error(self) -> bool:
        return self._target()._state == _ERROR

    def is_dead(self) -> bool:
        return self._target()._state == _DEAD

    @property
    def error(self) -> WeftError | None:
        """The error, or None for a value that is none."""
        target = self._target()
        return target._content if target._state == _ERROR else None

    def get(self) -> Any:
        """The payload. Raises the error of an error, InvalidArgument for a dead value, FailedPrecondition for one
        that is not available: waiting is a work queue's to do."""
        target = self._target()
        if target._state == _AVAILABLE:
            return target._content
        if target._state == _ERROR:
            raise target._content
        if target._state == _DEAD:
            raise InvalidArgument("this value is dead: control flow did not take the way to it")
        raise FailedPrecondition("this value is not available yet", hint="wait for it with a work queue's await_values")

    def and_then(self, callback: Callback) -> None:
        """Call back when the value is available: at once if it is, else on the thread that completes it."""
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
        """Complete with a payload. Raises Internal when the value is complete or forwarded already."""
        self._complete(_AVAILABLE, payload)

    def set_error(self, error: WeftError) -> None:
        """Complete with an error. Raises Internal when the value is complete or forwarded already."""
        self._complete(_ERROR, error)

    def forward_to(self, other: AsyncValue) -> None:
        """Become what `other` is or will be. Raises Internal when complete already, or forwarded to itself."""
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
        self._check_pending()  # a value that was born complete has no lock
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
        """The value at the end of the forwarding; the way to it is shortened for those who come next."""
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
    """A value that is there."""
    return _born(_AVAILABLE, payload)


def failed(error: WeftError) -> AsyncValue:
    """A value that is an error."""
    return _born(_ERROR, error)


def unwrapped(value: Any) -> Any:
    """The payload of an AsyncValue that has one; everything else, what is to come, errors and DEAD too, as it is."""
    if not isinstance(value, AsyncValue):
        return value
    target = value._target()
    return target._content if target._state == _AVAILABLE else value


def _born(state: int, content: Any) -> AsyncValue:
    value = AsyncValue.__new__(AsyncValue)  # without a lock and a list: nobody will need them
    value._state, value._content = state, content
    return value


DEAD = _born(_DEAD, None)
READY = available(None)  # a chain


class _Completions(threading.local):
    """Callbacks that a thread has yet to call; None while it is calling none."""

    queue: deque[Callback] | None = None


_completions = _Completions()


def _call(callbacks: list[Callback]) -> None:
    """Call each, after those that are being called already. One that raises is reported as unraisable: what a
    kernel does wrong belongs into a value, and is there before it comes to callbacks. An interrupt waits its turn."""
    if _completions.queue is not None:
        _completions.queue.extend(callbacks)
        return
    queue = _completions.queue = deque(callbacks)
    interrupt: BaseException | None = None
    while queue:
        callback = queue.popleft()
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - the other callbacks are others'
            _report(error, callback)
        except BaseException as error:  # noqa: BLE001 - raised when nobody's callback can be lost
            interrupt = error
    _completions.queue = None
    if interrupt is not None:
        raise interrupt


def _report(error: Exception, callback: Callback) -> None:
    sys.unraisablehook(SimpleNamespace(
        exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__, object=callback,
        err_msg="Exception ignored in a callback of an AsyncValue"))
