"""Layouts of handles: conversions between dense, scalar and sparse tensors.

Dispatch converts a scalar tensor for a kernel that takes dense ones, and for a function. It never converts a sparse
tensor: a few coordinates may stand for more elements than memory holds, so the user writes `to_dense()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.errors import HealdError, InvalidArgument
from heald.runtime.values import COO, DENSE, SCALAR, broadcast, coo_of, fill_dense

from .context import EagerContext
from .handle_state import Pending, Ready, State
from .queued_call import QueuedCall
from .source_line import calling_line


def elements(state: Ready) -> Any:
    """The elements of a value in host memory that a metadata function reads: an array, which takes no memory for a
    scalar tensor. None for a sparse tensor."""
    if state.kind.layout == SCALAR:
        return broadcast(state.value)
    return state.value if state.kind.layout == DENSE else None


def dense(context: EagerContext, state: Ready) -> Ready:
    """The state of the dense form: the state itself where the tensor is dense. Raises ResourceExhausted."""
    kind = state.kind
    if kind.layout == DENSE:
        return state
    array = context.host.memory.maker(kind.meta.dims, kind.meta.dtype.numpy, "a dense tensor")()
    fill_dense(state.value, array)
    return Ready(context.kinds.get(kind.meta, kind.device, kind.native, kind.handle), array)


def dense_argument(context: EagerContext, state: Ready) -> Ready:
    """The state of an argument of a program, which reads dense tensors. Raises InvalidArgument for a sparse tensor."""
    if state.kind.layout == COO:
        raise InvalidArgument(f"an argument is a sparse tensor of {state.kind.meta}; functions take dense tensors",
                              hint="convert it first: x.to_dense()")
    return dense(context, state)


def sparse(context: EagerContext, state: Ready) -> Ready:
    """The state of the sparse form. Raises InvalidArgument for a type without a 0, and for values outside host
    memory."""
    kind = state.kind
    if kind.layout == COO:
        return state
    if kind.native is not None:
        raise InvalidArgument(f"a sparse tensor is in host memory, and this tensor is on {kind.device}",
                              hint=f"copy it first: x.to('{context.default_device}').to_coo()")
    return Ready(context.kinds.get(kind.meta, kind.device, layout=COO), coo_of(state.value))


LAYOUT_CONVERSIONS: dict[str, Callable[[EagerContext, Ready], Ready]] = {DENSE: dense, COO: sparse}


def convert_layout(context: EagerContext, state: Ready | Pending, layout: str) -> State:
    """The state in another layout, which is DENSE or COO; queued while the value is pending. Raises as `dense` and
    `sparse`."""
    location, conversion = calling_line(2), LAYOUT_CONVERSIONS[layout]
    if isinstance(state, Ready):
        try:
            return conversion(context, state)
        except HealdError as error:
            raise error.at(location=location())  # noqa: B904 - the same error, with its place
    need = state.read()
    call = QueuedCall(context, (need,), (state.meta,), state.device,
                      lambda: ([conversion(context, Ready(*need.get()))], None),
                      lambda error: error.at(location=location()))
    return call.results[0]
