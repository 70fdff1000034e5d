"""Kernels that compute in float32 and with channels last, for tensors that are half precision or channels first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import Attachable, Bind, dtypes

FINGERPRINT = "cpu, forms 1"  # of constants that kernels prepare; a change of their forms raises the number
CHANNELS_LAST = {  # the positions of the axes N, H, W, C or N, D, H, W, C
    "NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1), "NDHWC": (0, 1, 2, 3, 4), "NCDHW": (0, 2, 3, 4, 1),
}


class Scratched(NamedTuple):
    """A bound kernel whose scratch memory belongs to the frame; a single run makes its own."""

    attach: Callable[[tuple[Any, ...], tuple[Any, ...]], Callable[[], None]]
    outputs: int = 1
    reads: Collection[int] | None = None  # as of Attachable; None: all inputs

    def run(self, *arrays: Any) -> None:
        self.attach(arrays[: -self.outputs], arrays[-self.outputs :])()


def nothing(*_: Any) -> None:
    """The run function of a kernel without work."""


def compute_dtype(b: Bind) -> Any:
    """The NumPy dtype to compute in: half precision is summed in float32 and rounded once."""
    dtype = b.attrs["T"]
    return np.dtype(np.float32) if dtype in (dtypes.float16, dtypes.bfloat16) else dtype.numpy


def channels_last(b: Bind) -> tuple[int, ...]:
    """The axes of this node's images, batch first and channels last, the default order of an op without data format."""
    return CHANNELS_LAST[b.attrs.get("data_format", "NHWC")]


def with_channels_last(
    b: Bind, inner: Attachable, images: Sequence[int] = (0,), *, gives_image: bool = True
) -> Attachable:
    """A form of `inner`, which computes with channels last in `compute_dtype`, for this node's layout and dtype of the
    inputs `images` and of output 0. With `gives_image` off, only the dtype of output 0 is converted."""
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

    return Scratched(attach, reads=getattr(inner, "reads", None))
