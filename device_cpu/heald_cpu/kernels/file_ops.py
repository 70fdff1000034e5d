"""Kernels of ops that read, write and list files, where `[files]` permits it (`Bind.file`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors, make_folders, write_whole

from ..element_types import Array
from ..file_patterns import has_wildcard, matches

READ, WRITE = "read", "write"
# A pipe without a peer must not make the step wait.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_file(b: Bind) -> Callable[..., None]:
    def run(name: Array, out: Array) -> None:
        path = b.file(name.item(), READ)
        with _open_regular_file(path) as file:
            b.ask(os.fstat(file.fileno()).st_size, f"the file '{path}'")
            out.fill(file.read())

    return run


def write_file(b: Bind) -> Callable[..., None]:
    """The missing folders of the path are made, as in TensorFlow."""
    def run(name: Array, contents: Array) -> None:
        path = b.file(name.item(), WRITE)
        try:
            make_folders(path.parent)
        except (FileExistsError, NotADirectoryError):
            raise errors.FailedPrecondition(f"a file is in the place of a folder of '{path}'") from None
        if path.exists():
            _check_kind(path, path.stat().st_mode)
        write_whole(path, [contents.item()])

    return run


def _open_regular_file(path: Path) -> Any:
    """Open a regular file. Raises FailedPrecondition for a folder, pipe or device, OSError as the system does."""
    try:
        descriptor = os.open(path, _READING)
    except NotADirectoryError:
        raise errors.FailedPrecondition(f"a file is in the place of a folder of '{path}'") from None
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check_kind(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise errors.FailedPrecondition(f"'{path}' is {'a folder' if stat.S_ISDIR(mode) else 'no regular file'}")


def matching_files(b: Bind) -> Callable[..., Array]:
    def names_in(folder: bytes) -> Sequence[bytes] | None:
        path = b.file(folder, READ)
        return [os.fsencode(entry.name) for entry in path.iterdir()] if path.is_dir() else None

    def matching(pattern: bytes) -> list[bytes]:
        if has_wildcard(pattern):
            return matches(pattern, names_in)
        return [pattern] if pattern and b.file(pattern, READ).exists() else []

    def run(patterns: Array) -> Array:
        paths = sorted(path for pattern in patterns.reshape(-1).tolist() for path in matching(pattern))
        return np.array([*paths, None], object)[:-1]  # no name of one length makes it an array of bytes

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("ReadFile", files=(READ,))(read_file)
    kernels.kernel("WriteFile", files=(WRITE,))(write_file)
    kernels.kernel("MatchingFiles", files=(READ,), allocates=True)(matching_files)
