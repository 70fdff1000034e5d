"""Kernels that compute in float32 and with channels last, for tensors that are half precision or channels first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from weft.api import Attachable, Bind, dtypes

CHANNELS_LAST = {"NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1)}  # where the axes N, H, W, C are


@dataclass(frozen=True)
class Scratched:
    """A bound kernel whose scratch memory belongs to the frame; a single run makes its own."""

    attach: Callable[[tuple[Any, ...], tuple[Any, ...]], Callable[[], None]]

    def run(self, *arrays: Any) -> None:
        self.attach(arrays[:-1], arrays[-1:])()


def nothing(*_: Any) -> None:
    """The run function where there is nothing to compute."""


def compute_dtype(b: Bind) -> Any:
    """The NumPy dtype to compute in: half precision is summed in float32 and rounded once."""
    dtype = b.attrs["T"]
    return np.dtype(np.float32) if dtype in (dtypes.float16, dtypes.bfloat16) else dtype.numpy


def staged(b: Bind, inner: Attachable) -> Attachable:
    """`inner`, which computes channels last in `compute_dtype`, for input 0 and output 0 as this node has them."""
    order = CHANNELS_LAST[b.attrs["data_format"]]
    dtype = compute_dtype(b)
    if order == (0, 1, 2, 3) and dtype == b.attrs["T"].numpy:
        return inner

    def attach(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], None]:
        source, target = inputs[0].transpose(order), outputs[0].transpose(order)
        x, out = np.empty(source.shape, dtype), np.empty(target.shape, dtype)
        call = inner.attach((x, *inputs[1:]), (out,))

        def run() -> None:
            np.copyto(x, source, casting="unsafe")
            call()
            np.copyto(target, out, casting="unsafe")

        return run

    return Scratched(attach)
