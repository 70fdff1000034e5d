"""Arrays: a table of element types and shapes, and a section of elements, which stay views of the file.

Elements of a page or more begin at a page, others at 64 bytes. An array whose elements are all one element of memory
(a splat) is stored as this element. Strings are 64-bit ends of all strings, and then the strings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ....errors import DataLoss, InvalidArgument, ResourceExhausted
from ...support.mapped_file import file_behind, lasting_bytes
from ...support.records import NamedTuple
from ...values import dtypes
from ...values.dtypes import DType
from ..compiled_model import StrippedConstant
from .sections import PADDING
from .vbr import NAME_ERRORS, SectionReader, put_vbr

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

T = TypeVar("T")
PAGE = 4096
_LINE_BYTES = 64
LARGEST_NUMPY_RANK = 64  # of NumPy's arrays
_LARGEST_ARRAY_BYTES = 2**63 - 1  # of NumPy's arrays, splats too
_STRING_END_BYTES = 8  # bytes of the end of a string
SPLAT, STRIPPED = 1, 2
_UNSTORABLE_DTYPES = (dtypes.resource, dtypes.variant)  # only a running program makes their content


class ArrayRecord(NamedTuple):
    """A row of the table. `offset`, `size`: the bytes of the elements in the section.

    `flag`: SPLAT when one element fills the array, STRIPPED for a constant without elements, else 0.
    """

    dtype: DType
    shape: tuple[int, ...]
    flag: int
    offset: int
    size: int


def elements(value: Any, what: str) -> Array:
    """The elements of an array or TensorValue as an array; strings are objects of bytes.

    Raises InvalidArgument for another object, and for elements that a file cannot hold.
    """
    import numpy as np

    array_of = getattr(value, "array", None)
    array = array_of() if callable(array_of) else value
    if not isinstance(array, np.ndarray | np.generic):
        raise InvalidArgument(f"{what} is a {type(value).__name__}, which a BEF file cannot hold",
                              hint="give an array or a TensorValue")
    array = np.asarray(array)
    dtype = dtypes.of_numpy(array.dtype)
    if dtype in _UNSTORABLE_DTYPES:
        raise InvalidArgument(f"{what} has elements of type {dtype.name}, which a BEF file cannot hold")
    return array


class ArrayWriter:
    """Arrays in the order in which they were added."""

    def __init__(self) -> None:
        self._arrays: list[Array | StrippedConstant] = []
        self._indices: dict[int, int] = {}  # id of an array -> its index; `_arrays` keeps the ids unique

    def add(self, value: Any, what: str) -> int:
        """Add an array or a StrippedConstant and return its index. Raises InvalidArgument as `elements`."""
        array = value if isinstance(value, StrippedConstant) else elements(value, what)
        self._arrays.append(array)
        return self._indices.setdefault(id(array), len(self._arrays) - 1)

    def add_shared(self, value: Any, what: str) -> int:
        """Return the index of an array, which is added unless the same object is there. Raises as `elements`."""
        array = elements(value, what)
        index = self._indices.get(id(array))
        return self.add(array, what) if index is None else index

    def layout(self, base: Callable[[int], int]) -> tuple[list[Any], bytes]:
        """The pieces of the section, and the table. `base(size)` is where in the file a section of this size begins; it
        is a multiple of 64, and depends on the size only by the length of the header."""
        stored = [_stored_form(array) for array in self._arrays]
        size, start = 0, -1
        while start != base(size):  # the pages' padding depends on the start, and the start on the size
            start = base(size)
            offsets = []
            size = 0
            for _, _, raw in stored:
                alignment = PAGE if raw.nbytes >= PAGE else _LINE_BYTES
                size += -(start + size) % alignment
                offsets.append(size)
                size += raw.nbytes
        chunks: list[Any] = []
        table = [put_vbr(len(stored))]
        at = 0
        for array, (dtype, flag, raw), offset in zip(self._arrays, stored, offsets, strict=True):
            chunks += [PADDING * (offset - at), raw]
            at = offset + raw.nbytes
            table += map(put_vbr, (dtype.number, flag, len(array.shape), *array.shape, offset, raw.nbytes))
        return chunks, b"".join(table)


def _stored_form(array: Array | StrippedConstant) -> tuple[DType, int, memoryview]:
    """The element type, the flag, and the bytes to be stored."""
    import numpy as np

    if isinstance(array, StrippedConstant):
        return array.dtype, STRIPPED, memoryview(b"")
    dtype = dtypes.of_numpy(array.dtype)
    splat = array.size > 1 and all(not stride for n, stride in zip(array.shape, array.strides, strict=True) if n > 1)
    if splat:
        array = array[tuple(slice(1) for _ in array.shape)]
    if dtype is dtypes.string:
        return dtype, SPLAT * splat, memoryview(_joined_strings(array))
    array = np.ascontiguousarray(array.astype(dtype.numpy, copy=False))
    if sys.byteorder == "big":
        array = array.byteswap()
    return dtype, SPLAT * splat, array.reshape(-1).view(np.uint8).data


def _joined_strings(array: Array) -> bytes:
    import numpy as np

    texts = [text.encode("utf-8", NAME_ERRORS) if isinstance(text, str) else text
             for text in array.reshape(-1).tolist()]
    for text in texts:
        if not isinstance(text, bytes):
            raise InvalidArgument(f"an array of strings has an element of class {type(text).__name__}",
                                  hint="elements are bytes or str")
    ends = np.cumsum([len(text) for text in texts], dtype=np.uint64).astype("<u8")
    return ends.tobytes() + b"".join(texts)


class LazySequence(Sequence[T], Generic[T]):
    """A sequence whose items are made when they are first asked for, and kept."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count = count
        self._make = make
        self._made: dict[int, T] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._count)))
        if not -self._count <= index < self._count:
            raise IndexError(index)
        index %= self._count
        if index not in self._made:
            return self._made.setdefault(index, self._make(index))
        return self._made[index]

    def __iter__(self) -> Iterator[T]:
        return (self[index] for index in range(self._count))

    def __repr__(self) -> str:
        return f"<{self._count} items>"


class Arrays:
    """The arrays of a file. Each becomes a read-only array when it is first asked for."""

    def __init__(self, view: memoryview, start: int, stop: int, table: SectionReader) -> None:
        """Read the table. Raises DataLoss for an entry that NumPy cannot hold or that passes the section's end."""
        self._view = view[start:stop]
        self._entries: list[ArrayRecord] = []
        for _ in range(table.count(least=5)):
            self._entries.append(entry := _read_entry(table, stop - start))
            if len(self._entries) > 1 and entry.offset < sum(self._entries[-2][-2:]):
                raise table.wrong(f"array {len(self._entries) - 1} begins before the one before ends")
        self._made: LazySequence[Any] = LazySequence(len(self._entries), self._make)
        self._file = file_behind(view)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Any:
        """Raises FailedPrecondition when the file has changed, DataLoss for malformed strings and stripped arrays."""
        if self._entries[index].flag == STRIPPED:
            raise DataLoss(f"array {index} has no elements, and is used as more than a constant", hint="write it again")
        return self._made[index]

    def constant(self, index: int) -> Any:
        """Return an array, or a StrippedConstant. Raises as `__getitem__`."""
        return self._made[index]

    def _make(self, index: int) -> Any:
        import numpy as np

        entry = self._entries[index]
        if self._file is not None:
            self._file.check()
        if entry.flag == STRIPPED:
            return StrippedConstant(entry.dtype, entry.shape)
        splat = entry.flag == SPLAT
        shape = tuple(map(min, entry.shape, (1,) * len(entry.shape))) if splat else entry.shape
        raw = lasting_bytes(self._view, entry.offset, entry.offset + entry.size)
        if entry.dtype is dtypes.string:
            array = _split_strings(raw, prod(shape), index).reshape(shape)
        elif not entry.size:
            array = np.zeros(shape, entry.dtype.numpy)
        else:
            array = np.frombuffer(raw, np.uint8).view(entry.dtype.numpy).reshape(shape)
            if sys.byteorder == "big":
                array = array.byteswap()
        array.flags.writeable = False
        return np.broadcast_to(array, entry.shape) if splat else array


def _read_entry(table: SectionReader, room: int) -> ArrayRecord:
    number, flag = table.vbr(), table.vbr()
    dtype = read_dtype(table, number)
    if flag > STRIPPED or dtype in _UNSTORABLE_DTYPES:
        raise table.wrong(f"no array of type {dtype.name} can have this flag: {flag}")
    shape = tuple(table.vbr() for _ in range(table.count()))
    offset, size = table.vbr(), table.vbr()
    width = dtype.itemsize or _STRING_END_BYTES
    if len(shape) > LARGEST_NUMPY_RANK or prod(dim or 1 for dim in shape) * width > _LARGEST_ARRAY_BYTES:
        raise table.wrong(f"no array can have the shape {list(shape)[:LARGEST_NUMPY_RANK]}")
    count = prod(shape)
    if flag == SPLAT and count < 2:
        raise table.wrong(f"an array of {count} elements is a splat")
    least = {SPLAT: 1, STRIPPED: 0}.get(flag, count) * width
    is_open = dtype is dtypes.string and flag != STRIPPED
    if offset + size > room or (size < least if is_open else size != least):
        raise table.wrong(f"{size} bytes at {offset} are given for {dtype.name}{list(shape)}; its section has {room}")
    return ArrayRecord(dtype, shape, flag, offset, size)


def read_dtype(cursor: SectionReader, number: int) -> DType:
    """The element type of this number. Raises DataLoss for an unknown one."""
    try:
        if number >= dtypes.REF:
            raise InvalidArgument(f"{number} is the number of a reference type")
        return dtypes.numbered(number)
    except InvalidArgument as error:
        raise cursor.wrong(error.message) from None


def _split_strings(raw: Any, count: int, index: int) -> Any:
    """The strings of an array as objects. Raises DataLoss for ends that do not grow or pass the bytes."""
    import numpy as np

    ends = np.frombuffer(raw, "<u8", count).tolist()
    data = bytes(raw[count * _STRING_END_BYTES :])
    begins = [0, *ends[:-1]]
    if any(begin > end for begin, end in zip(begins, ends, strict=False)) or (ends[-1] if ends else 0) != len(data):
        raise SectionReader(data, "Arrays").wrong(f"the ends of the strings of array {index} contradict its size")
    try:
        strings = np.empty(count, object)
    except MemoryError:
        raise ResourceExhausted(f"no memory for {count} strings") from None
    strings[:] = [data[begin:end] for begin, end in zip(begins, ends, strict=False)]
    return strings
