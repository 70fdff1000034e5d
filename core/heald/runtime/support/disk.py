"""The system's calls that change files and folders. `whole_file` alone uses them.

Tests count and record these calls, so a change of a file has no way around them.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

Buffer = bytes | bytearray | memoryview

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h
_WORKING_FOLDER = -100  # AT_FDCWD of fcntl.h: relative paths begin at the working folder
# Errors of systems and file systems without a call.
_UNSUPPORTED_ERRNOS = frozenset((errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM))


def create(path: Path, mode: int) -> int:
    """Return a descriptor of a new file."""
    return os.open(path, _CREATE, mode)


def write(descriptor: int, data: Buffer) -> int:
    """Write the first bytes of `data`, and return their number: 2 GiB at most."""
    return os.write(descriptor, data)


def sync(descriptor: int) -> None:
    """Return once the content of the file is on the disk."""
    os.fsync(descriptor)


def sync_file(file: Path) -> None:
    """Return once the content of a file of another writer is on the disk."""
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Return once the names in `folder` are on the disk. Windows, folders without read permission and some file systems
    have no such call."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_ERRNOS:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path, mode: int) -> None:
    folder.mkdir(mode)


def rename(old: Path, new: Path) -> None:
    """Give a file or folder another name. A file there is replaced."""
    old.replace(new)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files or folders, at no moment without either name. Returns False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED_ERRNOS:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


def link(old: Path, new: Path) -> bool:
    """Give a file a second name. Returns False where the file system cannot."""
    try:
        os.link(old, new)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_ERRNOS:
            raise
        return False
    return True


def remove(file: Path) -> None:
    file.unlink()


def remove_folder(folder: Path) -> None:
    """Remove an empty folder."""
    folder.rmdir()
