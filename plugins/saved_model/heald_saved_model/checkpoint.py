"""Checkpoints in TensorFlow's tensor-bundle format: an index, which is a table, and shards of the tensors' bytes.

The index maps a tensor's name to its type, shape, and place in a shard. A tensor written in slices has no bytes of its
own: each slice has an entry, whose key is the name and the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heald.api import DType, dtypes, shape_text, wire
from heald.errors import DataLoss, HealdError, InvalidArgument, Location, NotFound, Unimplemented, did_you_mean
from heald.graphs.protobuf import parse_message
from heald.runtime.support import file_kinds, input_file, mapped_file
from heald.runtime.values import Buffer

from .crc32c import masked_crc32c
from .sstable import entries
from .tensor_slice import Slice, parse_shape_and_slice, slice_key

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_VERSION = 1  # the only version of the format
_LARGEST_RANK = 64  # NumPy's limit
_LARGEST_ELEMENTS = 2**58  # NumPy's limit for arrays of any type; zero dimensions are left out of the product
_LONG_STRING_BYTES = 2**32  # the checksum takes string lengths below it as four bytes, others as eight


class Entry(NamedTuple):
    """The index's entry of a tensor, or of a slice of one."""

    dtype: DType
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    slices: tuple[Slice, ...]

    def __str__(self) -> str:
        return f"{self.dtype.name}{shape_text(self.shape)}"


class Checkpoint:
    """Tensors by name, read on demand; large ones of numbers are views of their shard.

    `open_shard(n, count)` returns the bytes of one of `count` shards. Errors name its file, which begins with `prefix`.
    A tensor is read once. Raises DataLoss for an invalid index, Unimplemented for a newer version of the format.
    """

    def __init__(self, index: Buffer, open_shard: Callable[[int, int], Buffer], prefix: str = "checkpoint") -> None:
        self._entries = dict(entries(index))
        header: Any = parse_message("BundleHeaderProto", self._entries.pop(b"", b""))
        if header.num_shards < 1:
            raise DataLoss("this table is no checkpoint's index: it says nothing of shards")
        if header.version.min_consumer > _VERSION:
            raise Unimplemented(f"this checkpoint is of version {header.version.min_consumer}, heald reads {_VERSION}")
        self._count = header.num_shards
        self._order: Literal["<", ">"] = ">" if header.endianness else "<"
        self._open_shard = open_shard
        self._prefix = prefix
        self._shards: dict[int, Buffer] = {}
        self._spare: dict[int, int] = {}  # by shard, its bytes less the sizes of the entries read so far
        self._keys_read: set[bytes] = set()  # keys of the entries read so far
        self._parsed: dict[bytes, Entry] = {}
        self._arrays: dict[str, Array] = {}

    @property
    def names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return [str(key, "utf-8", "replace") for key in self._entries if not key.startswith(b"\0")]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and wire.utf8(name) in self._entries

    def entry(self, name: str) -> Entry:
        """Raises NotFound with the nearest names, DataLoss for an impossible entry."""
        return self._entry(wire.utf8(name), name)

    def read(self, name: str, shape_and_slice: str = "") -> Array:
        """Read the tensor called `name`, read-only: the whole tensor, or the slice that
        `shape_and_slice` names, such as "4 3 0,2:-".

        Raises NotFound, DataLoss for missing or changed bytes, InvalidArgument for a slice that the tensor does not
        have, Unimplemented for types without host arrays.
        """
        entry = self.entry(name)
        region = (_region_of(shape_and_slice, name, entry) if shape_and_slice
                  else tuple(slice(0, dim) for dim in entry.shape))
        if entry.slices and shape_and_slice:
            return self._join_slices(name, entry, region, shape_and_slice)
        if name not in self._arrays:
            array = (self._join_slices(name, entry, region, "") if entry.slices
                     else self._array(name, wire.utf8(name), entry))
            array.flags.writeable = False
            self._arrays[name] = array
        array = self._arrays[name]
        return array[region] if shape_and_slice else array

    def _entry(self, key: bytes, name: str) -> Entry:
        if key not in self._parsed:
            self._parsed[key] = self._parse(key, name)
        return self._parsed[key]

    def _parse(self, key: bytes, name: str) -> Entry:
        raw = self._entries.get(key)
        if raw is None:
            raise NotFound(f"the checkpoint has no tensor '{name}'", hint=did_you_mean(name, self.names))
        proto: Any = parse_message("BundleEntryProto", raw)
        shape = tuple(dim.size for dim in proto.shape.dim)
        cannot_be = (proto.shape.unknown_rank or min((*shape, proto.offset, proto.size)) < 0
                     or len(shape) > _LARGEST_RANK or prod(dim or 1 for dim in shape) >= _LARGEST_ELEMENTS)
        if cannot_be:
            raise DataLoss(f"the entry of tensor '{name}' has a shape or a place that cannot be")
        slices = tuple(tuple((e.start, e.length if e.HasField("length") else None) for e in s.extent)
                       for s in proto.slices)
        dtype = dtypes.numbered(proto.dtype)
        return Entry(dtype, shape, proto.shard_id, proto.offset, proto.size, proto.crc32c, slices)

    def _array(self, name: str, key: bytes, entry: Entry) -> Array:
        try:
            return _array(self._bytes(name, key, entry), name, entry, self._order)
        except HealdError as error:
            file = f"{self._prefix}.{shard_name(entry.shard, self._count)}"
            raise error.at(location=Location(file)) from error.__cause__

    def _bytes(self, name: str, key: bytes, entry: Entry) -> Buffer:
        if not 0 <= entry.shard < self._count:
            raise DataLoss(f"tensor '{name}' is in shard {entry.shard} of {self._count}")
        if entry.shard not in self._shards:
            shard = self._open_shard(entry.shard, self._count)
            self._shards[entry.shard], self._spare[entry.shard] = shard, len(shard)
        shard = self._shards[entry.shard]
        mapped_file.check_unchanged((shard,))
        end = entry.offset + entry.size
        if end > len(shard):
            raise DataLoss(f"tensor '{name}' ends at byte {end} of its shard, which has {len(shard)}")
        if key not in self._keys_read:
            if entry.size > self._spare[entry.shard]:  # entries that share bytes could multiply memory without a bound
                raise DataLoss(f"tensor '{name}' shares its bytes with other tensors: together they are larger than "
                               "their shard")
            self._keys_read.add(key)
            self._spare[entry.shard] -= entry.size
        return mapped_file.lasting_bytes(shard, entry.offset, end)

    def _join_slices(self, name: str, entry: Entry, region: tuple[slice, ...], text: str) -> Array:
        """Assemble a region of a tensor from slices, which do not overlap. Allocate after the check of sizes.

        Raises InvalidArgument for a region that the slices do not fill; `text` is its specification.
        """
        import numpy as np

        shape = tuple(part.stop - part.start for part in region)
        parts, size = [], 0
        for part_slice in entry.slices:
            indices = _indices(part_slice, name, entry)
            common = [slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(indices, region, strict=True)]
            if any(part.start >= part.stop for part in common):
                continue
            key = slice_key(name, part_slice)
            array = self._array(name, key, self._entry(key, name))
            if array.shape != tuple(i.stop - i.start for i in indices) or array.dtype != entry.dtype.numpy:
                raise DataLoss(f"a slice of tensor '{name}' is not what the index says")
            size += prod(part.stop - part.start for part in common)
            parts.append((_indices_within(common, region), array[_indices_within(common, indices)]))
        if size < prod(shape):
            raise InvalidArgument(f"Does not have sufficient slices for partitioned tensor {name} to restore in "
                                  f"slice_spec: {text or 'the whole tensor'}",
                                  hint=f"its slices have {size} of {prod(shape)} elements: merge all its checkpoints")
        array_of_region, filled = np.zeros(shape, entry.dtype.numpy), np.zeros(shape, np.bool_)
        for indices, array in parts:
            if filled[indices].any():
                raise DataLoss(f"the slices of tensor '{name}' overlap")
            array_of_region[indices], filled[indices] = array, True
        return array_of_region


def _indices_within(region: Sequence[slice], origin: Sequence[slice]) -> tuple[slice, ...]:
    """Return the indices of a region within the region `origin`."""
    return tuple(slice(r.start - o.start, r.stop - o.start) for r, o in zip(region, origin, strict=True))


def shard_name(number: int, count: int) -> str:
    """Return the end of the name of a shard's file."""
    return f"data-{number:05}-of-{count:05}"


def file_contents(file: Path, *, mapped: bool = True) -> Buffer:
    """Return the bytes of a file of a checkpoint; none for a shard of tensors without elements.

    Raises NotFound, PermissionDenied, InvalidArgument for a folder, pipe or device.
    """
    with input_file.reading(file):
        if file.is_file() and not file.stat().st_size:
            return b""
        input_file.check_file(file)
        view = mapped_file.contents(file, mapped=mapped)
        file_kinds.check_download(bytes(view[: file_kinds.HEAD_BYTES]), "a file of a checkpoint")
        return view


def _array(data: Buffer, name: str, entry: Entry, order: Literal["<", ">"]) -> Array:
    import numpy as np

    dtype = entry.dtype.numpy
    if entry.dtype is dtypes.string:
        return _strings(data, name, entry)
    if not entry.dtype.itemsize:
        raise DataLoss(f"tensor '{name}' is {entry}, whose elements no checkpoint has")
    if len(data) != prod(entry.shape) * entry.dtype.itemsize:
        raise DataLoss(f"tensor '{name}' is {entry}, which {len(data)} bytes are not")
    if masked_crc32c(data) != entry.crc:
        raise _checksum_error(name)
    if entry.dtype is dtypes.bool_:
        flags: Array = np.frombuffer(data, np.uint8) != 0
        return flags.reshape(entry.shape)
    array = np.frombuffer(data, dtype.newbyteorder(order)).reshape(entry.shape)
    return array if order == "<" else array.astype(dtype)


def _checksum_error(name: str) -> DataLoss:
    return DataLoss(f"tensor '{name}' does not have the checksum that was written with it")


def _strings(data: Buffer, name: str, entry: Entry) -> Array:
    """Read strings: all lengths as varints, a checksum of the lengths, the bytes of all strings."""
    import numpy as np

    size = prod(entry.shape)
    if size > len(data):
        raise DataLoss(f"tensor '{name}' is {entry}, which {len(data)} bytes are not")
    lengths, at = [], 0
    for _ in range(size):
        length, at = wire.varint(data, at, len(data))
        lengths.append(length)
    if at + 4 + sum(lengths) != len(data):
        raise DataLoss(f"the strings of tensor '{name}' do not fill its {len(data)} bytes")
    lengths_bytes = b"".join(n.to_bytes(4 if n < _LONG_STRING_BYTES else 8, "little") for n in lengths)
    if masked_crc32c(lengths_bytes) != int.from_bytes(data[at : at + 4], "little"):
        raise _checksum_error(name)
    if masked_crc32c(lengths_bytes + bytes(data[at:])) != entry.crc:
        raise _checksum_error(name)
    array = np.empty(size, object)
    array[:] = list(_cut(data, at + 4, lengths))
    return array.reshape(entry.shape)


def _cut(data: Buffer, at: int, lengths: Sequence[int]) -> Iterator[bytes]:
    for length in lengths:
        yield bytes(data[at : at + length])
        at += length


def _indices(part_slice: Slice, name: str, entry: Entry) -> tuple[slice, ...]:
    if len(part_slice) != len(entry.shape):
        raise DataLoss(f"a slice of tensor '{name}' has {len(part_slice)} dimensions, the tensor has "
                       f"{len(entry.shape)}")
    ends = [(start, dim if length is None else start + length)
            for (start, length), dim in zip(part_slice, entry.shape, strict=True)]
    if any(not 0 <= start <= end <= dim for (start, end), dim in zip(ends, entry.shape, strict=True)):
        raise DataLoss(f"a slice of tensor '{name}' is beyond {entry}")
    return tuple(slice(start, end) for start, end in ends)


def _region_of(text: str, name: str, entry: Entry) -> tuple[slice, ...]:
    """Return the indices of the slice in "4 3 0,2:-", which follows the shape of the whole tensor."""
    shape, part_slice = parse_shape_and_slice(text)
    if shape != entry.shape:
        raise InvalidArgument(f"tensor_name = {name}; shape in shape_and_slice spec {shape_text(shape)} does not match "
                              f"the shape stored in checkpoint: {shape_text(entry.shape)}")
    return _indices(part_slice, name, entry)
