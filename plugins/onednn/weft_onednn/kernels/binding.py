"""Bind functions: what the library cannot do, or not faster than NumPy, is declined with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from weft.api import Attachable, Bind, Declined, FusedOp, errors

from ..epilogue import Epilogue

Head = Callable[[Bind, FusedOp, Epilogue], Attachable]
BindFunction = Callable[[Bind], Attachable | Declined]


def declining(bind: Callable[[Bind], Attachable]) -> BindFunction:
    """`bind`, declined where it raises Unimplemented."""

    @wraps(bind)
    def bound(b: Bind) -> Attachable | Declined:
        try:
            return bind(b)
        except errors.Unimplemented as error:
            return b.decline(error.message)

    return bound


def alone(head: Head) -> BindFunction:
    """A head with nothing after it."""

    def bind(b: Bind) -> Attachable:
        count = len(b.inputs)
        node = FusedOp(b.op, b.attrs, tuple(range(count)), tuple(range(count, count + len(b.outputs))), b.outputs)
        return head(b, node, Epilogue())

    return declining(bind)


def left_to_numpy(b: Bind) -> Declined:
    """For ops that are served here only together with others."""
    return b.decline("by itself it is no faster than NumPy's kernel")
