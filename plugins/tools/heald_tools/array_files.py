"""NumPy's files, .npy and .npz, from untrusted sources: every damaged byte is a typed error.

A grammar of this module reads the header, since NumPy evaluates the header as Python. The header is compared with the
size of the file before any memory is requested. An .npz is a zip archive with an .npy file for each array. Its members
are stored or deflated, as NumPy writes them. All members together are no larger than the archive, so that deflate's
highest ratio bounds the memory of an archive's arrays.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import heald
import numpy as np
from heald.errors import (
    DataLoss,
    HealdError,
    InvalidArgument,
    ResourceExhausted,
    Unimplemented,
    describe_exception,
    of_system,
)

Array = np.ndarray[Any, Any]
Source = str | os.PathLike[str] | bytes
Ask = Callable[[int, str], object]

MAGIC = b"\x93NUMPY"
SUFFIX = ".npy"  # suffix of the members of an .npz
_HEADER_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # bytes of the header's length, by major version
_MAX_HEADER_BYTES = 10_000  # bytes, as in NumPy
_MAX_DEFLATE_RATIO = 1032  # most bytes that deflate makes of one
_CHUNK = 1 << 20  # bytes
_MAX_ARRAY_BYTES = (1 << 63) - 1
_MAX_RANK = 64
_UNICODE = 0x10FFFF
_ITEM = re.compile(
    r"""\s*+(['"])(descr|fortran_order|shape)\1\s*+:\s*+('[^']*+'|"[^"]*+"|True|False|\([\dL,\s]*+\))\s*+(?:,|(?=}))\s*+""")
_DTYPE = re.compile(r"(?:[<>|=]?(?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][1-9]\d{0,9})|\?)")
_DIM = re.compile(r"\s*(\d{1,19})L?\s*", re.ASCII)
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1  # a member's flag


def ask_budget(nbytes: int, what: str) -> None:
    """Raise ResourceExhausted when the memory budget of this process has no room for `nbytes`."""
    heald.default_host().memory.ask(nbytes, what)


class _Header(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    nbytes: int


class ArrayArchive:
    """The arrays of an .npz by name: `names` in the archive's order. Arrays are read on demand.

    `ask(nbytes, what)` raises ResourceExhausted when there is no memory for an array. The default asks the budget of
    the process.
    Raises DataLoss for a damaged archive. The archive is a context manager, which closes the file.
    """

    def __init__(self, source: Source, ask: Ask = ask_budget) -> None:
        self._place = _place(source)
        self._ask = ask
        with _reading(self._place):
            self._file = _open_source(source)
            try:
                self._members = self._members_by_name()
            except BaseException:
                self._file.close()
                raise

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def __getitem__(self, name: str) -> Array:
        """Read the array called `name`. Raises KeyError without one, DataLoss, InvalidArgument, Unimplemented."""
        member = self._members[name]
        with _reading(f"{self._place}:{name}"):
            if member.flag_bits & _ENCRYPTED or member.compress_type not in _METHODS:
                raise Unimplemented("this array is encrypted, or compressed by something else than deflate",
                                    hint="write it with numpy.savez or numpy.savez_compressed")
            if member.file_size > member.compress_size * _MAX_DEFLATE_RATIO:
                raise DataLoss(f"{member.compress_size} bytes cannot become the {member.file_size} that it says it has")
            with self._archive.open(member) as file:
                return _read_array(file, member.file_size, self._ask)

    def __enter__(self) -> ArrayArchive:
        return self

    def __exit__(self, *exc: object) -> None:
        self._archive.close()
        self._file.close()

    def _members_by_name(self) -> dict[str, zipfile.ZipInfo]:
        if self._file.read(len(MAGIC)) == MAGIC:
            raise DataLoss("the file holds a single array", hint="name it .npy")
        self._archive = zipfile.ZipFile(self._file)
        members = [info for info in self._archive.infolist() if info.filename.endswith(SUFFIX)]
        infos_by_name = {info.filename.removesuffix(SUFFIX): info for info in members}
        if len(infos_by_name) < len(members):
            raise DataLoss("several arrays have one name")
        packed, size = sum(info.compress_size for info in members), _size(self._file)
        if packed > size:
            raise DataLoss(f"its arrays take {packed} bytes of {size}: they overlap")
        return infos_by_name


def read_npy(source: Source, ask: Ask = ask_budget) -> Array:
    """Read the array of an .npy file. `source` is a path or the file's bytes; `ask` is the same as ArrayArchive's.

    Raises NotFound, PermissionDenied, Unknown for an unreadable file, DataLoss for a damaged one, InvalidArgument and
    Unimplemented for arrays that no tensor can be, ResourceExhausted.
    """
    with _reading(_place(source)), _open_source(source) as file:
        if file.read(4) == b"PK\x03\x04":
            raise DataLoss("the file holds several arrays", hint="name it .npz")
        file.seek(0)
        return _read_array(file, _size(file), ask)


def _place(source: Source) -> str:
    return "the .npy or .npz given as bytes" if isinstance(source, bytes) else f"'{os.fspath(source)}'"


def _open_source(source: Source) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    path = Path(source)
    if path.exists() and not path.is_file():  # the opening of a pipe would block forever
        raise InvalidArgument("this is not a regular file")
    return path.open("rb")


@contextmanager
def _reading(source_name: str) -> Iterator[None]:
    """Turn errors inside into typed errors that name the place."""
    try:
        yield
    except HealdError as error:
        error.message = f"{source_name}: {error.message}"
        raise
    except OSError as error:
        raise of_system(error, source_name.strip("'")) from error
    except MemoryError as error:
        raise ResourceExhausted(f"{source_name}: no memory for this array") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OverflowError,
            IndexError) as error:  # the classes that zipfile and NumPy raise
        raise DataLoss(f"{source_name} cannot be read: {describe_exception(error)}") from error


def _size(file: BinaryIO) -> int:
    at = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(at)
    return size


def _read_array(file: Any, size: int, ask: Ask) -> Array:
    """Read the array of an .npy file of `size` bytes; the file is at its start."""
    header = _read_header(file)
    there = size - file.tell()
    if header.nbytes != there:
        raise DataLoss(f"its array takes {header.nbytes} bytes, and {there} are there")
    if header.nbytes > _CHUNK:  # an archive's member expands up to a thousand times
        ask(header.nbytes, f"an array of shape {header.shape}")
    data = np.empty(header.nbytes, np.uint8)
    view = data.data
    at = 0
    while at < header.nbytes:
        count = file.readinto(view[at : at + _CHUNK])
        if not count:
            raise DataLoss(f"truncated: its array takes {header.nbytes} bytes, and {at} are there")
        at += count
    file.read(1)  # the end of the file: an archive compares checksums there
    array: Array = np.ndarray(header.shape, header.dtype, data, order="F" if header.is_fortran else "C")
    _check_elements(array, data)
    return array


def _check_elements(array: Array, data: Array) -> None:
    """Raise DataLoss for bytes that are no elements of the type: NumPy does not check them."""
    if array.dtype.kind == "b" and array.size and data.max() > 1:
        raise DataLoss("an element that is neither true nor false")
    if array.dtype.kind == "U" and array.size and data.view(array.dtype.byteorder + "u4").max() > _UNICODE:
        raise DataLoss("an element that is no character")


def _read_header(file: Any) -> _Header:
    start = file.read(len(MAGIC) + 2)
    if start[: len(MAGIC)] != MAGIC or len(start) < len(MAGIC) + 2:
        raise DataLoss("this is no .npy file")
    major, minor = start[len(MAGIC) :]
    if major not in _HEADER_LENGTH_BYTES or minor:
        raise DataLoss(f"version {major}.{minor} of .npy does not exist", hint="the versions are 1.0, 2.0 and 3.0")
    field = file.read(_HEADER_LENGTH_BYTES[major])
    length = int.from_bytes(field, "little")
    if length > _MAX_HEADER_BYTES:
        raise DataLoss(f"its header has {length} bytes, {_MAX_HEADER_BYTES} are the most")
    raw = file.read(length)
    if len(field) < _HEADER_LENGTH_BYTES[major] or len(raw) < length:
        raise DataLoss("truncated: the header is not all there")
    return _parse_header(raw.decode("latin-1"))


def _parse_header(text: str) -> _Header:
    """Parse the header `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`, keys in any order."""
    text = text.strip()
    entries, at = {}, 1
    while (item := _ITEM.match(text, at)) is not None and item[2] not in entries:
        entries[item[2]] = item[3]
        at = item.end()
    if text[:1] != "{" or text[at:] != "}" or len(entries) < 3:
        raise _unread(text)
    dtype, shape = _dtype(entries["descr"].strip("'\"")), _shape(entries["shape"])
    if entries["fortran_order"] not in ("True", "False") or shape is None:
        raise _unread(text)
    nbytes = prod(shape) * dtype.itemsize
    if len(shape) > _MAX_RANK or max(shape, default=0) > _MAX_ARRAY_BYTES or nbytes > _MAX_ARRAY_BYTES:
        raise DataLoss(f"an array of shape {shape} cannot be")
    return _Header(dtype, shape, entries["fortran_order"] == "True", nbytes)


def _unread(text: str) -> HealdError:
    if re.search(r"""['"]descr['"]\s*:\s*\[""", text):
        return InvalidArgument("its elements are records, which no tensor has",
                               hint="save each field as an array of its own")
    return DataLoss(f"its header is not as NumPy writes it: {text[:80]!r}")


def _dtype(text: str) -> np.dtype[Any]:
    try:
        if _DTYPE.fullmatch(text):
            return np.dtype(text)
    except TypeError:  # text beyond NumPy's limit, numbers wider than this platform's
        pass
    kind = "Python objects, which are not loaded," if "O" in text else f"elements of type '{text}'"
    raise InvalidArgument(f"it has {kind}: tensors have numbers, truth values or text",
                          hint="convert it before it is saved: x.astype('float32'), or x.astype('S') for text")


def _shape(text: str) -> tuple[int, ...] | None:
    """Return the dimensions in a tuple's text, or None for any other text."""
    if text[:1] != "(":
        return None
    parts: Sequence[str] = text[1:-1].split(",")
    if not parts[-1].strip():
        parts = parts[:-1]
    dim_matches = [_DIM.fullmatch(part) for part in parts]
    return tuple(int(match[1]) for match in dim_matches if match) if all(dim_matches) else None
