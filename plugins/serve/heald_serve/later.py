"""A value that comes later in the same thread, such as the outputs of a batch that the event loop runs.

A future would have the loop call its callbacks in another turn. A `Later` calls its one callback at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from heald.errors import HealdError, typed_error

T = TypeVar("T")
U = TypeVar("U")


class Later(Generic[T]):
    """Gets a value or an error once, and hands it to one callback, in either order.

    `convert_later` adds a step before the callback. A `Later` of its own for each step would cost more than the step.
    """

    __slots__ = ("_callback", "_has_outcome", "_outcome", "_steps")

    def __init__(self) -> None:
        self._callback: Callable[[Any], object] | None = None
        self._steps: list[Callable[[Any], Any]] = []
        self._outcome: Any = None
        self._has_outcome = False

    def resolve(self, outcome: Any) -> None:
        """Give the value or the error of the first step."""
        for step in self._steps:
            outcome = _convert(step, outcome)
        if self._callback is not None:
            self._callback(outcome)
        else:
            self._outcome, self._has_outcome = outcome, True

    def then(self, callback: Callable[[T | HealdError], object]) -> None:
        """Call `callback` with the value or the error, now or later. No step may follow."""
        if self._has_outcome:
            callback(self._outcome)
        else:
            self._callback = callback

    def add_step(self, step: Callable[[Any], Any]) -> None:
        if self._has_outcome:
            self._outcome = _convert(step, self._outcome)
        else:
            self._steps.append(step)


def _convert(step: Callable[[Any], Any], outcome: Any) -> Any:
    try:
        return step(outcome)
    except Exception as error:  # noqa: BLE001 - the front tells it
        return as_typed(error)


async def value_of(later: Later[T]) -> T:
    """The value, as a coroutine waits for it. Raises the error."""
    future: asyncio.Future[T | HealdError] = asyncio.get_running_loop().create_future()
    later.then(lambda outcome: None if future.done() else future.set_result(outcome))
    return value_or_raise(await future)


def convert_later(later: Later[T], convert: Callable[[T | HealdError], U]) -> Later[U]:
    """The result of `convert` for the outcome. An error that it raises is the outcome, typed. `later` is used up."""
    later.add_step(convert)
    return cast("Later[U]", later)


def value_or_raise(outcome: T | HealdError) -> T:
    """The value. Raises the error."""
    if isinstance(outcome, HealdError):
        raise outcome
    return outcome


def as_typed(error: Exception) -> HealdError:
    return error if isinstance(error, HealdError) else typed_error(error)
