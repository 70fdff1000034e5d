"""Random numbers by a state in a variable: the generator of TensorFlow 2, whose state is counter and key.

The state is an int64 vector: the lower and the upper half of the counter, then the key. An op reads the state and moves
the counter behind the blocks that it reserves, in one change of the variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import FLOATS, Array
from ..philox import MASK64
from ..resources.variable import variable
from .random import (
    AUTOMATIC,
    PHILOX,
    RESERVED,
    Distribution,
    Start,
    between,
    bits,
    fill_with,
    normal,
    truncated_normal,
    uniform,
)

Run = Callable[..., Any]
THREE_FRY = 2
STATE_LENGTH = 3
WORD = 2**32 - 1


def _check_algorithm(algorithm: Array) -> None:
    if algorithm == THREE_FRY:
        raise errors.Unimplemented("Non-XLA devices don't support the ThreeFry algorithm.")
    if algorithm not in (PHILOX, AUTOMATIC):
        raise errors.InvalidArgument(f"Unsupported algorithm id: {algorithm}")


def reserve(handle: Array, count: int) -> tuple[Array, Start]:
    """Move the counter by `count` blocks, modulo 2**64. Returns the old state, also as key and counter."""
    olds: list[Array] = []

    def change(state: Array) -> Array:
        _check_state(state)
        olds.append(state)
        low, high = _counter_after(int(state[0]) & MASK64, int(state[1]) & MASK64, count & MASK64)
        new = state.copy()
        new[:2] = np.array([low, high], np.uint64).view(np.int64)
        return new

    variable(handle).change(change)
    (old,) = olds
    low, high, key = (int(part) & MASK64 for part in old[:STATE_LENGTH])
    return old, (key, high << 64 | low)


def _check_state(state: Array) -> None:
    if state.dtype != np.int64:
        raise errors.InvalidArgument(f"dtype of RNG state variable must be int64, not {state.dtype}")
    if state.ndim != 1:
        raise errors.InvalidArgument(f"RNG state must have one and only one dimension, not {state.ndim}")
    if len(state) < STATE_LENGTH:
        raise errors.InvalidArgument("For the Philox algorithm, the size of state must be at least 3; got "
                                     f"{len(state)}")


def _counter_after(low: int, high: int, count: int) -> tuple[int, int]:
    """The counter, `count` blocks later. As in TensorFlow, a carry into a full upper word of `count` is lost."""
    first = (low & WORD) + (count & WORD)
    carry = (count >> 32) + (first >> 32) & WORD
    second = (low >> 32) + carry
    return (first & WORD) | (second & WORD) << 32, high + (second >> 32) & MASK64


def read_and_skip(_: Bind) -> Run:
    """RngReadAndSkip returns the old state."""

    def run(handle: Array, algorithm: Array, delta: Array, out: Array) -> None:
        _check_algorithm(algorithm)
        if variable(handle).value().size > STATE_LENGTH:
            raise errors.InvalidArgument(f"the state has {variable(handle).value().size} elements, expected 3")
        out[:] = reserve(handle, int(delta) * RESERVED)[0]

    return run


def skip(_: Bind) -> Run:
    def run(handle: Array, algorithm: Array, delta: Array) -> None:
        _check_algorithm(algorithm)
        reserve(handle, int(delta) * RESERVED)

    return run


def bind_random(distribution: Distribution) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        fill, size = distribution(b.outputs[0].dtype.numpy), b.outputs[0].size

        def run(handle: Array, algorithm: Array, _shape: Array, *bounds_and_out: Array) -> None:
            _check_algorithm(algorithm)
            _, start = reserve(handle, size * RESERVED)
            if size:
                fill(start, bounds_and_out[-1], *bounds_and_out[:-1])

        return run

    return bind


DISTRIBUTIONS: dict[str, tuple[Distribution, tuple[str, ...]]] = {
    "StatefulUniform": (fill_with(uniform), FLOATS),
    "StatefulStandardNormalV2": (fill_with(normal), FLOATS),
    "StatefulTruncatedNormal": (truncated_normal, FLOATS),
    "StatefulUniformInt": (between, ("int32", "int64")),
    "StatefulUniformFullInt": (fill_with(bits), ("int32", "int64", "uint32", "uint64")),
}


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RngReadAndSkip")(read_and_skip)
    kernels.kernel("RngSkip")(skip)
    for op, (distribution, types) in DISTRIBUTIONS.items():
        kernels.kernel(op, dtypes={"dtype": types})(bind_random(distribution))
