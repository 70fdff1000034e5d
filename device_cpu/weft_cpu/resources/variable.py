"""Variable: an array that updates replace and never write into, so that earlier reads keep their values."""

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
    """A variable, safe to use from several threads. Changes are atomic."""

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
        """The read-only array. Raises NotFound for an uninitialized variable."""
        if self._value is None:
            raise errors.NotFound(f"variable '{self.name}' is uninitialized or was deleted", hint=_HINT)
        return self._value

    def read(self, dtype: np.dtype[Any]) -> Array:
        """A copy. Raises FailedPrecondition for an uninitialized variable, InvalidArgument for another dtype."""
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
        """Store a copy. Raises InvalidArgument where the variable has a value of another dtype."""
        with self._lock:
            if self._value is not None and self._value.dtype != value.dtype:
                raise errors.InvalidArgument(f"Trying to assign variable '{self.name}' with wrong dtype. Expected "
                                             f"{self._value.dtype} got {value.dtype}")
            self._value = value.copy()

    def change(self, change: Callable[[Array], Array]) -> None:
        """Store `change(array)`. `change` must not write its argument. Raises NotFound before initialization."""
        with self._lock:
            self._value = change(self.value())

    def delete(self) -> None:
        """Raises NotFound for an uninitialized variable."""
        with self._lock:
            self.value()
            self._value = None

    @staticmethod
    def change_together(
        variables: Sequence[Variable], dtype: np.dtype[Any], change: Callable[..., Sequence[Array]],
    ) -> None:
        """Store the arrays `change(*arrays)`, one for each variable in order. `change` must not write its arguments. A
        variable that is given twice keeps the last array. Raises FailedPrecondition for an uninitialized variable and
        InvalidArgument for another dtype. After any error all variables are unchanged."""
        with ExitStack() as locked:
            for one in sorted(set(variables), key=id):  # one global order prevents deadlocks
                locked.enter_context(one._lock)
            olds = [one._typed(dtype) for one in variables]
            for one, new in zip(variables, change(*olds), strict=True):
                one._value = new


_HINT = "run the variable's initializer first"


def variable_of(b: Bind) -> Variable:
    """The session's variable for this node."""
    return b.resource("variable", lambda: Variable(b.attrs["shared_name"] or b.node))


def variable(scalar: Array) -> Variable:
    return from_handle(scalar, Variable)
