"""The trial of a plugin's work queue: one task of each kind runs when the queue is made. Runs cost nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....errors import HealdError, PluginError, describe_exception
from ...values.async_value import AsyncValue

_METHODS = ("add_task", "add_blocking_task", "await_values", "quiesce", "close")
_LONGEST_TRIAL_SECONDS = 5.0


def check_queue(queue: object, who: str, section: str) -> None:
    """Raises PluginError for a queue without a method, or that loses a task or gives a wrong answer. A typed error of
    the queue passes."""
    missing = [method for method in _METHODS if not callable(getattr(queue, method, None))]
    missing += [] if hasattr(queue, "parallelism_level") else ["parallelism_level"]
    if missing:
        raise PluginError(f"the factory of {who} returned {type(queue).__name__}, which has no "
                          f"{' and no '.join(missing)}", hint="see heald.api.ConcurrentWorkQueue")
    trial = _QueueTrial(queue, who, section)
    try:
        trial.check()
    except PluginError:
        _close(queue)
        raise


class _QueueTrial:
    def __init__(self, queue: Any, who: str, section: str) -> None:
        self._queue, self._who, self._section = queue, who, section

    def check(self) -> None:
        level = self._queue.parallelism_level
        if not isinstance(level, int) or level < 1:
            raise self._fault("parallelism_level", repr(level), "an int of 1 or more")
        done, blocking = AsyncValue(), AsyncValue()
        self._call("add_task", lambda: done.emplace(None))
        took = self._call("add_blocking_task", lambda: blocking.emplace(None), allow_queuing=True)
        if took is not True:
            raise self._fault("add_blocking_task", repr(took), "True, for a task that may be queued")
        answer = self._call("await_values", [done, blocking], _LONGEST_TRIAL_SECONDS)
        if not isinstance(answer, bool):
            raise self._fault("await_values", repr(answer), "a bool")
        for method, value in (("add_task", done), ("add_blocking_task", blocking)):
            if not value.is_available():
                raise PluginError(f"{self._who} did not run a task of {method}: await_values returned "
                                  f"{answer}", hint=self._hint())
        if not answer:
            raise self._fault("await_values", "False", "True, for values that are available")

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        function: Callable[..., Any] = getattr(self._queue, method)
        try:
            return function(*arguments, **named)
        except HealdError:
            raise
        except Exception as error:
            raise PluginError(f"{method} of {self._who} raised {describe_exception(error)}",
                              hint=self._hint()) from error

    def _fault(self, method: str, what: str, expected: str) -> PluginError:
        return PluginError(f"{method} of {self._who} returned {what}, expected {expected}",
                           hint=self._hint())

    def _hint(self) -> str:
        return f"report it to the plugin's authors; [{self._section}] name = 'multi_threaded' does without it"


def _close(queue: Any) -> None:
    try:
        queue.close()
    except Exception:  # noqa: BLE001 - the first fault is the one to tell
        return
