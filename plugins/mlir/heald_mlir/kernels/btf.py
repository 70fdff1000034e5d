"""The dialect `btf`: dense tensors in files of TFRT's binary tensor format.

A file is a count and the offset of each tensor, in 64 bits. A tensor is its rank in 64 bits, a byte for the element
type, a byte for the layout, six bytes of padding, its dimensions in 64 bits, and its elements in row-major order. All
numbers are little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from io import BufferedReader
from math import prod
from typing import Any

from heald.api import I32, HostKernels, Step, String, errors

from .dense import allocate_tensor
from .host_tensors import ELEMENTS, OPERANDS_SYNTAX, HostTensor, list_text

NAMES = ("i8", "i16", "i32", "i64", "f32", "f64", "ui8", "ui16", "ui32", "ui64")  # by the number of the element type
RANKS = range(6)
DENSE = 0  # the layout
_UINT64 = struct.Struct("<Q")
_HEADER = struct.Struct("<QBB6x")


def register(kernels: HostKernels) -> None:
    for number, name in enumerate(NAMES):
        for rank in RANKS:
            code = f"btf.read_dense_tensor.{name}.{rank}"
            kernels.kernel(code, step=True, asynchronous=True, syntax=OPERANDS_SYNTAX)(_reader(code, number, rank))


def _reader(code: str, number: int, rank: int) -> Callable[..., Any]:
    def read_dense_tensor(step: Step, path: String, index: I32) -> HostTensor:
        """Return the tensor with this index in a file, which a blocking task reads.

        Raises NotFound for a file that cannot be opened, PermissionDenied where [files] permits no access,
        InvalidArgument for another index, element type or rank, DataLoss for a damaged file.
        """
        permitted_path = step.host.files.path(code, path, "read")

        def read() -> Any:
            try:
                file = permitted_path.open("rb")
            except OSError as error:
                raise errors.NotFound(f"failed to open file {path} for reading") from error
            with file:
                return _read(step, _File(file, path), index, number, rank)

        return step.enqueue_blocking(read)

    return read_dense_tensor


class _File:
    """A file whose reads end in DataLoss past its end."""

    def __init__(self, file: BufferedReader, path: str) -> None:
        self._file = file
        self._path = path
        self.size = file.seek(0, 2)

    def wrong(self, what: str) -> errors.DataLoss:
        return errors.DataLoss(f"{self._path} is no file of tensors, or is damaged: {what}")

    def read(self, start: int, size: int) -> bytes:
        if start + size > self.size:
            raise self.wrong(f"{size} bytes are expected at {start}, and it has {self.size}")
        self._file.seek(start)
        return self._file.read(size)

    def fill(self, start: int, array: Any) -> None:
        self._file.seek(start)
        if self._file.readinto(memoryview(array).cast("B")) != array.nbytes:
            raise self.wrong("it ends within a tensor")


def _read(step: Step, file: _File, index: int, number: int, rank: int) -> Any:
    (count,) = _UINT64.unpack(file.read(0, _UINT64.size))
    if not 0 <= index < count:
        raise errors.InvalidArgument(f"the index is {index}, and the file has {count} tensors")
    (start,) = _UINT64.unpack(file.read((1 + index) * _UINT64.size, _UINT64.size))
    found_rank, found_number, layout = _HEADER.unpack(file.read(start, _HEADER.size))
    if found_number >= len(NAMES) or layout != DENSE:
        raise file.wrong(f"tensor {index} has element type {found_number} and layout {layout}")
    if (found_rank, found_number) != (rank, number):
        raise errors.InvalidArgument(f"tensor {index} has element type {NAMES[found_number]} and rank {found_rank}, "
                                     f"expected {NAMES[number]} and {rank}")
    at = start + _HEADER.size
    shape = struct.unpack(f"<{rank}Q", file.read(at, rank * _UINT64.size))
    at += rank * _UINT64.size
    if prod(shape) * ELEMENTS[NAMES[number]].itemsize > file.size - at:  # before memory is taken
        raise file.wrong(f"tensor {index} has shape {list_text(shape)}, and {file.size - at} bytes are left")
    array = allocate_tensor(step, NAMES[number], shape)
    if array.size:
        file.fill(at, array)
    return array
