"""A variable: an array that is replaced, never written into, so that what was read of it stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import Lock
from typing import Any

import numpy as np
from weft.api import Bind, errors, inherited

from ..element_types import Array
from .handles import from_handle


class Variable:
    """Several threads may use it at once; each change is whole."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._value: Array | None = None
        self._lock = Lock()
        inherited.add(self)

    def forked(self) -> None:
        self._lock = Lock()

    @property
    def is_initialized(self) -> bool:
        return self._value is not None

    def value(self) -> Array:
        """The array, which nobody may write. Raises NotFound where there is none."""
        if self._value is None:
            raise errors.NotFound(f"variable '{self.name}' is uninitialized or was deleted", hint=_HINT)
        return self._value

    def read(self, dtype: np.dtype[Any]) -> Array:
        """A copy. Raises FailedPrecondition where there is nothing to read, and InvalidArgument for another type."""
        return self._typed(dtype).copy()

    def _typed(self, dtype: np.dtype[Any]) -> Array:
        value = self._value
        if value is None:
            raise errors.FailedPrecondition(f"variable '{self.name}' is uninitialized or was deleted", hint=_HINT)
        if value.dtype != dtype:
            raise errors.InvalidArgument(f"Trying to read variable '{self.name}' with wrong dtype. Expected {dtype} "
                                         f"got {value.dtype}")
        return value

    def assign(self, value: Array) -> None:
        """Hold a copy. Raises InvalidArgument where it holds another type already."""
        with self._lock:
            if self._value is not None and self._value.dtype != value.dtype:
                raise errors.InvalidArgument(f"Trying to assign variable '{self.name}' with wrong dtype. Expected "
                                             f"{self._value.dtype} got {value.dtype}")
            self._value = value.copy()

    def change(self, change: Callable[[Array], Array]) -> None:
        """Hold what `change` makes of the array, which it may not write. Raises NotFound where there is none."""
        with self._lock:
            self._value = change(self.value())

    def delete(self) -> None:
        """Raises NotFound where there is nothing."""
        with self._lock:
            self.value()
            self._value = None

    @staticmethod
    def change_together(
        variables: Sequence[Variable], dtype: np.dtype[Any], change: Callable[..., Sequence[Array]],
    ) -> None:
        """Each holds what `change` makes of the arrays, which it may not write: an array for each, in their order. One
        that is given twice holds the last. Raises FailedPrecondition where one has no value, InvalidArgument for
        another type, and then, as when `change` raises, all stay as they are."""
        with ExitStack() as locked:
            for one in sorted(set(variables), key=id):  # everyone's order: nobody waits for who waits for them
                locked.enter_context(one._lock)
            olds = [one._typed(dtype) for one in variables]
            for one, new in zip(variables, change(*olds), strict=True):
                one._value = new


_HINT = "run what initializes it first"


def variable_of(b: Bind) -> Variable:
    """The session's variable for this node."""
    return b.resource("variable", lambda: Variable(b.attrs["shared_name"] or b.node))


def variable(scalar: Array) -> Variable:
    return from_handle(scalar, Variable)
