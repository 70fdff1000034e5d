"""Arrays of another library in a GPU's memory, as torch's tensors and CuPy's arrays show themselves: by DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

CODES = {"i": 0, "u": 1, "f": 2}


class _Tensor(ctypes.Structure):
    """DLTensor, and DLManagedTensor behind it (dlpack.h, version 0.8)."""

    _fields_ = (("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32), ("device", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class ForeignTensor:
    """An array at an address of a GPU. `streams` has the streams for which consumers asked."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: str = "float32", ordinal: int = 0,
                 strides: tuple[int, ...] | None = None) -> None:
        self.shape = shape
        self.dtype = f"torch.{dtype}"
        self.streams: list[int] = []
        kind = np.dtype(dtype)
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(shape))(*strides)
        self._tensor = _Tensor(address, 2, ordinal, len(shape), CODES[kind.kind], 8 * kind.itemsize, 1,
                               ctypes.addressof(self._shape),
                               None if self._strides is None else ctypes.addressof(self._strides), 0, None, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._tensor.device

    def __dlpack__(self, *, stream: int | None = None, **_options: Any) -> Any:
        self.streams.append(stream or 0)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self._tensor), b"dltensor", None)
