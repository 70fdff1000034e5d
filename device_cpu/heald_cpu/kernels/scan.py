"""Kernels that return every partial result of a reduction along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import FLOATS, NUMBERS, Array

Run = Callable[..., None]
Accumulate = Callable[..., Any]  # accumulate(x, axis, dtype, out)

SCANS: tuple[tuple[str, Accumulate, float, tuple[str, ...]], ...] = (  # op, function, result of no elements, types
    ("Cumprod", np.multiply.accumulate, 1, NUMBERS),
    ("Cumsum", np.add.accumulate, 0, NUMBERS),
    ("CumulativeLogsumexp", np.logaddexp.accumulate, -np.inf, FLOATS),
)


def scan(accumulate: Accumulate, of_nothing: float) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        assert b.inputs[1].value is not None
        axis = int(b.inputs[1].value)
        step = -1 if b.attrs["reverse"] else 1
        dtype = b.outputs[0].dtype.numpy  # each partial result is rounded to it
        if not b.outputs[0].size:
            return lambda _x, _axis, _out: None

        def inclusive(x: Array, _: Array, out: Array) -> None:
            accumulate(_along(x, axis)[::step], 0, dtype, _along(out, axis)[::step])

        def exclusive(x: Array, _: Array, out: Array) -> None:
            source, target = _along(x, axis)[::step], _along(out, axis)[::step]
            target[0] = of_nothing
            accumulate(source[:-1], 0, dtype, target[1:])

        return exclusive if b.attrs["exclusive"] else inclusive

    return bind


def _along(x: Array, axis: int) -> Array:
    return np.moveaxis(x, axis, 0)


def register_kernels(kernels: Kernels) -> None:
    for op, accumulate, of_nothing, types in SCANS:
        kernels.kernel(op, dtypes={"T": types})(scan(accumulate, of_nothing))
