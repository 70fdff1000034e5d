"""Kernel errors: Python exceptions of kernels, devices and user functions become heald's errors.

An exception of a plugin's own code is the plugin's fault: PluginError, whatever its class, with the exception as cause.
It never gets a class of users' mistakes, for the user cannot mend it. A lack of memory stays ResourceExhausted. An
error of heald that the plugin raises is meant for the user, and passes. For any other code the table CODES counts.
"""

from __future__ import annotations

import threading
from typing import NoReturn, Protocol

from ...errors import (
    DeadlineExceeded,
    HealdError,
    InvalidArgument,
    OutOfRange,
    PluginError,
    ResourceExhausted,
    Unimplemented,
    Unknown,
    describe_exception,
    is_lack_of_memory,
    of_system,
)
from .fault_place import raised_at, with_place
from .remedy import kernel_remedy

# TensorFlow's rule for Python functions in a graph.
CODES: tuple[tuple[type[Exception], type[HealdError]], ...] = (
    (RecursionError, ResourceExhausted), (NotImplementedError, Unimplemented), (TimeoutError, DeadlineExceeded),
    (StopIteration, OutOfRange), (ValueError, InvalidArgument), (TypeError, InvalidArgument),
    (ArithmeticError, InvalidArgument),
)


def as_heald_error(error: BaseException, what: str) -> HealdError:
    """The error itself if it is heald's. Otherwise a typed error whose text says that `what` failed, with `error` as
    its cause."""
    if isinstance(error, HealdError):
        return error
    other = type(of_system(error)) if isinstance(error, OSError) else Unknown
    kind = next((code for theirs, code in CODES if isinstance(error, theirs)), other)
    kind = ResourceExhausted if is_lack_of_memory(error) else kind
    typed = kind(f"{what} failed with {describe_exception(error)}")
    typed.__cause__ = error
    return typed


def as_plugin_error(error: BaseException, what: str) -> HealdError:
    """The error itself if it is heald's. Otherwise ResourceExhausted for a lack of memory, and PluginError for any
    other exception of a plugin's own code, with `error` as its cause."""
    if isinstance(error, HealdError):
        return error
    is_lack = isinstance(error, RecursionError) or is_lack_of_memory(error)
    typed = (ResourceExhausted if is_lack else PluginError)(f"{what} failed with {describe_exception(error)}")
    typed.__cause__ = error
    return typed


class PackKernel(Protocol):
    """A kernel, as far as errors name it."""

    @property
    def pack(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def bind(self) -> object: ...

    @property
    def is_fusion(self) -> bool: ...

    @property
    def compiler(self) -> str: ...

    @property
    def files(self) -> frozenset[str]: ...


def kernel_fault(error: BaseException, what: str, kernel: PackKernel) -> HealdError:
    """As `as_plugin_error`, with the plugin of the kernel and, for an exception that is not heald's, the line of its
    code that raised.

    An OSError of a kernel that may open files is the system's answer about the user's file, and gets its class.
    """
    type_error = as_heald_error if isinstance(error, OSError) and kernel.files else as_plugin_error
    typed, module = type_error(error, what), getattr(kernel.bind, "__module__", "") or ""
    if typed is not error:
        typed.message = with_place(typed.message, error, module)
        typed.hint = kernel_remedy(kernel.pack, kernel.op, is_fusion=kernel.is_fusion, compiler=kernel.compiler)
    elif raised_at(error, module) is None:
        return typed  # core raised it
    return typed.at(plugin=kernel.pack)


def raise_of(
    what: str, error: Exception, kernel: PackKernel, node: str, op: str, device: str | None = None
) -> NoReturn:
    """Raise an exception of a kernel's bind or attach, with its place filled in.

    An error of heald is raised as it is: the kernel means it for the user. A lack of memory becomes ResourceExhausted,
    every other exception PluginError.
    """
    if isinstance(error, HealdError):
        raise kernel_fault(error, what, kernel).at(node=node, op=op, device=device)
    owner = (f"compile of compiler '{kernel.compiler}' of plugin {kernel.pack} for {op}" if kernel.compiler
             else f"{what} of {kernel.pack}'s kernel for {op}")
    text = f"{owner} raised {describe_exception(error)}"
    typed: HealdError = PluginError(with_place(text, error, getattr(kernel.bind, "__module__", "") or ""),
                                    plugin=kernel.pack,
                                    hint=kernel_remedy(kernel.pack, op, is_fusion=kernel.is_fusion,
                                                       compiler=kernel.compiler))
    if is_lack_of_memory(error):
        typed = ResourceExhausted(f"no memory for the data that the kernel prepares: {error}")
    raise typed.at(node=node, op=op, device=device) from error


def is_interrupt(error: BaseException) -> bool:
    """True for a Ctrl-C, which only the main thread receives. A KeyboardInterrupt elsewhere, and any SystemExit, is a
    failure of the kernel that raised it."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
