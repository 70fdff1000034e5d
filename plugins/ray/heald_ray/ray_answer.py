"""RayAnswer: the answer to a call of an actor, as a future.

The thread that waits for an answer takes it from Ray itself. A callback would take it on a thread of Ray's, and each
change of threads costs a tenth of a millisecond. Only an answer that has a callback is taken that way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from heald.errors import HealdError, Unavailable

from .call_message import unpack_call
from .task_graphs import task_name


class RayAnswer(Future[Any]):
    """The answer to a call of a task's actor. An error of Ray becomes Unavailable, with the worker as its device."""

    def __init__(self, answer_ref: Any, task: int) -> None:
        super().__init__()
        self.answer_ref, self._task = answer_ref, task
        self._is_subscribed = False

    def take(self, read: Callable[[], Any] | None = None) -> None:
        """Take the answer from Ray, which blocks until it is there. `read`: Returns the values of an answer at hand."""
        import ray

        answer, error = None, None
        try:
            values = ray.get(self.answer_ref) if read is None else read()
            answer = unpack_call(values if isinstance(values, list) else [values])
        except HealdError as damage:
            error = damage
        except Exception as failure:  # noqa: BLE001 - Ray raises many types
            error = Unavailable(f"{task_name(self._task)} died: {first_line(failure)}", device=task_name(self._task))
        with suppress(InvalidStateError):  # another thread has set it
            if error is None:
                self.set_result(answer)
            else:
                self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        self._take_within(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._take_within(timeout)
        return super().exception(0)

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        super().add_done_callback(fn)
        if not self._is_subscribed and not self.done():
            self._is_subscribed = True
            self.answer_ref.future().add_done_callback(lambda done: self.take(done.result))

    def _take_within(self, seconds: float | None) -> None:
        if not self.done():
            wait_for_answers([self], seconds)


def wait_for_answers(answers: Collection[Any], seconds: float | None) -> set[Any]:
    """Wait until an answer is there, for at most `seconds`. Return the answers that are there."""
    import ray

    refs = {answer.answer_ref: answer for answer in answers if not answer.done()}
    if len(refs) == len(answers) and refs:
        ready, _ = ray.wait([*refs], num_returns=1, timeout=seconds)
        for answer_ref in ready:
            refs[answer_ref].take()
    return {answer for answer in answers if answer.done()}


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
