"""Arrays of other libraries: their memory as buffers, and buffers as their arrays. No element is copied."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from heald.api import DType, errors

from . import driver

if TYPE_CHECKING:
    from .command_queue import Buffer

GPU = 2  # DLPack's number of CUDA devices
NO_WAIT = -1  # DLPack's stream for which nothing waits
LEGACY_STREAM = 1  # the stream that DLPack means by None, and the driver's handle of it
ALIGNMENT = 256  # bytes: DLPack asks for it, and cuBLASLt chooses its algorithms by it


class Extent(NamedTuple):
    """The memory of an array."""

    pointer: int
    nbytes: int


class View:
    """The start of a buffer as an array. It holds the buffer's Python object, and not its memory: the runtime frees
    that in the order of the stream.

    The stream that a consumer names waits for the device's work so far. Work of the consumer on other streams than the
    device's is not ordered before later work of the device.
    """

    def __init__(self, buffer: Buffer, dtype: DType, dims: tuple[int, ...], stream: int) -> None:
        self._buffer = buffer
        self._dtype = dtype.numpy
        self._dims = dims
        self._stream = stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self._dims, "typestr": self._dtype.str, "data": (self._buffer.pointer, False), "version": 3,
                "strides": None, "stream": self._stream}

    def __dlpack_device__(self) -> tuple[int, int]:
        return GPU, self._buffer.ordinal

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        from cuda.core.utils import StridedMemoryView

        stream = LEGACY_STREAM if stream is None else stream
        if stream not in (NO_WAIT, self._stream):
            for mark in self._buffer.queue.record().marks:
                driver.wait(stream, mark.handle)
        view = StridedMemoryView.from_cuda_array_interface(self, stream_ptr=NO_WAIT)
        return view.__dlpack__(stream=NO_WAIT, **options)


def device_of(array: Any) -> int | None:
    """The number of the GPU whose memory has this array; None for arrays elsewhere."""
    ask = getattr(array, "__dlpack_device__", None)
    kind, ordinal = ask() if ask is not None else (None, None)
    return ordinal if kind == GPU else None


def extent(array: Any, stream: int) -> Extent:
    """The memory of an aligned, C-contiguous array. The work of its library on it is done before later work of the
    stream. Raises InvalidArgument for other arrays."""
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_any_interface(array, stream_ptr=stream)
    count = prod(view.shape)
    dense = [prod(view.shape[axis + 1 :]) for axis in range(len(view.shape))]
    if view.strides is not None and count and list(view.strides) != dense:
        raise errors.InvalidArgument(f"an array of shape {view.shape} in a GPU's memory is not C-contiguous",
                                     hint="give x.contiguous() of torch, or cupy.ascontiguousarray(x)")
    if view.ptr % ALIGNMENT:
        raise errors.InvalidArgument(f"an array on the GPU is at {view.ptr:#x}, no multiple of {ALIGNMENT} bytes",
                                     hint="give x.clone() of torch, or x.copy() of CuPy")
    return Extent(view.ptr, count * np.dtype(view.dtype).itemsize)
