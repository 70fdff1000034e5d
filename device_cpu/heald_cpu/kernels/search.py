"""Kernels that find elements: the indices of nonzero elements, and positions among sorted elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import NUMBERS, REAL, Array

Run = Callable[..., Any]


def bucketize(b: Bind) -> Run:
    """Bucketize. Boundaries are float32, so integers are rounded to float32 before the comparison."""
    within = np.dtype(np.float64 if b.attrs["T"].name == "float64" else np.float32)
    boundaries = np.array(b.attrs["boundaries"], np.float32).astype(within)

    def run(x: Array, out: Array) -> None:
        out[...] = np.searchsorted(boundaries, x.astype(within, copy=False), "right")

    return run


def search_bound(goes_on: Callable[[Array, Array], Array]) -> Callable[[Bind], Run]:
    """Binary search in every row at once, with the comparisons of std::lower_bound. `goes_on(element, value)` is True
    if the value's bound lies behind the element."""

    def bind(b: Bind) -> Run:
        length = b.inputs[0].meta.dims[1]

        def run(rows: Array, values: Array, out: Array) -> None:
            first, count = np.zeros(values.shape, np.int64), np.full(values.shape, length)
            for _ in range(length.bit_length()):
                half = count // 2
                middle = np.minimum(first + half, length - 1)
                behind = (count > 0) & goes_on(np.take_along_axis(rows, middle, 1), values)
                first = np.where(behind, middle + 1, first)
                count = np.where(behind, count - half - 1, half)
            out[...] = first

        return run

    return bind


def invert_permutation(b: Bind) -> Run:
    places = np.arange(b.inputs[0].size)

    def run(x: Array, out: Array) -> None:
        if ((x < 0) | (x >= len(places))).any():
            raise errors.InvalidArgument(f"a permutation of {len(places)} elements, given {x.min()} to {x.max()}")
        out.fill(-1)
        out[x] = places
        if (out < 0).any():
            raise errors.InvalidArgument(f"a permutation has {out.argmin()} once, given none")

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Where", dtypes={"T": (*NUMBERS, "bool")}, allocates=True)(lambda _: np.argwhere)
    kernels.kernel("Bucketize")(bucketize)
    kernels.kernel("LowerBound", dtypes={"T": REAL})(search_bound(np.less))
    kernels.kernel("UpperBound", dtypes={"T": REAL})(search_bound(lambda element, value: ~(value < element)))
    kernels.kernel("InvertPermutation")(invert_permutation)
