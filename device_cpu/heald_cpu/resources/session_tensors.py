"""Tensors that a session keeps from run to run, each under a handle of its own, until they are deleted."""

from __future__ import annotations

from threading import Lock

from heald.api import DType, errors, inherited

from ..element_types import Array


class SessionTensors:
    """The kept tensors of one session. Any thread may call. Kept tensors are never written."""

    def __init__(self) -> None:
        self._tensors: dict[bytes, tuple[DType, Array]] = {}
        self._count = 0  # of all tensors so far: no handle is given twice
        self._lock = Lock()
        inherited.add(self)

    def add(self, node: str, device: str, dtype: DType, tensor: Array) -> bytes:
        """Keep a tensor, and return its handle as TensorFlow writes it: `NODE;NUMBER;DEVICE`."""
        with self._lock:
            handle = f"{node};{self._count};{device}".encode()
            self._count += 1
            self._tensors[handle] = dtype, tensor
        return handle

    def get(self, handle: bytes, dtype: DType) -> Array:
        """Return the tensor under a handle. Raises InvalidArgument when there is none, and for another type."""
        try:
            kept_dtype, tensor = self._tensors[handle]
        except KeyError:
            raise errors.InvalidArgument(f"the session has no tensor under the handle '{_text(handle)}'",
                                         hint="handles are of one session, and end with DeleteSessionTensor") from None
        if kept_dtype is not dtype:
            raise errors.InvalidArgument(f"the tensor under the handle '{_text(handle)}' is of type {kept_dtype.name}, "
                                         f"asked for as {dtype.name}", hint=f"dtype={kept_dtype.name}")
        return tensor

    def delete(self, handle: bytes) -> None:
        """Drop the tensor under a handle. Raises InvalidArgument when there is none."""
        if self._tensors.pop(handle, None) is None:
            raise errors.InvalidArgument(f"no tensor to delete: the session has none under the handle "
                                         f"'{_text(handle)}'", hint="it may have been deleted already")

    def __len__(self) -> int:
        return len(self._tensors)

    def forked(self) -> None:
        self._lock = Lock()


def _text(handle: bytes) -> str:
    return handle[:200].decode("utf-8", "backslashreplace")
