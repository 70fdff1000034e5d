"""Archives are unpacked into a folder of the process: .zip, .tar, .tar.gz and .tar.bz2.

An archive may come from a stranger. So each member is a file or a folder, under a relative name without "..". Links,
devices and encrypted members are refused. Sizes are counted as bytes are written, not believed as the archive states
them; they are bounded as a whole, and in relation to the archive's size. Headers are read one after the other, each of
bounded size, so memory does not grow with the archive. `tarfile` reads headers of any size, hence the reader here.
"""

from __future__ import annotations

import os
import shutil
import stat
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Protocol, cast

from ...errors import DataLoss, HealdError, InvalidArgument, ResourceExhausted, Unimplemented
from .input_file import reading

MOST_MEMBERS = 10_000
LARGEST_UNPACKED_BYTES = 16 << 30
LARGEST_RATIO = 200  # bytes unpacked for each byte of the archive
ALWAYS_PERMITTED_BYTES = 256 << 20  # unpacked, at any ratio
_LARGEST_HEADER_BYTES = 64 << 10  # of a long name or an extended header
_CHUNK_BYTES = 1 << 20
_BLOCK = 512  # bytes of a header of a tar archive, and of the unit of its members
_UNPACK = "unpack it with a program that you trust, and load what is inside"
_ENCRYPTED = 1  # flag of a zip archive's member


class _Reader(Protocol):
    def read(self, count: int, /) -> bytes: ...


class _Member(NamedTuple):
    """A file of an archive with its content, or a folder without one."""

    name: str
    size: int | None
    content: _Reader | None


class Unpacked:
    """The folder of an unpacked archive. It is removed when this object is collected, and at the end of the process."""

    def __init__(self, archive: Path) -> None:
        """Raises the errors of `unpack`, InvalidArgument for a file that is no archive."""
        import tempfile

        folder = tempfile.mkdtemp(prefix="heald-")
        self.folder = Path(folder)
        weakref.finalize(self, _remove, folder, os.getpid())
        unpack(archive, self.folder)


def is_archive(path: Path, head: bytes) -> bool:
    """Return True for the first bytes of a zip or tar archive. A compressed tar archive is known by its first block."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) or _is_tar(head):
        return True
    if not head.startswith((b"\x1f\x8b", b"BZh")):
        return False
    try:
        with _open_tar(path, head) as stream:
            return _is_tar(stream.read(_BLOCK))
    except (OSError, EOFError, zlib.error):
        return False


def unpack(archive: Path, folder: Path) -> None:
    """Write the members of an archive into an empty folder.

    Raises InvalidArgument for a member that is no file or leads out of the folder, ResourceExhausted for an archive
    beyond the bounds, DataLoss for a damaged one, Unimplemented for encrypted or unknown forms.
    """
    from zipfile import BadZipFile

    with reading(archive):
        limit = min(LARGEST_UNPACKED_BYTES, max(ALWAYS_PERMITTED_BYTES, LARGEST_RATIO * archive.stat().st_size))
        try:
            for number, member in enumerate(_members(archive)):
                if number >= MOST_MEMBERS:
                    raise ResourceExhausted(f"the archive has more than {MOST_MEMBERS:,} members", hint=_UNPACK)
                limit -= _write(member, folder, limit)
        except HealdError:
            raise
        except (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
            raise DataLoss(f"the archive is damaged: {error}") from error


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child leaves the folder to its parent
        shutil.rmtree(folder, ignore_errors=True)


def _write(member: _Member, folder: Path, limit: int) -> int:
    """Write one member, and return its number of bytes."""
    target = folder.joinpath(*_parts(member.name))
    if member.content is None:
        target.mkdir(parents=True, exist_ok=True)
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with target.open("wb") as file:
        while chunk := member.content.read(_CHUNK_BYTES):
            written += len(chunk)
            if written > limit:
                raise ResourceExhausted(f"the archive unpacks to more than {LARGEST_RATIO} times its size, or to more "
                                        f"than {LARGEST_UNPACKED_BYTES >> 30} GiB", hint=_UNPACK)
            file.write(chunk)
    if written != member.size:
        raise DataLoss(f"member '{member.name}' ends after {written} of {member.size} bytes")
    return written


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or (os.name == "nt" and {*"\\:"} & {*name}):
        raise InvalidArgument(f"member '{name}' leads out of the archive, which is not unpacked", hint=_UNPACK)
    return path.parts


def _members(archive: Path) -> Iterator[_Member]:
    with archive.open("rb") as file:
        head = file.read(_BLOCK)
    if head.startswith(b"PK"):
        yield from _zip_members(archive)
    else:
        with _open_tar(archive, head) as stream:
            yield from _tar_members(stream)


def _zip_members(archive: Path) -> Iterator[_Member]:
    import zipfile

    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Unimplemented(f"member '{info.filename}' is encrypted or of an unknown compression", hint=_UNPACK)
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _link_error(info.filename)
            if info.is_dir():
                yield _Member(info.filename, None, None)
                continue
            with opened.open(info) as content:
                yield _Member(info.filename, info.file_size, content)


def _link_error(name: str) -> InvalidArgument:
    return InvalidArgument(f"member '{name}' is a link or a device, and is not unpacked", hint=_UNPACK)


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _open_tar(archive: Path, head: bytes) -> IO[bytes]:
    if head.startswith(b"\x1f\x8b"):
        import gzip

        return cast("IO[bytes]", gzip.open(archive, "rb"))
    if head.startswith(b"BZh"):
        import bz2

        return bz2.open(archive, "rb")
    return archive.open("rb")


class _Content:
    """The content of one member of a tar archive, in front of its padding."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size
        self._padding = -size % _BLOCK

    def read(self, count: int) -> bytes:
        chunk = self._stream.read(min(count, self._left))
        self._left -= len(chunk)
        return chunk

    def skip(self) -> None:
        """Read on to the next header."""
        while self._left and self.read(_CHUNK_BYTES):
            pass
        self._stream.read(self._padding)


def _tar_members(stream: IO[bytes]) -> Iterator[_Member]:
    """Yield the members of a tar archive. A long name and an extended header are for the member behind them."""
    import tarfile

    extended: dict[str, str] = {}
    headers = 0
    while len(block := stream.read(_BLOCK)) == _BLOCK and any(block):
        headers += 1
        if headers > 3 * MOST_MEMBERS:
            raise ResourceExhausted(f"the archive has more than {3 * MOST_MEMBERS:,} headers", hint=_UNPACK)
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise DataLoss(f"the archive is damaged: {error}") from error
        if info.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            payload = _read_header(stream, info.size)
            if info.type == tarfile.XHDTYPE:
                extended |= _records(payload)
            elif info.type == tarfile.GNUTYPE_LONGNAME:
                extended["path"] = payload.rstrip(b"\0").decode("utf-8", "surrogateescape")
            continue
        name, size = extended.get("path", info.name), int(extended.get("size", info.size))
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) or size < 0 or any(
                key.startswith("GNU.sparse") for key in extended):
            raise _link_error(name)
        extended = {}
        if info.isdir():
            yield _Member(name, None, None)
            continue
        content = _Content(stream, size)
        yield _Member(name, size, content)
        content.skip()


def _read_header(stream: IO[bytes], size: int) -> bytes:
    if not 0 <= size <= _LARGEST_HEADER_BYTES:
        raise ResourceExhausted(f"a header of the archive has {size} bytes", hint=_UNPACK)
    payload = stream.read(size)
    stream.read(-size % _BLOCK)
    return payload


def _records(payload: bytes) -> dict[str, str]:
    """Read the records "LENGTH key=value\\n" of an extended header. Raises ValueError for malformed ones."""
    records: dict[str, str] = {}
    while payload:
        length = int(payload[: payload.index(b" ")])
        if not 0 < length <= len(payload):
            raise ValueError("an extended header ends early")
        key, _, value = payload[payload.index(b" ") + 1 : length - 1].partition(b"=")
        records[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        payload = payload[length:]
    return records
