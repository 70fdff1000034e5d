"""Promises: values that come later. The first to settle a promise wins: its call, or a cancellation."""

from __future__ import annotations

import threading

from heald.api import AsyncValue
from heald.errors import HealdError

from .handle_state import Failed, Pending, Ready, State

END_OF_CALL = Ready(None, None)  # type: ignore[arg-type] # a state without a payload


class Promises:
    """The promises of one runtime that are not settled yet."""

    def __init__(self) -> None:
        self._open: dict[int, Promise] = {}
        self.queued: set[object] = set()  # calls; tasks refer to them weakly: a host's queue would keep the host alive

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

    def __init__(self, open_promises: dict[int, Promise]) -> None:
        self.value = AsyncValue()
        self._lock = threading.Lock()
        self._open = open_promises

    def settle(self, state: State) -> None:
        """Complete the value with this state, now or when the state is settled itself. Later calls do nothing."""
        if isinstance(state, Pending):
            value = state.read()
            value.and_then(lambda: self.settle(Failed(value.error) if value.error is not None else Ready(*value.get())))
            return
        with self._lock:
            if self._open.pop(id(self), None) is None:
                return
        if isinstance(state, Ready):
            self.value.emplace(state)
        else:
            self.value.set_error(state.error)

    def settle_after(self, value: AsyncValue | None) -> None:
        """Settle, without a payload, when a chain is complete: now if it is None."""
        if value is None:
            self.settle(END_OF_CALL)
        else:
            value.and_then(lambda: self.settle(END_OF_CALL if value.error is None else Failed(value.error)))
