"""A writer of checkpoints in TensorFlow's tensor-bundle format; `checkpoint` reads them and has the format.

All files of a checkpoint are written aside and renamed: no file at its final name is ever half written. The shards are
renamed first, so an index never names a shard that is not there yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.api import dtypes, wire
from heald.errors import InvalidArgument, of_system
from heald.graph import graphdef
from heald.protobuf import Buffer, message_class, parse_message
from heald.support import mapped_file

from .checkpoint import shard_name
from .crc32c import masked_crc32c
from .sstable import entries
from .sstable_writer import table
from .tensor_slice import ShapeAndSlice, slice_key

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_SHORT = 2**32  # the checksum takes string lengths below it as four bytes, others as eight


class TensorToSave(NamedTuple):
    """A tensor, or with `part` a slice of the tensor called `name`."""

    name: str
    array: Array
    part: ShapeAndSlice | None = None


def write_checkpoint(prefix: str | os.PathLike[str], tensors: Mapping[str, Any] | Iterable[TensorToSave]) -> None:
    """Write `prefix`.index and `prefix`.data-00000-of-00001 with these tensors, by name or with slices.

    Arrays in C order are written without a copy. An existing checkpoint of that prefix is replaced.

    Raises InvalidArgument for a second tensor of a name and for elements that no checkpoint holds; NotFound,
    PermissionDenied, ResourceExhausted or Unknown when a file cannot be written.
    """
    import numpy as np

    if isinstance(tensors, Mapping):
        tensors = [TensorToSave(name, np.asarray(value)) for name, value in tensors.items()]
    index = _Index()
    shard, index_file = _files(prefix, 1)
    with writing_aside(shard) as aside:
        with aside.open("xb", buffering=0) as file:
            offset = 0
            for tensor in tensors:
                pieces = _pieces(tensor)
                for piece in pieces:
                    _write(file, piece)
                size = sum(map(len, pieces))
                index.add(tensor, offset, size, _checksum(tensor, pieces))
                offset += size
        with writing_aside(index_file) as index_aside:
            index_aside.write_bytes(index.table(1))
            aside.replace(shard)
            index_aside.replace(index_file)


def merge_checkpoints(
    prefixes: Sequence[str | os.PathLike[str]], destination: str | os.PathLike[str], *, allow_missing: bool = False
) -> None:
    """Make one checkpoint of several. Their shards are renamed, and their indices removed.

    Slices of one tensor may be in several of them. `allow_missing` leaves out prefixes without an index.

    Raises InvalidArgument for a missing checkpoint or a tensor that two of them have, DataLoss for a damaged index, and
    the errors of `write_checkpoint` for files that cannot be written.
    """
    index, moves, indices = _Index(), list[Path](), list[Path]()
    for prefix in prefixes:
        file = _files(prefix, 1)[1]
        if not file.exists() and allow_missing:
            continue
        if not file.exists():
            raise InvalidArgument(f"allow_missing_files was set to false and {prefix} did not exist.",
                                  hint="save this part first, or set allow_missing_files")
        if file in indices:
            continue
        with graphdef.reading(file):
            shards = index.merge(mapped_file.read(file), str(prefix), len(moves))
        moves += [Path(f"{prefix}.{shard_name(shard, shards)}") for shard in range(shards)]
        indices.append(file)
    *shards_to, index_file = _files(destination, len(moves))
    with writing_aside(index_file) as aside:
        aside.write_bytes(index.table(len(moves)))
        for old, new in zip(moves, shards_to, strict=True):
            old.replace(new)
        aside.replace(index_file)
        for old in indices:
            if old != index_file:
                old.unlink(missing_ok=True)


class _Index:
    """The entries of an index, by key."""

    def __init__(self) -> None:
        self._entries: dict[bytes, Any] = {}

    def add(self, tensor: TensorToSave, offset: int, size: int, crc: int) -> None:
        """Raises InvalidArgument for a tensor or slice that is there already."""
        name, array, part = tensor
        key = wire.utf8(name)
        if part is not None and not part.is_whole:
            whole = _entry(array, part.shape)
            known = self._entries.setdefault(key, whole)
            if known is not whole and not (known.slices and _same_tensor(known, whole)):
                raise _twice(name)
            extents = [{"start": start} if length is None else {"start": start, "length": length}
                       for start, length in part.place]
            known.slices.add(extent=extents)
            key = slice_key(name, part.place)
        if key in self._entries:
            raise _twice(name)
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
            known = self._entries.setdefault(key, entry)
            if known is entry:
                continue
            if not (entry.slices and known.slices and _same_tensor(known, entry)):
                raise InvalidArgument(f"Duplicate tensor keyed by {str(key, 'utf-8', 'replace')} encountered, when "
                                      f"merging prefix: {prefix}")
            known.slices.extend(entry.slices)
        return int(header.num_shards)

    def table(self, shards: int) -> bytes:
        """Return the index file of a checkpoint with this number of shards."""
        header = _message("BundleHeaderProto", num_shards=shards, version={"producer": 1})
        pairs = {b"": header, **self._entries}
        return table((key, pairs[key].SerializeToString(deterministic=True)) for key in sorted(pairs))


def _same_tensor(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape)


def _twice(name: str) -> InvalidArgument:
    return InvalidArgument(f"Adding duplicate key: {name}", hint="give each tensor of a checkpoint its own name")


def _message(name: str, **fields: Any) -> Any:
    return message_class(name)(**fields)


def _entry(array: Array, shape: tuple[int, ...]) -> Any:
    dtype = dtypes.of_numpy(array.dtype)
    return _message("BundleEntryProto", dtype=dtype.number, shape={"dim": [{"size": size} for size in shape]})


def _pieces(tensor: TensorToSave) -> list[Buffer]:
    """Return the bytes of a tensor as TensorFlow stores them: numbers in little-endian order; strings as all lengths,
    a checksum of the lengths, and all their bytes."""
    import numpy as np

    dtype = dtypes.of_numpy(tensor.array.dtype)
    if dtype is dtypes.string:
        return _string_pieces(tensor)
    array = np.ascontiguousarray(tensor.array, tensor.array.dtype.newbyteorder("<"))
    return [array.reshape(-1).view(np.uint8).data]


def _string_pieces(tensor: TensorToSave) -> list[Buffer]:
    strings = [_string(element, tensor.name) for element in tensor.array.reshape(-1).tolist()]
    lengths = b"".join(wire.put_varint(len(each)) for each in strings)
    checksum = masked_crc32c(_summed(map(len, strings))).to_bytes(4, "little")
    return [lengths, checksum, b"".join(strings)]


def _string(element: object, name: str) -> bytes:
    if isinstance(element, str):
        return wire.utf8(element)
    if not isinstance(element, bytes):
        raise InvalidArgument(f"tensor '{name}' has an element of type {type(element).__name__}, which no checkpoint "
                              "holds", hint="save arrays of numbers, booleans or strings")
    return element


def _summed(lengths: Iterable[int]) -> bytes:
    """Return the lengths as their checksum takes them."""
    return b"".join(n.to_bytes(4 if n < _SHORT else 8, "little") for n in lengths)


def _checksum(tensor: TensorToSave, pieces: Sequence[Buffer]) -> int:
    if len(pieces) == 1:
        return masked_crc32c(pieces[0])
    lengths, checksum, strings = pieces
    at, sizes = 0, []
    while at < len(lengths):
        size, at = wire.varint(lengths, at, len(lengths))
        sizes.append(size)
    return masked_crc32c(b"".join((_summed(sizes), checksum, strings)))


def _write(file: Any, data: Buffer) -> None:
    """Write all bytes: one call of the operating system writes 2 GiB at most."""
    view = memoryview(data)
    while view:
        view = view[file.write(view):]


def _files(prefix: str | os.PathLike[str], shards: int) -> list[Path]:
    """Return the shards of a checkpoint, and then its index."""
    ends = (*(shard_name(number, shards) for number in range(shards)), "index")
    return [Path(f"{prefix}.{end}") for end in ends]


@contextmanager
def writing_aside(file: Path) -> Iterator[Path]:
    """Yield the path of a temporary file or folder beside `file`; a file left there is removed.

    An OSError within becomes the typed error, located at `file`.
    """
    aside = file.parent / f".heald-{os.urandom(6).hex()}.tmp"
    try:
        with suppress(FileExistsError):
            file.parent.mkdir()
        yield aside
    except OSError as error:
        raise of_system(error, file) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
