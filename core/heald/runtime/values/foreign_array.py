"""ForeignArray: an array of another library in a device's memory, which a run takes as a feed without a copy.

DLPack (https://dmlc.github.io/dlpack) tells where an array lies. Arrays of the host are feeds like others.

A step is linked for foreign feeds: each consumer of one is a copy to a device that adopts it. Every other consumer is
an error.
"""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgument
from . import dtypes
from .dtypes import DType

HOST_KINDS = frozenset({1, 3, 11})  # DLPack's numbers of host memory: plain, and pinned for CUDA and ROCm


class ForeignShape(tuple[int, ...]):
    """The shape of a ForeignArray. It equals no shape of a host array, so a step is linked for each of both."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other.__class__ is ForeignShape and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((ForeignShape, tuple(self)))


class ForeignArray:
    """`array`: an object with `__dlpack__` in a device's memory. Raises InvalidArgument for a type that heald lacks."""

    __slots__ = ("array", "dtype", "shape")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = ForeignShape(map(int, array.shape))
        self.dtype: DType = dtypes.named(str(array.dtype).rpartition(".")[2])

    @staticmethod
    def is_one(value: Any) -> bool:
        """True for an array that is in no memory of the host."""
        device = getattr(value, "__dlpack_device__", None)
        return device is not None and device()[0] not in HOST_KINDS


def foreign_feed_error(name: str, reader: str) -> InvalidArgument:
    """Return the error for a foreign feed that something else than its device reads."""
    return InvalidArgument(f"feed '{name}' is an array in a device's memory, and {reader}",
                           hint="give an array of NumPy")
