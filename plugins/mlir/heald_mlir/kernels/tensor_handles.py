"""The dialect `corert`: handles of constant tensors, and handles as shapes, host tensors, numbers and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Annotated, Any

import numpy as np
from heald.api import I32, Chain, HostKernels, HostType, Step, errors
from heald_eager import TensorHandle, runtime_of

from .dense import allocate_tensor, elements_of_values
from .host_tensors import ELEMENTS, OPERANDS_SYNTAX, HostTensor, Integers, StringTensor, list_text, text_of
from .shapes import ShapeType, TensorShape
from .strings import Strings

Handle = Annotated[TensorHandle, HostType("!corert.tensorhandle", lambda it: isinstance(it, TensorHandle))]
Dense = Annotated[Any, HostType("a dense attribute", lambda payload: hasattr(payload, "tobytes"))]


def register(kernels: HostKernels) -> None:
    kernels.kernel("corert.const_dense_tensor", step=True, syntax="$value attr-dict")(const_dense_tensor)
    kernels.kernel("corert.const_string_tensor", step=True, syntax="attr-dict")(const_string_tensor)
    for name in ELEMENTS:
        kernels.kernel(f"corert.create_dense_tensor.{name}", step=True, syntax="attr-dict")(_creator(name))
    kernels.kernel("corert.print_tensorhandle", step=True)(print_tensorhandle)
    kernels.kernel("corert.tensorhandle_to_shape")(tensorhandle_to_shape)
    kernels.kernel("corert.tensorhandle_to_ht")(tensorhandle_to_ht)
    kernels.kernel("corert.tensorhandle_to_int32", syntax=OPERANDS_SYNTAX)(tensorhandle_to_int32)


def const_dense_tensor(step: Step, *, value: Dense) -> Handle:
    """Return a handle of this array."""
    return runtime_of(step.host).tensor(value)


def const_string_tensor(step: Step, *, shape: Integers, value: Strings) -> Handle:
    """Return a handle of strings. One string fills the shape. Raises InvalidArgument for another number of strings."""
    _check_count(shape, value, "strings")
    array = step.host.memory.maker(shape, np.dtype(object), "a tensor")()
    texts = [text.encode("utf-8", "surrogateescape") for text in value]
    array.reshape(-1)[:] = texts
    return runtime_of(step.host).tensor(array)


def _creator(name: str) -> Callable[..., Any]:
    def create_dense_tensor(step: Step, *, shape: Integers, value: Any) -> Handle:
        """Return a handle of this type, shape and elements in row-major order. One element fills the shape.

        Raises InvalidArgument for another number of elements, ResourceExhausted.
        """
        values = value if isinstance(value, tuple) else (value,)
        _check_count(shape, values, "values")
        array = allocate_tensor(step, name, shape)
        array.reshape(-1)[:] = elements_of_values(values, name)
        return runtime_of(step.host).tensor(array)

    return create_dense_tensor


def _check_count(shape: tuple[int, ...], values: Sequence[Any], what: str) -> None:
    """Raises InvalidArgument unless the values fill the shape, or one value does."""
    if any(dim < 0 for dim in shape) or len(values) not in (1, prod(shape)):
        raise errors.InvalidArgument(f"{len(values)} {what} are given for the shape {list_text(shape)}")


def print_tensorhandle(step: Step, handle: Handle, chain: Chain) -> Chain:
    """Print the tensor as `tfrt_dht.print_tensor` does."""
    step.host.print_line(text_of(host_tensor(handle)))


def tensorhandle_to_shape(handle: Handle, chain: Chain) -> ShapeType:
    """Return the shape of the tensor."""
    return TensorShape(handle.shape)


def tensorhandle_to_ht(handle: Handle, chain: Chain) -> HostTensor:
    """Return the tensor in host memory. It is only to be read: a handle is a value."""
    return host_tensor(handle)


def tensorhandle_to_int32(handle: Handle) -> I32:
    """Return the one element. Raises InvalidArgument for a tensor that is no int32 of the shape [] or [1]."""
    array = handle.numpy()
    if array.dtype != np.int32 or array.shape not in ((), (1,)):
        raise errors.InvalidArgument(f"the tensor is {array.dtype} of the shape {list_text(array.shape)}, expected "
                                     "int32 of the shape [] or [1]")
    return int(array.reshape(()))


def host_tensor(handle: TensorHandle) -> Any:
    """The tensor of a handle as `tfrt_dht` and `tfrt_sht` know it. Raises the error of an error."""
    array = handle.numpy()
    if array.dtype != object:
        return array
    strings = tuple([element.decode("utf-8", "surrogateescape") for element in array.reshape(-1)])
    return StringTensor(array.shape, strings)


def is_true(handle: TensorHandle) -> bool:
    """True for an element that is not 0, or a text that is not empty. Raises InvalidArgument for other than one
    element."""
    array = handle.numpy()
    if array.size != 1:
        raise errors.InvalidArgument(f"a condition has one element, this one has the shape {list_text(array.shape)}")
    return bool(array.reshape(-1)[0])
