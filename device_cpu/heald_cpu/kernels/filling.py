"""Kernels that make a tensor from a few numbers: its shape, its ends, the indices of its ones."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import zero

Run = Callable[..., None]


def empty(b: Bind) -> Run:
    """Empty. The output is always zeros, although any content is allowed: repeated runs return the same."""
    blank = zero(b.outputs[0].dtype)
    return lambda _, out: out.fill(blank)


def one_hot(b: Bind) -> Run:
    """An index out of range has no one."""
    dims = b.outputs[0].dims
    axis = b.attrs["axis"] % len(dims)
    depth, inner = dims[axis], prod(dims[axis + 1 :])
    outer = np.arange(prod(dims[:axis]))[:, None]
    offsets = (outer * depth * inner + np.arange(inner)).reshape(-1)  # of class 0

    def run(indices: Any, _depth: Any, on: Any, off: Any, out: Any) -> None:
        out[...] = off
        classes, places = indices.reshape(-1), offsets
        if classes.size and classes.view(f"u{classes.itemsize}").max() >= depth:  # negative ones are large here
            is_class = (classes >= 0) & (classes < depth)
            classes, places = classes[is_class], places[is_class]
        out.reshape(-1)[places + classes.astype(np.int64) * inner] = on

    return run


def lin_space(b: Bind) -> Run:
    """start + i * step, each in the output's own precision. Both ends are exactly as given."""
    dtype, count = b.outputs[0].dtype.numpy, b.outputs[0].size
    steps, gaps = np.arange(count).astype(dtype), np.array(max(count - 1, 1)).astype(dtype)

    def run(start: Any, stop: Any, _num: Any, out: Any) -> None:
        np.multiply(steps, (stop - start) / gaps, out=out)
        np.add(out, start, out=out)
        out[0] = start
        if count > 1:
            out[-1] = stop

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"Empty": empty, "LinSpace": lin_space, "OneHot": one_hot}.items():
        kernels.kernel(op)(bind)
