"""Device memory that the host cannot reach: buffers, and a count of the bytes that are left."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Buffer:
    """A range of device memory. To the host it is no array."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._bytes = bytearray(nbytes)

    def elements(self, dtype: np.dtype[Any], count: int) -> Array:
        """The elements as a vector, for copy engines and kernels only."""
        return np.frombuffer(self._bytes, dtype, count)

    def __array__(self, *_args: object, **_options: object) -> Array:
        raise TypeError("this is memory of an OUTSIDER_DEVICE device: copy it out first")


class Memory:
    """The memory of one device. Safe to use from several threads."""

    def __init__(self, size: int) -> None:
        self.available = size  # bytes
        self._lock = Lock()

    def allocate(self, nbytes: int) -> Buffer | None:
        """A buffer, None where the device has too little memory left."""
        with self._lock:
            if nbytes > self.available:
                return None
            self.available -= nbytes
        return Buffer(nbytes)

    def free(self, buffer: Buffer) -> None:
        with self._lock:
            self.available += buffer.nbytes
