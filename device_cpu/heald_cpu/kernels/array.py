"""Kernels that pass a tensor on, view it in another shape, return its shape or size, or fill a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, dtypes

from ..element_types import NUMBERS, QUANTISED

VIEWS = {
    "Identity": "T", "PlaceholderWithDefault": "dtype", "PreventGradient": "T", "Snapshot": "T", "StopGradient": "T",
    "Reshape": "T", "Squeeze": "T", "ExpandDims": "T",
}
Run = Callable[..., None]
CACHED_INTEGERS = 1 << 16  # integers of a range; the next ones are computed from them while they are in the cache
LARGEST_ADDRESSABLE_BYTES = 1 << 46  # more than a process may address; NumPy raises no MemoryError there


def view(_: Bind) -> None:
    """The runtime shows the input's buffer under the output's shape."""


def shapes(b: Bind) -> Run:
    """Shape and ShapeN."""
    count = len(b.inputs)
    dims_of_inputs = [np.array(x.meta.dims, o.dtype.numpy) for x, o in zip(b.inputs, b.outputs, strict=True)]

    def run(*arrays: Any) -> None:
        for out, shape in zip(arrays[count:], dims_of_inputs, strict=True):
            np.copyto(out, shape)

    return run


def rank(_: Bind) -> Run:
    return lambda x, out: out.fill(x.ndim)


def size(b: Bind) -> Run:
    count = b.inputs[0].size
    return lambda _, out: out.fill(count)


def fill_like(value: int) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        element = b"" if b.attrs["T"] is dtypes.string else value
        return lambda _, out: out.fill(element)

    return bind


def fill(_: Bind) -> Run:
    return lambda _, value, out: np.copyto(out, value)


def range_(b: Bind) -> Run:
    """start + i * delta, each in the output's own precision."""
    if b.outputs[0].nbytes > LARGEST_ADDRESSABLE_BYTES:
        raise MemoryError(f"{b.outputs[0].nbytes} bytes of numbers")
    start, _, delta = (x.value.reshape(()) for x in b.inputs if x.value is not None)
    size, dtype = b.outputs[0].size, b.outputs[0].dtype.numpy
    if dtype.kind not in "iu":
        numbers = start + np.arange(size).astype(dtype) * delta
        return lambda *arrays: np.copyto(arrays[-1], numbers)
    first = start + np.arange(min(size, CACHED_INTEGERS)).astype(dtype) * delta
    offsets = np.arange(0, size, CACHED_INTEGERS).astype(dtype) * delta

    def run(*arrays: Any) -> None:
        out = arrays[-1]
        for number, offset in enumerate(offsets):
            part = out[number * CACHED_INTEGERS : (number + 1) * CACHED_INTEGERS]
            np.add(first[: part.size], offset, part)

    return run


def copy(_: Bind) -> Run:
    return lambda x, out: np.copyto(out, x)


def bitcast(_: Bind) -> Run:
    def run(x: Any, out: Any) -> None:
        out.reshape(-1).view(np.uint8)[...] = x.reshape(-1).view(np.uint8)

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, attr in VIEWS.items():
        kernels.kernel(op, dtypes={attr: "any"}, alias={0: 0})(view)
    kernels.kernel("IdentityN", alias=lambda attrs: {i: i for i in range(len(attrs["T"]))})(view)
    kernels.kernel("Bitcast", dtypes={"T": NUMBERS + QUANTISED, "type": NUMBERS + QUANTISED})(bitcast)
    for op, bind in {
        "DeepCopy": copy, "Fill": fill, "OnesLike": fill_like(1), "Range": range_, "Rank": rank,
        "Shape": shapes, "ShapeN": shapes, "Size": size,
    }.items():
        kernels.kernel(op)(bind)
