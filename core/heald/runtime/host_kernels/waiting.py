"""Kernels that wait: a kernel is written as a generator, which yields the values that it waits for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ...errors import Cancelled, HealdError
from ..executor.call_level import at_level, current_level
from ..executor.step import Step
from ..support.kernel_errors import as_plugin_error
from ..values.async_value import DEAD, AsyncValue, available, payload_of

Turns = Generator[list[AsyncValue], None, list[Any]]  # yields the values that it waits for, returns its results


def await_payloads(values: Sequence[Any]) -> Generator[list[AsyncValue], None, list[Any]]:
    """Wait for values; return payloads, and DEAD for the dead. Raises the first error."""
    late = pending_values(values)
    if late:
        yield late
    payloads = []
    for value in values:
        payload = payload_of(value)
        if isinstance(payload, AsyncValue):
            if payload.error is not None:
                raise payload.error
            payload = DEAD
        payloads.append(payload)
    return payloads


def pending_values(values: Sequence[Any]) -> list[AsyncValue]:
    """Return the values that come later."""
    return [value for value in values if isinstance(value, AsyncValue) and not value.is_available()]


def run_or_promise(step: Step, turns: Turns, count: int) -> list[Any]:
    """Run a generator in place while nothing is pending, and return its results. Else promise its `count` results."""
    try:
        late = next(turns)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    promises = [AsyncValue() for _ in range(count)]
    _Waiting(step, turns, promises).wait(late)
    return promises


def as_async(value: Any) -> AsyncValue:
    return value if isinstance(value, AsyncValue) else available(value)


class _Waiting:
    """A generator that waits for values, and goes on when they have come, on the thread that drives its step."""

    def __init__(self, step: Step, turns: Turns, promises: list[AsyncValue]) -> None:
        self._step = step
        self._turns = turns
        self._promises = promises
        self._missing = 0
        self._level = current_level()

    def wait(self, values: Sequence[AsyncValue]) -> None:
        self._missing = len(values)
        for value in values:
            value.and_then(self._post)

    def _post(self) -> None:
        if not self._step.post(self._on_arrival):
            self._fail(self._step.error or Cancelled("the run ended before this work was done"))

    def _on_arrival(self) -> None:
        self._missing -= 1
        if self._missing:
            return
        try:
            late = at_level(self._level, next, self._turns)
        except StopIteration as end:
            for promise, value in zip(self._promises, end.value, strict=True):
                promise.forward_to(as_async(value))
        except Exception as error:  # noqa: BLE001 - the error is the kernel's result
            self._fail(as_plugin_error(error, "a kernel that waits"))
        else:
            self.wait(late)

    def _fail(self, error: HealdError) -> None:
        for promise in self._promises:
            if not promise.is_available():
                promise.set_error(error)
