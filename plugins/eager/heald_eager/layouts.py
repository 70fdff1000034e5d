"""Layouts of handles: makes tensors of other layouts than the dense one, and converts between layouts.

Dispatch converts a scalar tensor for a kernel that takes dense ones, and for a function. It never converts a sparse
tensor: a few coordinates may stand for more elements than memory holds, so the user writes `to_dense()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from heald.errors import HealdError, InvalidArgument
from heald.runtime.values import COO, DENSE, SCALAR, broadcast, coo_of, fill_dense, layouts

from .handle_state import Failed, Ready, State
from .promise import QueuedCall
from .source_line import calling_line
from .tensor_handle import TensorHandle, handle_of

if TYPE_CHECKING:
    from .core_runtime import CoreRuntime


def elements(state: Ready) -> Any:
    """The elements of a value in host memory that a metadata function reads: an array, which takes no memory for a
    scalar tensor. None for a sparse tensor."""
    if state.kind.layout == SCALAR:
        return broadcast(state.value)
    return state.value if state.kind.layout == DENSE else None


def dense(runtime: CoreRuntime, state: Ready) -> Ready:
    """The state of the dense form: the state itself where the tensor is dense. Raises ResourceExhausted."""
    kind = state.kind
    if kind.layout == DENSE:
        return state
    array = runtime.host.memory.maker(kind.meta.dims, kind.meta.dtype.numpy, "a dense tensor")()
    fill_dense(state.value, array)
    return Ready(runtime.kinds.get(kind.meta, kind.device, kind.native, kind.handle), array)


def dense_argument(runtime: CoreRuntime, state: Ready) -> Ready:
    """The state of an argument of a program, which reads dense tensors. Raises InvalidArgument for a sparse tensor."""
    if state.kind.layout == COO:
        raise InvalidArgument(f"an argument is a sparse tensor of {state.kind.meta}; functions take dense tensors",
                              hint="convert it first: x.to_dense()")
    return dense(runtime, state)


def sparse(runtime: CoreRuntime, state: Ready) -> Ready:
    """The state of the sparse form. Raises InvalidArgument for a type without a 0, and for values outside host
    memory."""
    kind = state.kind
    if kind.layout == COO:
        return state
    if kind.native is not None:
        raise InvalidArgument(f"a sparse tensor is in host memory, and this tensor is on {kind.device}",
                              hint=f"copy it first: x.to('{runtime.default_device}').to_coo()")
    return Ready(runtime.kinds.get(kind.meta, kind.device, layout=COO), coo_of(state.value))


Conversion = Callable[["CoreRuntime", Ready], Ready]


def converted(state: State, conversion: Conversion) -> State:
    """The state after `conversion`, which is `dense` or `sparse`; queued while the value is pending. Raises as the
    conversion."""
    location = calling_line(2)
    if isinstance(state, Failed):
        return state
    if isinstance(state, Ready):
        try:
            return conversion(state.kind.owner, state)
        except HealdError as error:
            raise error.at(location=location())  # noqa: B904 - the same error, with its place
    if state.demand is not None:
        state.demand()
    need, owner = state.value, state.owner
    queued = QueuedCall(owner, (need,), (state.meta,), state.device,
                        lambda: ([conversion(owner, need.get())], None), lambda error: error.at(location=location()))
    return queued.results[0]


def scalar_handle(runtime: CoreRuntime, shape: Iterable[int], value: Any, dtype: Any = None) -> TensorHandle:
    """`scalar_tensor` over one runtime."""
    try:
        array, _ = runtime.array(value, dtype, "value")
        return handle_of(runtime.ready(layouts.scalar_tensor(shape, array)))
    except HealdError as error:
        raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place


def coo_handle(
    runtime: CoreRuntime, indices: Any, values: Any, shape: Iterable[int], dtype: Any = None
) -> TensorHandle:
    """`coo_tensor` over one runtime."""
    try:
        array, _ = runtime.array(values, dtype, "values")
        return handle_of(runtime.ready(layouts.coo_tensor(indices, array, shape)))
    except HealdError as error:
        raise error.at(location=calling_line()())  # noqa: B904 - as above


def scalar_tensor(shape: Iterable[int], value: Any, dtype: Any = None) -> TensorHandle:
    """Return a TensorHandle whose elements are all `value`. It holds one element until an op needs all of them.

    `shape`: lengths of the dimensions. `value`: a number, a text, or an array of shape []. `dtype`: as of
    TensorHandle.

    Raises InvalidArgument for a shape that is none, and for a value that is not one element or that the dtype cannot
    hold.
    """
    from .default_runtime import default_runtime

    return scalar_handle(default_runtime(), shape, value, dtype)


def coo_tensor(indices: Any, values: Any, shape: Iterable[int], dtype: Any = None) -> TensorHandle:
    """Return a TensorHandle of a sparse tensor, in coordinate format in host memory.

    `indices`: integers of shape (elements, rank), a row of coordinates for each value, in any order. `values`: an array
    or list of shape (elements,). `shape`: the dense shape. `dtype`: the type of the values, as of TensorHandle. Both
    arrays are copied.

    Raises InvalidArgument for indices that are not integers, of another shape, outside of `shape` or given twice, and
    for values of another shape or of a type without a 0.
    """
    from .default_runtime import default_runtime

    return coo_handle(default_runtime(), indices, values, shape, dtype)
