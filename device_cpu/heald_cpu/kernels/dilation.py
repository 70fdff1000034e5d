"""Grey-scale dilation: the largest sum of a window's element and the filter's, one pass for each tap of the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, geometry

from ..element_types import REAL
from .pool import lowest


def dilation2d(b: Bind) -> Callable[..., None]:
    """Dilation2D. NaN never wins, and no result is below the lowest finite number."""
    dtype, places = b.attrs["T"], list(_places(b))
    larger, start = np.fmax if dtype.kind == "f" else np.maximum, lowest(dtype)

    def run(x: Any, kernel: Any, out: Any) -> None:
        out.fill(start)
        for outputs, inputs, tap in places:
            into = out[outputs]
            larger(into, x[inputs] + kernel[tap], out=into)

    return run


def _places(b: Bind) -> Iterator[tuple[Any, Any, tuple[int, int]]]:
    """For each tap of the filter: the outputs with an element under it, these elements, and the tap."""
    x, kernel = (i.meta.dims for i in b.inputs)
    attrs = {**b.attrs, "dilations": b.attrs["rates"], "data_format": "NHWC"}
    down, across = (
        [geometry.tap_slices(x[axis], b.attrs["strides"][axis], slide.size or 0, tap * rate - slide.before)
         for tap in range(kernel[axis - 1])]
        for axis, rate, slide in zip((1, 2), b.attrs["rates"][1:], geometry.spatial_windows(attrs, x[1:3], kernel[:2]),
                                     strict=False)
    )
    for (i, rows), (j, columns) in product(enumerate(down), enumerate(across)):
        if rows is not None and columns is not None:
            outputs, inputs = ((slice(None), *index) for index in zip(rows, columns, strict=True))
            yield outputs, inputs, (i, j)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Dilation2D", dtypes={"T": REAL})(dilation2d)
