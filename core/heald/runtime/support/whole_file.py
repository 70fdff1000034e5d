"""Whole files and folders: every writer of the project goes through this module.

A file is written in a temporary folder beside its final name. Its content is synced to the disk, and a rename gives it
its name; then the folder of the name is synced. After a kill or a power cut the name has the old content or the new.
A folder is written in the same way, and exchanged with an older one in one step. Systems without such a step rename
twice; between the two nothing has the name, and the next writer in the same folder completes the exchange.

The temporary folder is locked while its writer lives. The system ends the lock with the process, so the next writer in
the same folder removes the temporary folders that it can lock. File systems without such locks keep leftovers.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import AlreadyExists, HealdError, InvalidArgument, Location, NotFound, of_system
from . import disk, mapped_file
from .disk import Buffer
from .user_files import is_foreign

READABLE, PRIVATE = 0o666, 0o600  # modes of new files, before the user's mask
PRIVATE_FOLDER = 0o700
_TEMPORARY = re.compile(r"\.heald-[0-9a-f]{12}\.tmp")
_BUFFER_BYTES = 1 << 16
# The parts of a temporary folder: files and folders before they have their names, and folders that were replaced.
_NEW, _REPLACED = "new", "replaced"


def write_whole(file: Path, chunks: Iterable[Buffer], *, mode: int = READABLE) -> None:
    """Write pieces of bytes to a file, one behind the other.

    Raises InvalidArgument for a path of something else than a file, NotFound for a missing folder, PermissionDenied,
    ResourceExhausted or Unknown when the file cannot be written.
    """
    with writing_file(file, mode=mode) as out:
        out.writelines(chunks)


@contextmanager
def writing_file(file: Path, *, mode: int = READABLE) -> Iterator[BinaryIO]:
    """Yield an open file, which gets its name when the block ends without an error. Raises as `write_whole`."""
    _check_regular(file)
    with _writing_beside(file.parent, file) as aside:
        with _creating(aside / file.name, mode) as out:
            yield out
        disk.rename(aside / file.name, file)
        disk.sync_folder(file.parent)


class NewFiles:
    """Files of one folder, which get their names together."""

    def __init__(self, folder: Path, aside: Path) -> None:
        self._folder = folder
        self._aside = aside
        self._names: list[str] = []

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """Yield an open file for the file called `name`. Raises as `write_whole`."""
        _check_regular(self._folder / name)
        with naming(self._folder / name), _creating(self._aside / name, READABLE) as out:
            yield out
        self._names.append(name)

    def name_all(self) -> None:
        for name in self._names:
            with naming(self._folder / name):
                disk.rename(self._aside / name, self._folder / name)


@contextmanager
def writing_files(folder: Path) -> Iterator[NewFiles]:
    """Yield an object that creates files of `folder`. They get their names when the block ends without an error."""
    with _writing_beside(folder, folder) as aside:
        files = NewFiles(folder, aside)
        yield files
        files.name_all()
        disk.sync_folder(folder)


@contextmanager
def writing_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a new folder, which gets the name of `folder` when the block ends without an error.

    `write_new` writes files in it. `overwrite` replaces an existing folder, at no moment without either.

    Raises AlreadyExists for an existing folder without `overwrite`, InvalidArgument for a file of that name, else as
    `write_whole`.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidArgument(f"'{folder}' is a file, not a folder", hint="give the path of a folder")
    if folder.exists() and not overwrite:
        raise AlreadyExists(f"'{folder}' exists", hint="give another folder, or overwrite=True")
    with _writing_beside(folder.parent, folder) as aside:
        new = aside / _NEW
        disk.make_folder(new, 0o777)
        yield new
        for path, _, _ in os.walk(new, topdown=False):
            disk.sync_folder(Path(path))
        if not (overwrite and folder.exists()):
            disk.rename(new, folder)  # an error for a folder that has appeared meanwhile
        elif not disk.exchange(new, folder):
            _exchange_in_three_steps(new, folder, aside / _REPLACED / folder.name)
        disk.sync_folder(folder.parent)


def write_new(file: Path, chunks: Iterable[Buffer]) -> None:
    """Write a file of a folder that `writing_folder` yielded, and the missing folders above the file."""
    make_folders(file.parent)
    with _creating(file, READABLE) as out:
        out.writelines(chunks)


def make_folders(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and its missing parents, each with this mode. Raises OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        try:
            disk.make_folder(path, mode)
        except FileExistsError:
            if not path.is_dir():  # else another process made it meanwhile
                raise
        disk.sync_folder(path.parent)


def add_names(names: Mapping[Path, Path]) -> None:
    """Give each file a second name; a file there is replaced. File systems without links get copies.

    Raises as `write_whole`.
    """
    for file, name in names.items():
        with naming(file):
            disk.sync_file(file)
        with naming(name):
            remove_all([name])
            if not disk.link(file, name):
                write_whole(name, [mapped_file.contents(file)])
    for folder in {name.parent for name in names.values()}:
        disk.sync_folder(folder)


def remove_all(files: Iterable[Path]) -> None:
    """Remove files, where they exist. Raises PermissionDenied or Unknown for a file that cannot be removed."""
    for file in files:
        with naming(file), suppress(FileNotFoundError):
            disk.remove(file)


def remove_folder(folder: Path) -> None:
    """Remove an empty folder. Raises PermissionDenied or Unknown for one that cannot be removed."""
    with naming(folder):
        disk.remove_folder(folder)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an OSError into the typed error, located at `path`: the path that the user gave."""
    try:
        yield
    except HealdError:  # PermissionDenied is an OSError, too
        raise
    except OSError as error:
        raise of_system(error, path) from error


@contextmanager
def _creating(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Yield a new, open file, and sync its content."""
    raw = _NewFile(disk.create(path, mode), "rb+")
    # NumPy writes to a BufferedWriter by descriptor, past `disk`. Opened for both directions it calls `write`.
    with io.BufferedRandom(raw, _BUFFER_BYTES) as out:
        yield out
        out.flush()
        disk.sync(raw.fileno())


class _NewFile(io.FileIO):
    def write(self, data: Buffer) -> int:  # type: ignore[override]
        return disk.write(self.fileno(), data)


def _check_regular(file: Path) -> None:
    with naming(file):
        if file.exists() and not file.is_file():  # a rename to the name of a device would end the device
            raise InvalidArgument("this is not a regular file", location=Location(str(file)))


def _exchange_in_three_steps(new: Path, folder: Path, replaced: Path) -> None:
    """Exchange two folders. After an error or a kill `_remove_aside` gives `replaced` its name again."""
    disk.make_folder(replaced.parent, 0o777)
    disk.rename(folder, replaced)
    disk.rename(new, folder)
    disk.rename(replaced, new)


@contextmanager
def _writing_beside(parent: Path, target: Path) -> Iterator[Path]:
    """Yield a temporary folder in `parent` for the files of `target`. Errors name `target`."""
    with naming(target):
        _check_folder(parent, target)
        remove_leftovers(parent)
        aside, lock = _make_locked_folder(parent)
        with _closing(lock):
            try:
                yield aside
            finally:
                with suppress(OSError):  # the error that is being raised states the cause
                    _remove_aside(aside)


def _check_folder(parent: Path, target: Path) -> None:
    if not parent.exists():
        raise NotFound(f"the folder '{parent}' does not exist", location=Location(str(target)), hint="make it first")
    if not parent.is_dir():
        raise NotFound(f"'{parent}' is a file, not a folder", location=Location(str(target)),
                       hint="give a path in a folder")


def _make_locked_folder(parent: Path) -> tuple[Path, int | None]:
    """Return a new temporary folder and the descriptor of its lock; None where the system has no such locks.

    Another writer may remove the folder before the lock is held: then the next folder is tried.
    """
    while True:
        aside = parent / f".heald-{os.urandom(6).hex()}.tmp"
        disk.make_folder(aside, 0o777)
        with suppress(FileNotFoundError):
            lock = _lock(aside, wait=True)
            if lock is None or aside.exists():
                return aside, lock
            os.close(lock)


@contextmanager
def _closing(lock: int | None) -> Iterator[None]:
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lock(aside: Path, *, wait: bool) -> int | None:
    """Return a descriptor that holds the lock of a temporary folder, or None if another has it or none can.

    Raises FileNotFoundError for a folder that is gone.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    descriptor = os.open(aside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_leftovers(parent: Path) -> None:
    """Remove the temporary folders in `parent` whose writers were killed. An error leaves the folder as it is."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_leftover(Path(entry.path))


def _remove_leftover(aside: Path) -> None:
    lock = None if is_foreign(aside.lstat()) else _lock(aside, wait=False)
    if lock is not None:
        with _closing(lock):
            _remove_aside(aside)


def _remove_aside(aside: Path) -> None:
    """Remove a temporary folder. A folder that was replaced by nothing gets its name again."""
    for replaced in (aside / _REPLACED).glob("*"):
        if not (aside.parent / replaced.name).exists():
            disk.rename(replaced, aside.parent / replaced.name)
    _remove_tree(aside)


def _remove_tree(folder: Path) -> None:
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            disk.remove(Path(path, name))
        for name in folders:
            inner = Path(path, name)
            (disk.remove if inner.is_symlink() else disk.remove_folder)(inner)
    disk.remove_folder(folder)
