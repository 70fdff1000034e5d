"""Kernels that compute in float32 and with channels last, for tensors that are half precision or channels first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from weft.api import Attachable, Bind, dtypes

CHANNELS_LAST = {  # where the axes N, H, W, C or N, D, H, W, C are
    "NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1), "NDHWC": (0, 1, 2, 3, 4), "NCDHW": (0, 2, 3, 4, 1),
}


class Scratched(NamedTuple):
    """A bound kernel whose scratch memory belongs to the frame; a single run makes its own."""

    attach: Callable[[tuple[Any, ...], tuple[Any, ...]], Callable[[], None]]
    outputs: int = 1

    def run(self, *arrays: Any) -> None:
        self.attach(arrays[: -self.outputs], arrays[-self.outputs :])()


def nothing(*_: Any) -> None:
    """The run function where there is nothing to compute."""


def compute_dtype(b: Bind) -> Any:
    """The NumPy dtype to compute in: half precision is summed in float32 and rounded once."""
    dtype = b.attrs["T"]
    return np.dtype(np.float32) if dtype in (dtypes.float16, dtypes.bfloat16) else dtype.numpy


def channels_last(b: Bind) -> tuple[int, ...]:
    """The axes of an image of this node, batch first and channels last; an op without a data format has them so."""
    return CHANNELS_LAST[b.attrs.get("data_format", "NHWC")]


def staged(b: Bind, inner: Attachable, images: Sequence[int] = (0,), *, gives_image: bool = True) -> Attachable:
    """`inner`, which computes channels last in `compute_dtype`, for the inputs `images` and output 0 as this node has
    them; with `gives_image` off, output 0 has its own layout and is only of another type."""
    order, dtype = channels_last(b), compute_dtype(b)
    if order == tuple(range(len(order))) and dtype == b.attrs["T"].numpy:
        return inner

    def attach(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], None]:
        sources = {i: inputs[i].transpose(order) for i in images}
        target = outputs[0].transpose(order) if gives_image else outputs[0]
        buffers = {i: np.empty(source.shape, dtype) for i, source in sources.items()}
        out = np.empty(target.shape, dtype)
        call = inner.attach(tuple(buffers.get(i, x) for i, x in enumerate(inputs)), (out,))

        def run() -> None:
            for i, source in sources.items():
                np.copyto(buffers[i], source, casting="unsafe")
            call()
            np.copyto(target, out, casting="unsafe")

        return run

    return Scratched(attach)
