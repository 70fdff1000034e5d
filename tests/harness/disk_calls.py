"""Kills and power cuts of writers, at each call of `heald.runtime.support.disk`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from heald.runtime.support import disk

CALLS = ("create", "write", "sync", "sync_file", "sync_folder", "make_folder", "rename", "exchange", "link", "remove",
         "remove_folder")
SYNCS = ("sync", "sync_file", "sync_folder")


class Killed(BaseException):
    """The end of a writer; no later call of it has an effect."""


class Call(NamedTuple):
    """`args`: the call's arguments; for `write` the number of the created file, the offset and the bytes."""

    name: str
    args: tuple[Any, ...]


@contextmanager
def without_syncs() -> Iterator[None]:
    """Make the syncs of the disk do nothing: they take milliseconds each, and only power cuts show their effect."""
    with patch.dict(vars(disk), dict.fromkeys(SYNCS, lambda *args: None)):
        yield


@contextmanager
def killing(survived: int, end: Callable[[], None]) -> Iterator[None]:
    """Let `survived` calls of the disk happen, and call `end` in place of the next one. A write is half done then."""
    count = 0

    def count_calls(name: str) -> Callable[..., Any]:
        real = getattr(disk, name)

        def call(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count > survived:
                if name == "write" and count == survived + 1:
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                end()
            return real(*args)

        return call

    with patch.dict(vars(disk), {name: count_calls(name) for name in CALLS}):
        yield


def end_by_exception() -> None:
    raise Killed


@contextmanager
def recording(calls: list[Call]) -> Iterator[None]:
    """Record the calls of the disk."""
    files: dict[int, int] = {}  # by descriptor, the number of its file

    def record_calls(name: str) -> Callable[..., Any]:
        real = getattr(disk, name)

        def call(*args: Any) -> Any:
            if name == "write":
                calls.append(Call(name, (files[args[0]], os.lseek(args[0], 0, os.SEEK_CUR), bytes(args[1]))))
            elif name == "sync":
                calls.append(Call(name, (files[args[0]],)))
            result = real(*args)
            if name == "create":
                files[result] = len(calls)
            if name not in ("write", "sync") and result is not False:
                calls.append(Call(name, args))
            return result

        return call

    with patch.dict(vars(disk), {name: record_calls(name) for name in CALLS}):
        yield


@dataclass(eq=False)
class File:
    """`content`: the bytes on the disk; `pending`: the writes that are not synced."""

    content: bytes = b""
    pending: list[tuple[int, bytes]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, data in self.pending:
            self.content = _with_write(self.content, offset, data)
        self.pending = []

    def after_cut(self, draw: Random, lost: float) -> bytes:
        """The content after a power cut. Each pending write is lost with the probability `lost`, torn or whole."""
        content = self.content
        for offset, data in self.pending:
            if draw.random() >= lost:
                torn = draw.random() < 0.5
                content = _with_write(content, offset, data[: draw.randrange(len(data))] if torn and data else data)
        return content


@dataclass(eq=False)
class Folder:
    names: dict[str, File | Folder] = field(default_factory=dict)


class Change(NamedTuple):
    """Names that one call changed together; None for a removed one."""

    names: tuple[tuple[Folder, str, File | Folder | None], ...]


# Changes of names without sync that survive a power cut: none, all, the last or some.
_SURVIVES: tuple[Callable[[int, int, Random], bool], ...] = (
    lambda number, count, draw: False, lambda number, count, draw: True,
    lambda number, count, draw: number == count - 1, lambda number, count, draw: draw.random() < 0.5)


class Disk:
    """A model of a disk: synced content and names survive a power cut; each other change survives or not."""

    def __init__(self, root: Path, start: Path, calls: list[Call]) -> None:
        """Make a disk with the content of the folder `start`, and make calls for paths in the folder `root`."""
        self._root = root
        self._top = _read(start)
        self._at_start = _names_by_folder(self._top)
        self._changes: list[Change] = []
        self._synced: set[int] = set()  # indices of changes
        self._files: dict[int, File] = {}
        for number, call in enumerate(calls):
            getattr(self, f"_{call.name}")(number, *call.args)

    def after_cut(self, draw: Random) -> dict[str, bytes]:
        """Return the files after a power cut, by path."""
        lost_data = draw.choice((0, 0.5, 1))  # the share of the data without sync
        survives = draw.choice(_SURVIVES)
        names = {folder: dict(entries) for folder, entries in self._at_start.items()}
        for number, change in enumerate(self._changes):
            if number in self._synced or survives(number, len(self._changes), draw):
                for folder, name, node in change.names:
                    names.setdefault(folder, {}).pop(name, None)
                    if node is not None:
                        names[folder][name] = node
        return dict(_files(self._top, names, draw, lost_data))

    def _place(self, path: Path) -> tuple[Folder, str]:
        folder = self._top
        *parents, name = path.relative_to(self._root).parts
        for parent in parents:
            folder = folder.names[parent]  # type: ignore[assignment]
        return folder, name

    def _node(self, path: Path) -> Any:
        if path == self._root:
            return self._top
        folder, name = self._place(path)
        return folder.names[name]

    def _change(self, *names: tuple[Path, File | Folder | None]) -> None:
        placed = [(*self._place(path), node) for path, node in names]
        for folder, name, node in placed:
            folder.names.pop(name, None)
            if node is not None:
                folder.names[name] = node
        self._changes.append(Change(tuple(placed)))

    def _create(self, number: int, path: Path, mode: int) -> None:
        del mode
        self._files[number] = File()
        self._change((path, self._files[number]))

    def _write(self, number: int, file: int, offset: int, data: bytes) -> None:
        del number
        self._files[file].pending.append((offset, data))

    def _sync(self, number: int, file: int) -> None:
        del number
        self._files[file].sync()

    def _sync_file(self, number: int, path: Path) -> None:
        del number
        self._node(path).sync()

    def _sync_folder(self, number: int, path: Path) -> None:
        del number
        folder = self._node(path)
        self._synced.update(n for n, change in enumerate(self._changes)
                            if any(folder is changed for changed, *_ in change.names))

    def _make_folder(self, number: int, path: Path, mode: int) -> None:
        del number, mode
        self._change((path, Folder()))

    def _rename(self, number: int, old: Path, new: Path) -> None:
        del number
        self._change((old, None), (new, self._node(old)))

    def _exchange(self, number: int, one: Path, other: Path) -> None:
        del number
        self._change((one, self._node(other)), (other, self._node(one)))

    def _link(self, number: int, old: Path, new: Path) -> None:
        del number
        self._change((new, self._node(old)))

    def _remove(self, number: int, path: Path) -> None:
        del number
        self._change((path, None))

    _remove_folder = _remove


def _with_write(content: bytes, offset: int, data: bytes) -> bytes:
    return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data):]


def _read(folder: Path) -> Folder:
    return Folder({path.name: _read(path) if path.is_dir() else File(path.read_bytes()) for path in folder.iterdir()})


def _names_by_folder(folder: Folder) -> dict[Folder, dict[str, File | Folder]]:
    names = {folder: dict(folder.names)}
    for node in folder.names.values():
        if isinstance(node, Folder):
            names |= _names_by_folder(node)
    return names


def _files(folder: Folder, names: dict[Folder, Any], draw: Random, lost: float) -> Iterator[tuple[str, bytes]]:
    for name, node in names.get(folder, {}).items():
        if isinstance(node, Folder):
            yield from ((f"{name}/{path}", content) for path, content in _files(node, names, draw, lost))
        else:
            yield name, node.after_cut(draw, lost)
