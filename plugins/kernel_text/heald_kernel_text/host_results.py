"""Results in host memory: shapes, sizes and ranks, which no device needs to compute. Their kernels launch nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from .nodes import FIXED

Bound = Callable[..., None]


def _bind(b: Bind) -> Bound:
    """Return the run function that writes the values into the outputs, which are the last operands."""
    arrays = [np.asarray(value, meta.dtype.numpy) for value, meta in zip(_VALUES[b.op](b), b.outputs, strict=True)]

    def run(*operands: Any) -> None:
        for output, array in zip(operands[-len(arrays) :], arrays, strict=True):
            output[...] = array

    return run


_VALUES: dict[str, Callable[[Bind], Sequence[Any]]] = {  # the values of the outputs
    "Shape": lambda b: [b.inputs[0].meta.dims],
    "ShapeN": lambda b: [info.meta.dims for info in b.inputs],
    "Size": lambda b: [b.inputs[0].meta.size],
    "Rank": lambda b: [len(b.inputs[0].meta.dims)],
}


def register_host_results(kernels: Kernels) -> None:
    """Register the kernels, before others of the same ops."""
    for op in _VALUES:
        kernels.kernel(op, dtypes={"T": FIXED}, host_outputs=True, priority=1)(_bind)
