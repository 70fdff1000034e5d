"""Kernels that work on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import INTEGERS, Array

Run = Callable[..., object]
SAME_TYPE: dict[str, Run] = {
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor, "Invert": np.invert,
}
CACHED_ELEMENTS = 1 << 17  # elements that are checked, then shifted, while they are in the cache
SHIFTS: dict[str, Run] = {"LeftShift": np.left_shift, "RightShift": np.right_shift}


def shift(function: Run) -> Callable[[Bind], Run]:
    """The bind function of a shift. Counts are clipped to [0, bits - 1]: beyond, C leaves shifts undefined."""

    def bind(b: Bind) -> Run:
        unsigned: Any = np.dtype(f"u{b.outputs[0].dtype.itemsize}")
        largest_shift = 8 * unsigned.itemsize - 1

        def run_whole(x: Array, y: Array, out: Array) -> None:
            beyond = y.view(unsigned).max(initial=0) > largest_shift  # negative counts are large unsigned ones
            function(x, y.clip(0, largest_shift) if beyond else y, out)

        def run(x: Array, y: Array, out: Array) -> None:
            if not x.shape == y.shape == out.shape:
                run_whole(x, y, out)
                return
            flat = x.reshape(-1), y.reshape(-1), out.reshape(-1)
            for start in range(0, out.size, CACHED_ELEMENTS):
                run_whole(*(array[start : start + CACHED_ELEMENTS] for array in flat))

        return run

    return bind


def population_count(b: Bind) -> Run:
    unsigned: Any = np.dtype(f"u{b.inputs[0].dtype.itemsize}")

    def run(x: Array, out: Array) -> None:  # np.bitwise_count counts the bits of a signed element's absolute value
        np.bitwise_count(x.view(unsigned), out)

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, function in SAME_TYPE.items():
        kernels.kernel(op, dtypes={"T": INTEGERS}, inplace={0: 0})(lambda _, function=function: function)
    for op, function in SHIFTS.items():
        kernels.kernel(op, dtypes={"T": INTEGERS}, inplace={0: 0})(shift(function))
    kernels.kernel("PopulationCount", dtypes={"T": INTEGERS})(population_count)
