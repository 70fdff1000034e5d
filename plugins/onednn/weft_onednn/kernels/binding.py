"""Bind functions: what the library cannot do, or not faster than NumPy, is declined with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod

from weft.api import Attachable, Bind, Declined, FusedOp, dtypes, errors

from ..epilogue import Epilogue
from ..single_thread import SingleThread, is_small, single_thread

Head = Callable[[Bind, FusedOp, Epilogue], Attachable]
LEFT = "by itself it is no faster than NumPy's kernel"
BindFunction = Callable[[Bind], Attachable | Declined]


def declining(bind: Callable[[Bind], Attachable]) -> BindFunction:
    """`bind`, declined where it raises Unimplemented, for one thread where there is little to do."""

    @wraps(bind)
    def bound(b: Bind) -> Attachable | Declined:
        try:
            if not is_small(b, b.fused or [node_of(b)]):
                return bind(b)
            with single_thread():
                return SingleThread(bind(b))
        except errors.Unimplemented as error:
            return b.decline(error.message)

    return bound


def alone(head: Head) -> BindFunction:
    """A head with nothing after it."""
    return declining(lambda b: head(b, node_of(b), Epilogue()))


def node_of(b: Bind) -> FusedOp:
    """The node by itself, as one of several would be given."""
    count = len(b.inputs)
    return FusedOp(b.op, b.attrs, tuple(range(count)), tuple(range(count, count + len(b.outputs))), b.outputs)


def has_elements(*shapes: Sequence[int]) -> None:
    """Raise Unimplemented for shapes without elements: the library has no memory for them."""
    if not all(map(prod, shapes)):
        raise errors.Unimplemented("there are no elements")


def is_narrow(b: Bind) -> bool:
    """Whether elements are of a type that NumPy has no fast functions for."""
    return b.inputs[0].meta.dtype is not dtypes.float32


def left_to_numpy(b: Bind) -> Declined:
    """For ops that are served here only together with others."""
    return b.decline(LEFT)
