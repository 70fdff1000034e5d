"""AddN and ZerosLike of numbers, and AccumulateNV2.

`variant_ops` has kernels for AddN and ZerosLike, too, and families with a common op are imported together. Therefore
these ops are apart from `array` and `elementwise`, which nearly every program needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import NUMBERS, Array
from .array import fill_like


def register_kernels(kernels: Kernels) -> None:
    for op in ("AccumulateNV2", "AddN"):
        kernels.kernel(op, dtypes={"T": NUMBERS}, inplace={0: 0})(add_n)
    kernels.kernel("ZerosLike")(fill_like(0))


def add_n(b: Bind) -> Callable[..., Any]:
    if len(b.inputs) == 1:
        return lambda x, out: np.copyto(out, x)

    def run(x: Array, y: Array, *others_and_out: Array) -> None:
        out = others_and_out[-1]
        np.add(x, y, out)
        for term in others_and_out[:-1]:
            np.add(out, term, out)

    return run
