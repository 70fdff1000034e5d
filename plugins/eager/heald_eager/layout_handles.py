"""Handles of scalar and of sparse tensors: `heald.scalar_tensor` and `heald.coo_tensor`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heald.errors import HealdError
from heald.runtime.values import layouts

from .core_runtime import CoreRuntime
from .default_runtime import default_runtime
from .source_line import calling_line
from .tensor_handle import TensorHandle, handle_of


def scalar_handle(runtime: CoreRuntime, shape: Iterable[int], value: Any, dtype: Any = None) -> TensorHandle:
    """`scalar_tensor` over one runtime."""
    try:
        array, _ = runtime.array_copy(value, dtype, "value")
        return handle_of(runtime.context.ready_state(layouts.scalar_tensor(shape, array)))
    except HealdError as error:
        raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place


def coo_handle(
    runtime: CoreRuntime, indices: Any, values: Any, shape: Iterable[int], dtype: Any = None
) -> TensorHandle:
    """`coo_tensor` over one runtime."""
    try:
        array, _ = runtime.array_copy(values, dtype, "values")
        return handle_of(runtime.context.ready_state(layouts.coo_tensor(indices, array, shape)))
    except HealdError as error:
        raise error.at(location=calling_line()())  # noqa: B904 - as above


def scalar_tensor(shape: Iterable[int], value: Any, dtype: Any = None) -> TensorHandle:
    """Return a TensorHandle whose elements are all `value`. It holds one element until an op needs all of them.

    `shape`: lengths of the dimensions. `value`: a number, a text, or an array of shape []. `dtype`: as of
    TensorHandle.

    Raises InvalidArgument for a shape that is none, and for a value that is not one element or that the dtype cannot
    hold.
    """
    return scalar_handle(default_runtime(), shape, value, dtype)


def coo_tensor(indices: Any, values: Any, shape: Iterable[int], dtype: Any = None) -> TensorHandle:
    """Return a TensorHandle of a sparse tensor, in coordinate format in host memory.

    `indices`: integers of shape (elements, rank), a row of coordinates for each value, in any order. `values`: an array
    or list of shape (elements,). `shape`: the dense shape. `dtype`: the type of the values, as of TensorHandle. Both
    arrays are copied.

    Raises InvalidArgument for indices that are not integers, of another shape, outside of `shape` or given twice, and
    for values of another shape or of a type without a 0.
    """
    return coo_handle(default_runtime(), indices, values, shape, dtype)
