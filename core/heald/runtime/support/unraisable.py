"""Unraisable errors: exceptions that no caller can receive go to `sys.unraisablehook`.

The hook takes `sys.UnraisableHookArgs`, which only the interpreter can make. So the interpreter reports the error: a
callback of a weak reference raises it. An exception of the hook itself is then the interpreter's to report, too.
"""

from __future__ import annotations

import weakref


def report_unraisable(error: BaseException, role: str, source: object) -> None:
    """Report an error of `source`, whose role is a text such as "a callback of an AsyncValue". Never raises."""
    owner = _Owner()
    reference = weakref.ref(owner, _Raiser(error, role, source))
    del owner  # the reference's callback runs here
    del reference


class _Owner:
    """An object whose end raises an error."""


class _Raiser:
    """A callback that raises an error. The report contains its text."""

    def __init__(self, error: BaseException, role: str, source: object) -> None:
        self._error, self._role, self._source = error, role, source

    def __call__(self, _reference: object) -> None:
        raise self._error

    def __repr__(self) -> str:
        return f"{self._role}: {self._source!r}"
