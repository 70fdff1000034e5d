"""What a kernel's exception is to the user: the one table from Python's exceptions to weft's errors."""

from __future__ import annotations

import threading

from ..errors import (
    DeadlineExceeded,
    InvalidArgument,
    OutOfRange,
    PluginError,
    ResourceExhausted,
    Unimplemented,
    Unknown,
    WeftError,
)

# TensorFlow's rule for Python functions in a graph.
CODES: tuple[tuple[type[Exception], type[WeftError]], ...] = (
    (MemoryError, ResourceExhausted), (NotImplementedError, Unimplemented), (TimeoutError, DeadlineExceeded),
    (StopIteration, OutOfRange), (ValueError, InvalidArgument), (TypeError, InvalidArgument),
    (ArithmeticError, InvalidArgument),
)


def as_weft_error(error: BaseException, what: str) -> WeftError:
    """The error itself if it is weft's, else a typed one that says that `what` failed with it, and has it as cause."""
    if isinstance(error, WeftError):
        return error
    kind = next((mine for theirs, mine in CODES if isinstance(error, theirs)), Unknown)
    typed = kind(f"{what} failed with {type(error).__name__}: {error}".removesuffix(": "))
    typed.__cause__ = error
    return typed


def as_plugin_error(error: Exception, what: str, pack: str, op: str) -> WeftError:
    """The error for what a kernel's code raised where it prepares runs. Weft's own errors are meant for the user."""
    if isinstance(error, MemoryError):
        return ResourceExhausted(f"no memory for what the kernel prepares: {error}")
    return PluginError(f"{what} of {pack}'s kernel for {op} raised {type(error).__name__}: {error}")


def is_interrupt(error: BaseException) -> bool:
    """True for a Ctrl-C. Only the main thread gets one: a KeyboardInterrupt elsewhere, and any SystemExit, is a failure
    of the kernel that raised it."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
