"""Kernels of stacks. Control edges order pushes and pops. A stack retains the pushed arrays, which must not change
afterwards; a pop returns a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.api import Bind, Kernels, errors

from ..element_types import Array
from ..resources.handles import from_handle
from ..resources.stack import Stack

Run = Callable[..., Any]


def stack(b: Bind) -> Run:
    name, dtype = b.attrs["stack_name"] or b.node, b.attrs["elem_type"]
    return lambda max_size, out: out.fill(Stack(name, dtype, max_size.item()))


def push(b: Bind) -> Run:
    dtype = b.attrs["T"]

    def run(handle: Array, tensor: Array, out: Array) -> None:
        from_handle(handle, Stack).push(tensor, dtype)
        out[...] = tensor

    return run


def pop(b: Bind) -> Run:
    dtype = b.attrs["elem_type"]

    def run(handle: Array) -> Array:
        tensor_stack = from_handle(handle, Stack)
        tensor = tensor_stack.pop()
        if tensor_stack.dtype is not dtype:
            raise errors.InvalidArgument(f"output of type {tensor_stack.dtype} does not match declared output type "
                                         f"{dtype}")
        return tensor.copy()

    return run


def close(_: Bind) -> Run:
    return lambda handle: from_handle(handle, Stack).close()


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("StackV2")(stack)
    kernels.kernel("StackPushV2", retains=("elem",))(push)
    kernels.kernel("StackPopV2", allocates=True)(pop)
    kernels.kernel("StackCloseV2")(close)
