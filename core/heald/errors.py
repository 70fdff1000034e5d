"""Typed errors, one class per canonical status code.

Each class also derives from the builtin that Python users expect, so `except ValueError` works. An error names the
fault, its place (node, op, device, location) and the way out (hint). The codes are absl::Status's.

Every public entry is decorated with `boundary`, which types the exceptions that no other place has typed. Code that
runs the caller's own objects does so within `callers_code`: their exceptions become InvalidArgument, with the exception
as cause.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from typing import Any, ClassVar, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Hint = str | Callable[[], str | None] | None
LONGEST_TEXT_CHARACTERS = 4096  # characters of an error's text
LONGEST_COMPARED_CHARACTERS = 256  # characters of a name that is compared with others
LARGEST_CANDIDATE_COUNT = 5000  # names that one name is compared with: the comparison is slow


def printable(text: str, *, lines: bool = False) -> str:
    """Escape, as `repr` does, the characters that a terminal acts on instead of showing them.

    These are control characters, marks that turn the direction of writing, separators of lines, and halves of surrogate
    pairs. With `lines` the ends of lines stay.
    """
    if lines:
        return "\n".join(map(printable, text.split("\n")))
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short_text(text: str, limit: int = LONGEST_TEXT_CHARACTERS) -> str:
    """`text` without its middle, when it has more than `limit` characters (64 at least)."""
    if len(text) <= limit:
        return text
    gap = f" ... {len(text):,} characters ... "
    tail = (limit - len(gap)) // 2
    return f"{text[: limit - len(gap) - tail]}{gap}{text[-tail:]}"


def display_text(text: str, limit: int = LONGEST_TEXT_CHARACTERS, *, lines: bool = False) -> str:
    """`text` made printable, at most `limit` characters of it."""
    return short_text(printable(short_text(text, limit), lines=lines), limit)


class Location(NamedTuple):
    """A place in a file. `line` and `column` count from 1; None where they are unknown."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


def mentions(text: str, name: str) -> bool:
    """True if a text has the name as a whole word that names no argument: 'y' of "input 'y'" is not the node 'y'."""
    import re

    return re.search(rf"(?<!input )(?<!output )(?<!argument )(?<!attribute )(?<!\w){re.escape(name)}(?!\w)",
                     text) is not None


class HealdError(Exception):
    """Base of all errors that heald raises on purpose.

    `message`: The fault: the given value, and the expected one.
    `node`, `op`, `device`, `location`: The place of the fault; None where it is unknown.
    `plugin`: The id of the plugin whose code raised or broke its contract; `method`: the method of its device.
    `hint`: The way out, or None. A function of no arguments makes it when it is first read: most errors of nodes that
        no step needs are dropped unread, and a search for similar names takes milliseconds.

    Message and hint may have names of a file. Both are printable, but for ends of lines.
    """

    code: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        op: str | None = None,
        device: str | None = None,
        location: Location | None = None,
        hint: Hint = None,
        plugin: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.op = op
        self.device = device
        self.location = location
        self.plugin = plugin
        self.method: str | None = None
        self.hint = hint
        self.is_reported = False  # True once a host's diagnostics handler has received it

    @property
    def message(self) -> str:
        return self._message

    @message.setter
    def message(self, text: str) -> None:
        self._message = printable(str(text), lines=True)

    @property
    def hint(self) -> str | None:
        if callable(self._hint):
            self.hint = self._hint()
        return self._hint  # type: ignore[return-value]

    @hint.setter
    def hint(self, hint: Hint) -> None:
        self._hint = hint if hint is None or callable(hint) else printable(str(hint), lines=True)

    def __reduce__(self) -> str | tuple[Any, ...]:
        self.hint = self.hint  # functions cannot be pickled
        return super().__reduce__()

    def __str__(self) -> str:
        place_texts = self.place()
        text = f"{self.message} ({', '.join(place_texts)})" if place_texts else self.message
        if self.location is not None:
            text = f"{self.location}: {text}"
        return display_text(f"{text}; {self.hint}" if self.hint else text)

    def place(self) -> list[str]:
        """The known parts of the place as texts. A plugin or a method that the message names is left out."""
        parts = [f"node '{self.node}'"] if self.node is not None else []
        parts += [f"op {self.op}"] if self.op is not None else []
        parts += [f"device {self.device}"] if self.device is not None else []
        parts += [f"{what} {name}" for what, name in (("plugin", self.plugin), ("method", self.method))
                  if name is not None and not mentions(self.message, name)]
        return parts

    def at(
        self, *, node: str | None = None, op: str | None = None, device: str | None = None,
        location: Location | None = None, plugin: str | None = None, method: str | None = None,
    ) -> HealdError:
        """This error, with the given places filled in that it does not name yet."""
        self.node = self.node if self.node is not None else node
        self.op = self.op if self.op is not None else op
        self.device = self.device if self.device is not None else device
        self.location = self.location if self.location is not None else location
        self.plugin = self.plugin if self.plugin is not None else plugin
        self.method = self.method if self.method is not None else method
        return self


class Cancelled(HealdError):
    code = 1


class Unknown(HealdError):
    code = 2


class InvalidArgument(HealdError, ValueError):
    """An input, attribute or argument that does not fit."""

    code = 3


class DeadlineExceeded(HealdError, TimeoutError):
    code = 4


class NotFound(HealdError, LookupError):
    code = 5


class AlreadyExists(HealdError, ValueError):
    code = 6


class PermissionDenied(HealdError, PermissionError):
    code = 7


class ResourceExhausted(HealdError, MemoryError):
    code = 8


class FailedPrecondition(HealdError, RuntimeError):
    code = 9


class Aborted(HealdError, RuntimeError):
    code = 10


class OutOfRange(HealdError, IndexError):
    code = 11


class Unimplemented(HealdError, NotImplementedError):
    code = 12


class Internal(HealdError, RuntimeError):
    code = 13


class Unavailable(HealdError, RuntimeError):
    """A device, driver or file that cannot be used now. A device raises it to declare itself lost."""

    code = 14


class DataLoss(HealdError, ValueError):
    code = 15


class Unauthenticated(HealdError, PermissionError):
    code = 16


class PluginError(FailedPrecondition):
    """A plugin broke its contract. Raised in strict mode, else kept in the plugin's record."""


class HealdWarning(UserWarning):
    """The operation works, but not in the requested way."""

    def __str__(self) -> str:
        return display_text(super().__str__())


# The first row that fits counts. A row has an error number of the operating system, or an exception class of Python.
_OF_SYSTEM: tuple[tuple[int | type[OSError], type[HealdError]], ...] = (
    (errno.ENAMETOOLONG, InvalidArgument), (errno.ELOOP, InvalidArgument), (errno.EINVAL, InvalidArgument),
    (errno.ENOSPC, ResourceExhausted), (errno.EDQUOT, ResourceExhausted), (errno.ENOMEM, ResourceExhausted),
    (errno.EMFILE, ResourceExhausted), (errno.ENFILE, ResourceExhausted), (errno.EFBIG, ResourceExhausted),
    (errno.EROFS, PermissionDenied), (errno.EIO, DataLoss), (errno.ENOTEMPTY, AlreadyExists),
    (FileNotFoundError, NotFound), (NotADirectoryError, NotFound), (IsADirectoryError, InvalidArgument),
    (FileExistsError, AlreadyExists), (PermissionError, PermissionDenied), (TimeoutError, DeadlineExceeded),
)


def of_system(error: OSError, file: object = None) -> HealdError:
    """The typed error for a refusal of the operating system, located at `file` or at the file that `error` names."""
    kind = next((ours for theirs, ours in _OF_SYSTEM
                 if (error.errno == theirs if isinstance(theirs, int) else isinstance(error, theirs))), Unknown)
    named = error.filename if file is None else file
    return kind(error.strerror or describe_exception(error), location=None if named is None else Location(str(named)))


def describe_exception(error: BaseException) -> str:
    """The class and the text of an exception. Its own code may fail to return a text; then the class stands alone."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the class alone is still informative
        text = ""
    return f"{type(error).__name__}: {text}".removesuffix(": ")


@contextmanager
def callers_code(what: str) -> Iterator[None]:
    """Turn exceptions of the caller's own objects into InvalidArgument, whose text says that `what` failed, with the
    exception as its cause. MemoryError becomes ResourceExhausted."""
    try:
        yield
    except HealdError:
        raise
    except MemoryError as error:
        raise typed_error(error) from error
    except Exception as error:
        raise InvalidArgument(f"{what}: {describe_exception(error)}") from error


def closest(name: str, candidates: Iterable[object], *, limit: int = 3) -> list[str]:
    """The candidates most similar to `name`, best first: the field's "did you mean".

    Long names, and candidates after the first few thousand, are not compared.
    """
    from difflib import get_close_matches

    if len(name) > LONGEST_COMPARED_CHARACTERS:
        return []
    texts = map(str, islice(candidates, LARGEST_CANDIDATE_COUNT))
    return get_close_matches(name, [text for text in texts if len(text) <= LONGEST_COMPARED_CHARACTERS], n=limit)


def did_you_mean(name: str, names: Iterable[object]) -> str | None:
    """A hint with the names nearest to `name`, or None when none is near."""
    similar_names = closest(name, names)
    return f"did you mean {' or '.join(repr(n) for n in similar_names)}?" if similar_names else None


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public entry: every exception inside leaves it as a HealdError, with its cause."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except HealdError:
            raise
        except Exception as error:
            if isinstance(error, TypeError) and not _has_begun(function, error):
                raise _wrong_call(function, error) from error
            raise typed_error(error) from error

    return inside


def _has_begun(function: Callable[..., Any], error: Exception) -> bool:
    """True where the function itself raised: a call whose arguments fit no parameters has no frame of it."""
    from inspect import unwrap
    from traceback import walk_tb

    code = getattr(unwrap(function), "__code__", None)
    return any(frame.f_code is code for frame, _ in walk_tb(error.__traceback__))


def _wrong_call(function: Callable[..., Any], error: TypeError) -> InvalidArgument:
    import inspect

    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()
                  if p.name != "self"]
    name = function.__qualname__.removesuffix(".__init__")
    return InvalidArgument(str(error), hint=f"call it as {name}{inspect.Signature(parameters)}")


def typed_error(error: Exception) -> HealdError:
    """The typed error for an exception that no other place has typed."""
    if is_lack_of_memory(error):
        return ResourceExhausted(f"out of memory: {error}".removesuffix(": "))
    if isinstance(error, RecursionError):
        return ResourceExhausted(f"out of stack: {error}", hint="the input is nested too deep: flatten it")
    if isinstance(error, OSError):
        return of_system(error)
    if isinstance(error, Warning):
        return FailedPrecondition(f"Python turned a warning into an error: {describe_exception(error)}")
    return Internal(describe_exception(error), hint="this is a fault of heald: please report it")


def is_lack_of_memory(error: BaseException) -> bool:
    """True for a MemoryError, and for the ValueErrors with which NumPy refuses arrays larger than any memory."""
    if isinstance(error, ValueError):
        return str(error).startswith(_TOO_LARGE)
    return isinstance(error, MemoryError)


_TOO_LARGE = ("Maximum allowed dimension exceeded", "array is too big")
