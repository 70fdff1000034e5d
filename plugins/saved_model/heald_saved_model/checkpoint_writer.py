"""A writer of checkpoints in TensorFlow's tensor-bundle format; `checkpoint` reads them and has the format.

A checkpoint has one commit point: its index gets its name. The names of shards have their count, and a new checkpoint
takes another count than the one that it replaces. Both have their shards until the index is replaced. Then the old
shards are removed, and those of killed writers with them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.api import dtypes, wire
from heald.errors import DataLoss, HealdError, InvalidArgument
from heald.graphs.protobuf import message_class, parse_message
from heald.runtime.support import input_file, mapped_file, whole_file
from heald.runtime.values import Buffer

from .checkpoint import shard_name
from .crc32c import masked_crc32c
from .sstable import entries
from .sstable_writer import table
from .tensor_slice import ShapeAndSlice, slice_key

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_LONG_STRING_BYTES = 2**32  # the checksum takes string lengths below it as four bytes, others as eight


class TensorToSave(NamedTuple):
    """A tensor, or with `part` a slice of the tensor called `name`."""

    name: str
    array: Array
    part: ShapeAndSlice | None = None


def write_checkpoint(prefix: str | os.PathLike[str], tensors: Mapping[str, Any] | Iterable[TensorToSave]) -> None:
    """Write `prefix`.index and `prefix`.data-00000-of-00001 with these tensors, by name or with slices.

    Arrays in C order are written without a copy. An existing checkpoint of that prefix is replaced. If it has one
    shard, the new one has two, the second of them empty. After a kill at any moment, the old or the new checkpoint is
    whole.

    Raises InvalidArgument for a second tensor of a name and for elements that no checkpoint holds; NotFound,
    PermissionDenied, ResourceExhausted or Unknown when a file cannot be written.
    """
    import numpy as np

    if isinstance(tensors, Mapping):
        tensors = [TensorToSave(name, np.asarray(value)) for name, value in tensors.items()]
    index = _Index()
    _make_parent(prefix)
    shards = _shards(prefix, _unused_shard_count(prefix, 1))
    with whole_file.writing_files(shards[0].parent) as files:
        with files.create(shards[0].name) as file:
            offset = 0
            for tensor in tensors:
                chunks = _chunks(tensor)
                file.writelines(chunks)
                size = sum(map(len, chunks))
                index.add(tensor, offset, size, _checksum(tensor, chunks))
                offset += size
        _create_empty(files, shards[1:])
    _commit(prefix, index, shards)


def merge_checkpoints(
    prefixes: Sequence[str | os.PathLike[str]], destination: str | os.PathLike[str], *, allow_missing: bool = False
) -> None:
    """Make one checkpoint of several, without a copy where the file system has links. The files of the parts are
    removed once it is complete.

    Slices of one tensor may be in several of them. `allow_missing` leaves out prefixes without an index.

    Raises InvalidArgument for a missing checkpoint or a tensor that two of them have, DataLoss for a damaged index, and
    the errors of `write_checkpoint` for files that cannot be written.
    """
    index, parts, indices = _Index(), list[Path](), list[Path]()
    for prefix in prefixes:
        file = _index_file(prefix)
        if not file.exists() and allow_missing:
            continue
        if not file.exists():
            raise InvalidArgument(f"allow_missing_files was set to false and {prefix} did not exist.",
                                  hint="save this part first, or set allow_missing_files")
        if file in indices:
            continue
        with input_file.reading(file):
            count = index.merge(mapped_file.read(file), str(prefix), len(parts))
        parts += _shards(prefix, count)
        indices.append(file)
    _make_parent(destination)
    shards = _shards(destination, _unused_shard_count(destination, len(parts)))
    whole_file.add_names(dict(zip(parts, shards, strict=False)))
    with whole_file.writing_files(shards[0].parent) as files:
        _create_empty(files, shards[len(parts):])
    _commit(destination, index, shards)
    whole_file.remove_all([file for file in (*indices, *parts) if file != _index_file(destination)])


class _Index:
    """The entries of an index, by key."""

    def __init__(self) -> None:
        self._entries: dict[bytes, Any] = {}

    def add(self, tensor: TensorToSave, offset: int, size: int, crc: int) -> None:
        """Raises InvalidArgument for a tensor or slice that is there already."""
        name, array, part = tensor
        key = wire.utf8(name)
        if part is not None and not part.is_whole:
            full_entry = _entry(array, part.shape)
            present = self._entries.setdefault(key, full_entry)
            if present is not full_entry and not (present.slices and _same_tensor(present, full_entry)):
                raise _duplicate_error(name)
            extents = [{"start": start} if length is None else {"start": start, "length": length}
                       for start, length in part.part_slice]
            present.slices.add(extent=extents)
            key = slice_key(name, part.part_slice)
        if key in self._entries:
            raise _duplicate_error(name)
        entry = self._entries[key] = _entry(array, array.shape)
        entry.offset, entry.size, entry.crc32c = offset, size, crc

    def merge(self, raw: bytes, prefix: str, shards_before: int) -> int:
        """Add the entries of another index, whose shards follow `shards_before` others. Return its number of shards."""
        pairs = dict(entries(raw))
        header: Any = parse_message("BundleHeaderProto", pairs.pop(b"", b""))
        for key, value in pairs.items():
            entry: Any = parse_message("BundleEntryProto", value)
            if not entry.slices:
                entry.shard_id += shards_before
            present = self._entries.setdefault(key, entry)
            if present is entry:
                continue
            if not (entry.slices and present.slices and _same_tensor(present, entry)):
                raise InvalidArgument(f"Duplicate tensor keyed by {str(key, 'utf-8', 'replace')} encountered, when "
                                      f"merging prefix: {prefix}")
            present.slices.extend(entry.slices)
        return int(header.num_shards)

    def table(self, shards: int) -> bytes:
        """Return the index file of a checkpoint with this number of shards."""
        header = _message("BundleHeaderProto", num_shards=shards, version={"producer": 1})
        pairs = {b"": header, **self._entries}
        return table((key, pairs[key].SerializeToString(deterministic=True)) for key in sorted(pairs))


def _same_tensor(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape)


def _duplicate_error(name: str) -> InvalidArgument:
    return InvalidArgument(f"Adding duplicate key: {name}", hint="give each tensor of a checkpoint its own name")


def _message(name: str, **fields: Any) -> Any:
    return message_class(name)(**fields)


def _entry(array: Array, shape: tuple[int, ...]) -> Any:
    dtype = dtypes.of_numpy(array.dtype)
    return _message("BundleEntryProto", dtype=dtype.number, shape={"dim": [{"size": size} for size in shape]})


def _chunks(tensor: TensorToSave) -> list[Buffer]:
    """Return the bytes of a tensor as TensorFlow stores them: numbers in little-endian order; strings as all lengths,
    a checksum of the lengths, and all their bytes."""
    import numpy as np

    dtype = dtypes.of_numpy(tensor.array.dtype)
    if dtype is dtypes.string:
        return _string_chunks(tensor)
    array = np.ascontiguousarray(tensor.array, tensor.array.dtype.newbyteorder("<"))
    return [array.reshape(-1).view(np.uint8).data]


def _string_chunks(tensor: TensorToSave) -> list[Buffer]:
    strings = [_string(element, tensor.name) for element in tensor.array.reshape(-1).tolist()]
    lengths = b"".join(wire.put_varint(len(string)) for string in strings)
    checksum = masked_crc32c(_bytes_of_lengths(map(len, strings))).to_bytes(4, "little")
    return [lengths, checksum, b"".join(strings)]


def _string(element: object, name: str) -> bytes:
    if isinstance(element, str):
        return wire.utf8(element)
    if not isinstance(element, bytes):
        raise InvalidArgument(f"tensor '{name}' has an element of type {type(element).__name__}, which no checkpoint "
                              "holds", hint="save arrays of numbers, booleans or strings")
    return element


def _bytes_of_lengths(lengths: Iterable[int]) -> bytes:
    """Return the lengths as their checksum takes them."""
    return b"".join(n.to_bytes(4 if n < _LONG_STRING_BYTES else 8, "little") for n in lengths)


def _checksum(tensor: TensorToSave, chunks: Sequence[Buffer]) -> int:
    if len(chunks) == 1:
        return masked_crc32c(chunks[0])
    lengths, checksum, strings = chunks
    at, sizes = 0, []
    while at < len(lengths):
        size, at = wire.varint(lengths, at, len(lengths))
        sizes.append(size)
    return masked_crc32c(b"".join((_bytes_of_lengths(sizes), checksum, strings)))


def _index_file(prefix: str | os.PathLike[str]) -> Path:
    return Path(f"{prefix}.index")


def _shards(prefix: str | os.PathLike[str], count: int) -> list[Path]:
    return [Path(f"{prefix}.{shard_name(shard, count)}") for shard in range(count)]


def _create_empty(files: whole_file.NewFiles, shards: Iterable[Path]) -> None:
    for shard in shards:
        with files.create(shard.name):
            pass  # readers of an index may expect each shard that it names


def _unused_shard_count(prefix: str | os.PathLike[str], number: int) -> int:
    """Return a count of at least `number` shards that the present checkpoint of this prefix does not have."""
    return number + (_shard_count(prefix) == number)


def _shard_count(prefix: str | os.PathLike[str]) -> int:
    """Return the number of shards that the index of this prefix names: 0 for a missing or damaged index."""
    file = _index_file(prefix)
    with whole_file.naming(file):
        try:
            header: Any = parse_message("BundleHeaderProto", dict(entries(mapped_file.read(file))).get(b"", b""))
        except (FileNotFoundError, DataLoss, InvalidArgument):
            return 0
    return int(header.num_shards)


def _make_parent(prefix: str | os.PathLike[str]) -> None:
    folder = _index_file(prefix).parent
    if folder.parent.is_dir() and not folder.exists():
        with whole_file.naming(folder):
            whole_file.make_folders(folder)


def _commit(prefix: str | os.PathLike[str], index: _Index, shards: Sequence[Path]) -> None:
    """Replace the index, and remove the shards of this prefix that it does not name. An error removes the new ones."""
    file = _index_file(prefix)
    try:
        whole_file.write_whole(file, [index.table(len(shards))])
    except HealdError:
        if _shard_count(prefix) != len(shards):
            whole_file.remove_all(shards)
        raise
    is_shard = re.compile(re.escape(file.stem) + r"\.data-\d{5,}-of-\d{5,}").fullmatch
    names = {shard.name for shard in shards}
    whole_file.remove_all([path for path in file.parent.iterdir() if is_shard(path.name) and path.name not in names])
