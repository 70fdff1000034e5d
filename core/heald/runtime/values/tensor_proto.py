"""Tensors in a file. Type and shape of a TensorProto are read at once, its elements when they are asked for.

The elements are either in `tensor_content` or in the list field of their type. For a large tensor both stay views of
the file. A list may be shorter than the tensor: its last value fills the rest, and an empty list stands for zeros.

A weight is kept once. A pass that multiplies it keeps the factors beside it (`TensorValue.scaled`), until a kernel
packs the product.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...errors import DataLoss, InvalidArgument, ResourceExhausted, Unimplemented
from ..support.available_memory import ask_system
from ..support.mapped_file import MappedFile, file_behind, lasting_bytes
from ..support.records import NamedTuple
from . import dtypes, wire
from .dtypes import DType
from .tensor import LARGEST_ELEMENT_COUNT, MOST_DIMS, Shape, shape_text
from .wire import Buffer

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_LARGEST_TENSOR_BYTES = 2**48  # beyond any machine's address space
_LARGEST_NUMPY_RANK = 64
_FILLED_ON_REQUEST_BYTES = 1 << 20  # bytes; a filled tensor beyond this size is computed only on request
_POINTER = 8  # bytes of an array's element that is a Python object
_HASHED = 512  # the hash reads up to so many bytes, of tensors of up to so many elements
_DTYPE, _SHAPE, _CONTENT = 1, 2, 4  # fields of TensorProto
_OVERLONG = re.compile(rb"[\x80-\xff]{9}[^\x00\x01]")
_HIGH = bytes(range(0x80, 0x100))


class _List(NamedTuple):
    """The list field of an element type. `width` is the bytes of an element: 0 for varints, -1 for a field per
    element."""

    number: int
    width: int


_FLOATS8 = (24, 25, 26, 27, 28, 33)  # float4_e2m1fn too
_LISTS = {n: _List(7, 0) for n in (3, 4, 5, 6, 11, 12, 13, 15, 16, 17, 29, 30, 31, 32)}
_LISTS |= {n: _List(18, 1) for n in _FLOATS8}
_LISTS |= {
    1: _List(5, 4), 2: _List(6, 8), 7: _List(8, -1), 8: _List(9, 4), 9: _List(10, 0), 10: _List(11, 0),
    14: _List(13, 0), 18: _List(12, 8), 19: _List(13, 0), 20: _List(14, -1), 21: _List(15, -1),
    22: _List(16, 0), 23: _List(17, 0),
}
_WIRE = {0: wire.VARINT, 4: wire.FIXED32, 8: wire.FIXED64}


LEAST_SIZE = -(2**63)  # of a dimension that a file can state


def read_shape(buf: Buffer, start: int, stop: int, *, smallest: int = -1) -> Shape:
    """The TensorShapeProto at [start, stop). Raises DataLoss for malformed bytes, InvalidArgument for a shape that no
    tensor can have.

    `smallest`: The least size of a dimension; sizes below -1 remain as they are.
    """
    dims: list[int | None] = []
    unknown = False
    for number, kind, at, end in wire.fields(buf, start, stop):
        if number == 2:
            wire.expect(kind, wire.BYTES, at, "a dimension")
            dims.append(_read_dim(buf, at, end, smallest))
        elif number == 3:
            wire.expect(kind, wire.VARINT, at, "unknown_rank")
            unknown = wire.integer(buf, at, end) != 0
    if unknown and dims:
        raise InvalidArgument(f"a shape of unknown rank lists {len(dims)} dimensions")
    if len(dims) > MOST_DIMS:
        raise InvalidArgument(f"a shape has {len(dims)} dimensions, the most is {MOST_DIMS}")
    if all(d is not None and d >= 0 for d in dims) and prod(d or 0 for d in dims) > LARGEST_ELEMENT_COUNT:
        raise InvalidArgument(f"shape {shape_text(tuple(dims))} overflows: it has more than 2**63 - 1 elements")
    return None if unknown else tuple(dims)


def _read_dim(buf: Buffer, start: int, stop: int, smallest: int) -> int | None:
    size = 0
    for number, kind, at, end in wire.fields(buf, start, stop):
        if number == 1:
            wire.expect(kind, wire.VARINT, at, "a dimension's size")
            size = buf[at] if end - at == 1 else wire.integer(buf, at, end)
    if size < smallest:
        raise InvalidArgument(f"{size} is not the size of a dimension (byte {start})")
    return None if size == -1 else size


def put_shape(shape: Shape) -> bytes:
    """The TensorShapeProto of a shape."""
    if shape is None:
        return wire.put_integer(3, 1)
    dims = (b"" if d == 0 else wire.put_integer(1, -1 if d is None else d) for d in shape)
    return b"".join(wire.put_bytes(2, dim) for dim in dims)


class TensorValue:
    """A constant tensor: `dtype`, `shape` (all dimensions known), and elements on demand. Immutable.

    Two values are equal when type, shape and written bytes are equal.
    """

    __slots__ = ("_array", "_content", "_listed", "_raw", "dtype", "file", "is_filled", "scaling", "shape")

    dtype: DType
    shape: tuple[int, ...]
    _raw: Buffer | None
    _content: Buffer | None
    _listed: Sequence[Buffer]
    _array: Array | None
    file: MappedFile | None  # the file of the elements, unless they have memory of their own
    scaling: tuple[TensorValue, Array] | None  # a value and factors; the elements are their product
    is_filled: bool  # the last listed element fills a large rest: a small file stands for a large array

    def __init__(self, array: Array) -> None:
        """Make a value of an array, which is copied unless it is read-only. Raises InvalidArgument for an array whose
        type has no counterpart."""
        import numpy as np

        self.dtype = dtypes.of_numpy(array.dtype)
        self.shape = array.shape
        if self.dtype is dtypes.string:
            array = _bytes_array(array)
        elif array.flags.writeable or array.dtype != self.dtype.numpy:
            array = np.array(array, self.dtype.numpy)
        array.flags.writeable = False
        self._raw, self._content, self._listed, self._array, self.scaling = None, None, (), array, None
        self.is_filled, self.file = False, file_behind(array)

    @classmethod
    def scaled(cls, value: TensorValue, factors: Array) -> TensorValue:
        """Return a value times factors of its type, which broadcast against it.

        The product is computed whenever the elements are read, and is not kept. A caller that copies the elements into
        another memory layout can read value and factors from `scaling` and multiply while it copies.
        """
        self = cls.__new__(cls)
        self.dtype, self.shape, self.scaling = value.dtype, value.shape, (value, factors)
        self._raw, self._content, self._listed, self._array, self.file = None, None, (), None, value.file
        self.is_filled = False
        return self

    @classmethod
    def read(cls, buf: Buffer, start: int, stop: int, known_shapes: dict[bytes, Shape] | None = None) -> TensorValue:
        """The TensorProto at [start, stop), checked without allocating memory for its elements. `known_shapes` has
        shapes that were read before, by their bytes.

        Raises DataLoss for malformed bytes, InvalidArgument when type, shape and number of elements contradict.
        """
        self = cls.__new__(cls)
        number, content, raw = 0, None, lasting_bytes(buf, start, stop)
        shapes, lists = [], []
        for field, kind, at, end in wire.fields(buf, start, stop):
            if field == _DTYPE:
                wire.expect(kind, wire.VARINT, at, "dtype")
                number = wire.integer(buf, at, end)
            elif field == _SHAPE:
                wire.expect(kind, wire.BYTES, at, "tensor_shape")
                shapes.append((at, end))
            elif field == _CONTENT:
                wire.expect(kind, wire.BYTES, at, "tensor_content")
                content = raw[at - start : end - start] if at < end else None
            else:
                lists.append((field, kind, at, end))
        self._raw, self._content, self._array, self._listed = raw, content, None, ()
        self.file = file_behind(raw) if type(raw) is memoryview else None
        self.scaling, self.is_filled = None, False
        self.dtype = dtype = dtypes.numbered(number)
        self.shape = _static_shape(buf, shapes, {} if known_shapes is None else known_shapes)
        size = prod(self.shape)
        if size * (dtype.itemsize or 1) > _LARGEST_TENSOR_BYTES:
            raise InvalidArgument(f"a tensor {self!r} is larger than any memory")
        if content is None:
            self._listed = _list_elements(raw, start, lists, _LISTS[dtype.number])
            if (listed_count := _count(self._listed, dtype)) > size:
                raise InvalidArgument(f"too many values: {listed_count} for a tensor {self!r}")
            self.is_filled = 1 < listed_count < size and size * (dtype.itemsize or _POINTER) > _FILLED_ON_REQUEST_BYTES
        elif not dtype.itemsize:
            _cut_strings(content, self)
        elif len(content) != size * dtype.itemsize:
            raise InvalidArgument(
                f"tensor_content has {len(content)} bytes, a tensor {self!r} needs {size * dtype.itemsize}"
            )
        return self

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements, rows packed; 0 for strings."""
        return self.size * self.dtype.itemsize

    @property
    def is_made(self) -> bool:
        """True when `array` computes the elements into memory of their own."""
        return self.scaling is not None or self.is_filled

    @property
    def raw(self) -> Buffer:
        """The bytes of the TensorProto. Raises FailedPrecondition when their file has changed."""
        if self.file is not None:
            self.file.check()
        if self._raw is None:
            self._raw = _encode(self.array(), self.dtype)
        return self._raw

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The elements for NumPy's functions. Without it `np.asarray` returns an object array of the value itself."""
        import numpy as np

        return np.array(self.array(), dtype, copy=copy)

    def array(self) -> Array:
        """The elements as a read-only array: a view of the file, or of one element where it fills the tensor. Strings
        are an object array of bytes.

        Raises Unimplemented for types without host arrays, ResourceExhausted when memory is short, FailedPrecondition
        when the file has changed.
        """
        if self.file is not None:
            self.file.check()
        if self._array is None:
            if len(self.shape) > _LARGEST_NUMPY_RANK:
                raise Unimplemented(f"{self!r}: NumPy arrays have at most {_LARGEST_NUMPY_RANK} dimensions")
            if self.dtype in (dtypes.resource, dtypes.variant):
                raise Unimplemented(f"{self!r} cannot be a constant: only a running graph makes its content")
            try:
                array = self._elements()
            except MemoryError:
                raise ResourceExhausted(f"no memory for a tensor {self!r}: {self.nbytes} bytes") from None
            array.flags.writeable = False
            if self.scaling is not None:
                return array
            self._array = array
        return self._array

    def _elements(self) -> Array:
        import numpy as np

        if self.scaling is not None:
            value, factors = self.scaling
            return np.multiply(value.array(), factors)
        return self._from_content() if self._content is not None else self._from_list()

    def _from_content(self) -> Array:
        import numpy as np

        assert self._content is not None
        if self.dtype is dtypes.string:
            return _objects(_cut_strings(self._content, self)).reshape(self.shape)
        if self.dtype is dtypes.bool_:
            flags: Array = np.frombuffer(self._content, np.uint8) != 0
            return flags.reshape(self.shape)
        return np.frombuffer(self._content, self.dtype.numpy.newbyteorder("<")).reshape(self.shape)

    def _from_list(self) -> Array:
        import numpy as np

        dtype, size = self.dtype.numpy, self.size
        values = _list_values(self._listed, self.dtype)
        if not len(values):
            values = _objects([b""]) if self.dtype is dtypes.string else np.zeros(1, dtype)
        if len(values) == size:
            return values.reshape(self.shape)
        if len(values) == 1 or size == 0:
            return np.broadcast_to(values[:1].reshape(()), self.shape)  # not values[0]: for strings that is no array
        if self.is_filled:
            ask_system(size * dtype.itemsize, f"a tensor {self!r}")
        filled = np.empty(size, dtype)
        filled[: len(values)] = values
        filled[len(values) :] = values[-1]
        return filled.reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorValue):
            return NotImplemented
        same = self.dtype is other.dtype and self.shape == other.shape
        return self is other or (same and self.raw == other.raw)

    def __hash__(self) -> int:
        """Hash type, shape and, for small tensors, the bytes: a graph may have many tensors that differ in nothing
        else."""
        written = bytes(self.raw[:_HASHED]) if self.size <= _HASHED else b""
        return hash((self.dtype.number, self.shape, written))

    def __repr__(self) -> str:
        return f"{self.dtype.name}{shape_text(self.shape)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (bytes(self.raw),)


def _restore(raw: bytes) -> TensorValue:
    return TensorValue.read(raw, 0, len(raw))


def _static_shape(buf: Buffer, spans: list[tuple[int, int]], known_shapes: dict[bytes, Shape]) -> tuple[int, ...]:
    raw = bytes(buf[slice(*spans[0])]) if len(spans) == 1 else b"".join([buf[at:end] for at, end in spans])
    shape = known_shapes.get(raw)
    if shape is None:
        shape = read_shape(buf, *spans[0]) if len(spans) == 1 else read_shape(raw, 0, len(raw))
        if shape is None or None in shape:
            raise InvalidArgument(f"a constant's shape must be known, got {shape_text(shape)}")
        known_shapes[raw] = shape
    return shape  # type: ignore[return-value]


def _list_elements(
    raw: Buffer, start: int, element_fields: list[tuple[int, int, int, int]], where: _List
) -> Sequence[Buffer]:
    """The bytes of the elements. Packed and single elements differ only in the framing, which is left out.

    `raw` is the message at byte `start` of its file. `element_fields` and errors have offsets in the file.
    """
    parts = []
    for number, kind, at, end in element_fields:
        if number == where.number:
            if kind != wire.BYTES:
                wire.expect(kind, _WIRE.get(where.width, wire.BYTES), at, "a list of elements")
            parts.append(raw[at - start : end - start])
            if where.width == 0 and at < end and (parts[-1][-1] >= 0x80 or _OVERLONG.search(parts[-1])):
                raise DataLoss(f"a varint among the elements at byte {at} is malformed")
    return parts if where.width < 0 or len(parts) < 2 else [b"".join(parts)]


def _count(listed: Sequence[Buffer], dtype: DType) -> int:
    """The number of listed elements. Raises InvalidArgument when the bytes end within an element."""
    width = _LISTS[dtype.number].width
    if width < 0 or not listed:
        return len(listed)
    if width == 0:
        return len(bytes(listed[0]).translate(None, _HIGH))
    count, excess_bytes = divmod(len(listed[0]), width * (2 if dtype.kind == "c" else 1))
    if excess_bytes:
        raise InvalidArgument(
            f"a TensorProto of dtype {dtype.name} holds {len(listed[0])} bytes of elements, expected a multiple of "
            f"{width * (2 if dtype.kind == 'c' else 1)}", hint="the file is truncated, or its dtype is wrong")
    return count


def _list_values(listed: Sequence[Buffer], dtype: DType) -> Array:
    import numpy as np

    if dtype is dtypes.string:
        return _objects([bytes(item) for item in listed])
    width, data = _LISTS[dtype.number].width, listed[0] if listed else b""
    if width:
        return np.frombuffer(data, dtype.numpy.newbyteorder("<"))
    values = _varints(data)
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return values.astype(np.uint16).view(dtype.numpy)
    return values.astype(dtype.numpy)


def _varints(data: Buffer) -> Array:
    """The signed values of consecutive varints, as int64."""
    import numpy as np

    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    lengths = ends - starts + 1
    values = np.zeros(len(ends), np.uint64)
    for k in range(int(lengths.max(initial=0))):
        longer = lengths > k
        values[longer] |= (raw[starts[longer] + k] & 0x7F).astype(np.uint64) << np.uint64(7 * k)
    return values.view(np.int64)


def _cut_strings(content: Buffer, value: TensorValue) -> list[bytes]:
    """The strings, or messages of handles, in tensor_content: the lengths of all as varints, then their bytes.

    Raises InvalidArgument when lengths and bytes contradict.
    """
    if value.dtype.itemsize or value.size > len(content):
        raise InvalidArgument(f"tensor_content of {len(content)} bytes cannot hold a tensor {value!r}")
    at, lengths = 0, []
    for _ in range(value.size):
        length, at = wire.varint(content, at, len(content))
        lengths.append(length)
    total_bytes = at + sum(lengths)
    if total_bytes != len(content):
        raise InvalidArgument(f"tensor_content has {len(content)} bytes, its strings take {total_bytes}")
    strings = []
    for length in lengths:
        strings.append(bytes(content[at : at + length]))
        at += length
    return strings


def _objects(items: list[bytes]) -> Array:
    import numpy as np

    array = np.empty(len(items), object)
    array[:] = items
    return array


def _bytes_array(array: Array) -> Array:
    """A new object array of bytes, made from one of text or bytes. Raises InvalidArgument for any other element."""
    items = [wire.utf8(item) if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    for item in items:
        if not isinstance(item, bytes):
            raise InvalidArgument(f"{type(item).__name__} among the elements of a string tensor")
    return _objects(items).reshape(array.shape)


def _encode(array: Array, dtype: DType) -> bytes:
    parts = [wire.put_integer(_DTYPE, dtype.number), wire.put_bytes(_SHAPE, put_shape(array.shape))]
    if dtype is dtypes.string:
        parts += [wire.put_bytes(_LISTS[dtype.number].number, item) for item in array.reshape(-1)]
    elif array.size:
        content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        parts.append(wire.put_bytes(_CONTENT, content))
    return b"".join(parts)
