"""Typed errors, one class per canonical status code.

Each class also derives from the builtin that Python users expect, so `except ValueError` works. An error says
what is wrong, where (node, op, device, location) and what to do about it (hint). Codes are those of absl::Status.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ClassVar, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Location(NamedTuple):
    """A place in a file: `line` and `column` count from 1; None where they are unknown."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


class WeftError(Exception):
    """Base of all errors that weft raises on purpose."""

    code: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        op: str | None = None,
        device: str | None = None,
        location: Location | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.op = op
        self.device = device
        self.location = location
        self.hint = hint
        self.is_reported = False  # to the diagnostics handler of a host

    def __str__(self) -> str:
        place = [f"node '{self.node}'"] if self.node is not None else []
        place += [f"op {self.op}"] if self.op is not None else []
        place += [f"device {self.device}"] if self.device is not None else []
        text = f"{self.message} ({', '.join(place)})" if place else self.message
        if self.location is not None:
            text = f"{self.location}: {text}"
        return f"{text}; {self.hint}" if self.hint else text

    def at(
        self, *, node: str | None = None, op: str | None = None, device: str | None = None,
        location: Location | None = None,
    ) -> WeftError:
        """This error, with the places that it does not name yet filled in."""
        self.node = self.node if self.node is not None else node
        self.op = self.op if self.op is not None else op
        self.device = self.device if self.device is not None else device
        self.location = self.location if self.location is not None else location
        return self


class Cancelled(WeftError):
    code = 1


class Unknown(WeftError):
    code = 2


class InvalidArgument(WeftError, ValueError):
    code = 3


class DeadlineExceeded(WeftError, TimeoutError):
    code = 4


class NotFound(WeftError, LookupError):
    code = 5


class AlreadyExists(WeftError, ValueError):
    code = 6


class PermissionDenied(WeftError, PermissionError):
    code = 7


class ResourceExhausted(WeftError, MemoryError):
    code = 8


class FailedPrecondition(WeftError, RuntimeError):
    code = 9


class Aborted(WeftError, RuntimeError):
    code = 10


class OutOfRange(WeftError, IndexError):
    code = 11


class Unimplemented(WeftError, NotImplementedError):
    code = 12


class Internal(WeftError, RuntimeError):
    code = 13


class Unavailable(WeftError, RuntimeError):
    code = 14


class DataLoss(WeftError, ValueError):
    code = 15


class Unauthenticated(WeftError, PermissionError):
    code = 16


class PluginError(FailedPrecondition):
    """A plugin broke its contract; raised in strict mode, else kept in the plugin's record."""


class WeftWarning(UserWarning):
    """Something works, but not as it was asked to."""


def closest(name: str, candidates: object, *, most: int = 3) -> list[str]:
    """The candidates that look most like `name`, best first: the field's "did you mean"."""
    from difflib import get_close_matches

    return get_close_matches(name, [str(c) for c in candidates], n=most)  # type: ignore[attr-defined]


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """What users call to load or run: whatever happens inside leaves as a WeftError, with its cause."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except WeftError:
            raise
        except Exception as error:
            raise unexpected(error) from error

    return inside


def unexpected(error: Exception) -> WeftError:
    """What an exception that nobody foresaw is to the user."""
    if isinstance(error, MemoryError):
        return ResourceExhausted(f"out of memory: {error}")
    return Internal(f"{type(error).__name__}: {error}", hint="this is a fault of weft: please report it")
