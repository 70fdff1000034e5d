"""The dialect `tfrt_dht`: dense tensors in host memory, which kernels fill in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import I1, Chain, HostKernels, Step, errors

from .host_tensors import ELEMENTS, OPERANDS_SYNTAX, Array, HostTensor, Integers, check, list_text, text_of

RANKS = range(6)
CLOSE_ULPS = 2  # ULP


def register(kernels: HostKernels) -> None:
    for name in ELEMENTS:
        for rank in RANKS:
            code = f"tfrt_dht.create_uninitialized_tensor.{name}.{rank}"
            kernels.kernel(code, step=True, syntax="$shape attr-dict")(_creator(name, rank))
        kernels.kernel(f"tfrt_dht.fill_tensor_with_constant.{name}", syntax="operands $value attr-dict")(_filler(name))
        kernels.kernel(f"tfrt_dht.set_tensor_with_constant_values.{name}", syntax="operands $values attr-dict")(
            _setter(name))
        kernels.kernel(f"tfrt_dht.tensor_equal.{name}", syntax=OPERANDS_SYNTAX)(
            _comparison(name, lambda a, b: bool((a == b).all())))
    for name, bits in {"f32": np.int32, "f64": np.int64}.items():
        kernels.kernel(f"tfrt_dht.tensor_allclose.{name}", syntax=OPERANDS_SYNTAX)(_comparison(name, _closeness(bits)))
    kernels.kernel("tfrt_dht.print_tensor", step=True, syntax=OPERANDS_SYNTAX)(print_tensor)
    kernels.kernel("tfrt_dht.print_tensor_shape", step=True, syntax=OPERANDS_SYNTAX)(print_tensor_shape)


def allocate_tensor(step: Step, name: str, shape: tuple[int, ...]) -> Array:
    """A new tensor in memory of the host's allocator. Raises ResourceExhausted."""
    try:
        array: Array = step.host.memory.maker(shape, ELEMENTS[name].numpy, "a tensor")()
    except errors.ResourceExhausted as error:
        raise errors.ResourceExhausted("Cannot allocate tensor", hint=str(error)) from error
    return array


def _creator(name: str, rank: int) -> Callable[..., Any]:
    def create(step: Step, *, shape: Integers) -> HostTensor:
        """Return a tensor whose elements are not set.

        Raises InvalidArgument for a shape of another rank or with negative dimensions, ResourceExhausted.
        """
        if len(shape) != rank or any(dim < 0 for dim in shape):
            raise errors.InvalidArgument(f"the shape {list_text(shape)} is not one of rank {rank}")
        return allocate_tensor(step, name, shape)

    return create


def _filler(name: str) -> Callable[..., Any]:
    def fill(tensor: HostTensor, chain: Chain, *, value: Any) -> Chain:
        """Set all elements. Raises InvalidArgument for a tensor of another type, and for another value."""
        elements = elements_of_values(value, name)
        if elements.ndim:
            raise errors.InvalidArgument(f"one value of {name} is needed, {elements.size} are given")
        _writable(tensor, name)[...] = elements

    return fill


def _writable(tensor: HostTensor, name: str) -> Array:
    """The array of a tensor that may be set. Raises InvalidArgument, also for a constant."""
    array = check(tensor, name)
    if not array.flags.writeable:
        raise errors.InvalidArgument("the tensor is a constant, which is read-only")
    return array


def elements_of_values(values: Any, name: str) -> Array:
    """The values of an attribute as elements. Raises InvalidArgument for values that are none of the type."""
    try:
        return np.asarray(values, ELEMENTS[name].numpy)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.InvalidArgument(f"values of {name} are needed: {error}") from None


def _setter(name: str) -> Callable[..., Any]:
    def set_values(tensor: HostTensor, chain: Chain, *, values: Any) -> Chain:
        """Set the elements in row-major order. Raises InvalidArgument for another number of values."""
        array, elements = _writable(tensor, name), elements_of_values(values, name)
        if elements.size != array.size:
            raise errors.InvalidArgument(f"{elements.size} values are given for {array.size} elements")
        array[...] = elements.reshape(array.shape)

    return set_values


def _comparison(name: str, holds: Callable[[Array, Array], bool]) -> Callable[..., Any]:
    def compare(a: HostTensor, b: HostTensor, chain: Chain) -> tuple[I1, Chain]:
        """Return True for tensors of one shape whose elements compare so, and a chain."""
        first, last = check(a, name), check(b, name)
        return first.shape == last.shape and holds(first, last), None

    return compare


def _closeness(bits: Any) -> Callable[[Array, Array], bool]:
    """Return the comparison of floats within CLOSE_ULPS units in the last place."""
    least = int(np.iinfo(bits).min)

    def holds(a: Array, b: Array) -> bool:
        if bool(np.isnan(a).any() or np.isnan(b).any()):
            return False
        ranks = [[pattern if pattern >= 0 else least - pattern for pattern in array.reshape(-1).view(bits).tolist()]
                 for array in (a, b)]  # the floats in their order, as integers
        return all(abs(x - y) <= CLOSE_ULPS for x, y in zip(*ranks, strict=True))

    return holds


def print_tensor(step: Step, tensor: HostTensor, chain: Chain) -> Chain:
    """Print type, shape and the first elements of a tensor of any kind."""
    step.host.print_line(text_of(tensor))


def print_tensor_shape(step: Step, tensor: HostTensor, chain: Chain) -> Chain:
    step.host.print_line(f"shape = {list_text(tensor.shape)}")
