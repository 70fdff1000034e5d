"""Variable: an array that updates replace and never write into, so that earlier reads keep their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import Lock
from typing import Any

import numpy as np
from heald.api import Bind, errors, inherited

from ..element_types import Array
from .handles import from_handle


class Variable:
    """A variable, safe to use from several threads. Changes are atomic."""

    uninitialized: type[errors.HealdError] = errors.NotFound  # raised where a value is needed to change it
    initial_shape: tuple[int, ...] | None = None  # the shape that the first value must have, if there is such a one

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
        """The read-only array. Raises `uninitialized` for an uninitialized variable."""
        if self._value is None:
            raise self.uninitialized(f"variable '{self.name}' is uninitialized or was deleted", hint=_HINT)
        return self._value

    def read(self, dtype: np.dtype[Any]) -> Array:
        """A copy. Raises FailedPrecondition for an uninitialized variable, InvalidArgument for another dtype."""
        return self._value_of_dtype(dtype).copy()

    def _value_of_dtype(self, dtype: np.dtype[Any]) -> Array:
        value = self._value
        if value is None:
            raise errors.FailedPrecondition(f"variable '{self.name}' is uninitialized or was deleted", hint=_HINT)
        if value.dtype != dtype:
            raise errors.InvalidArgument(f"Trying to read variable '{self.name}' with wrong dtype. Expected {dtype} "
                                         f"got {value.dtype}")
        return value

    def assign(self, value: Array, *, validate_shape: bool = False) -> None:
        """Store a copy. Raises InvalidArgument where the variable has a value of another dtype, with `validate_shape`
        also of another shape."""
        with self._lock:
            if self._value is not None and self._value.dtype != value.dtype:
                raise errors.InvalidArgument(f"Trying to assign variable '{self.name}' with wrong dtype. Expected "
                                             f"{self._value.dtype} got {value.dtype}")
            expected_dims = self.initial_shape if self._value is None else self._value.shape
            if validate_shape and expected_dims is not None and expected_dims != value.shape:
                raise errors.InvalidArgument(f"Trying to assign variable '{self.name}' with wrong shape. Expected "
                                             f"{list(expected_dims)} got {list(value.shape)}")
            self._value = value.copy()

    def change(self, change: Callable[[Array], Array]) -> None:
        """Store `change(array)`. `change` must not write its argument. Raises `uninitialized` before
        initialization."""
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
            olds = [one._value_of_dtype(dtype) for one in variables]
            for one, new in zip(variables, change(*olds), strict=True):
                one._value = new


class ReferenceVariable(Variable):
    """A reference variable of TensorFlow 1. Its updates raise FailedPrecondition while it is uninitialized."""

    uninitialized = errors.FailedPrecondition

    def __init__(self, name: str, initial_shape: tuple[int, ...] | None) -> None:
        super().__init__(name)
        self.initial_shape = initial_shape


_HINT = "run the variable's initializer first"


def variable_of(b: Bind) -> Variable:
    """The session's variable for this node."""
    return b.resource("variable", lambda: Variable(b.attrs["shared_name"] or b.node))


def reference_variable_of(b: Bind) -> ReferenceVariable:
    """The session's reference variable for this node. TensorFlow takes an unknown rank for that of a scalar."""
    shape = b.attrs["shape"] or ()
    initial = None if None in shape else tuple(shape)
    return b.resource("reference variable", lambda: ReferenceVariable(b.attrs["shared_name"], initial))


def variable(scalar: Array) -> Variable:
    return from_handle(scalar, Variable)
