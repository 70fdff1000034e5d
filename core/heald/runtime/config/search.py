"""Search: the config files in the working folder and above it, and the user's own.

A found file may have come with a model from a stranger. Unless the user trusts it, its layer is marked
(`Setting.found_file`) and sets harmless settings only. The user's own file sets everything, unless another user could
have written it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ...errors import HealdError, InvalidArgument
from ..support.user_files import config_folder, is_foreign, is_private
from . import trust as config_trust
from .schema import FoundFile, Setting

PROJECT_FILE_NAMES = ("heald.toml", "pyproject.toml")
ROOT_MARKS = (".git", "pyproject.toml")  # a project's root folder has one of them
USER_FILE = "config.toml"
_contents_without_table: dict[Path, bytes] = {}  # by pyproject.toml: its last content, which had no table for heald
_TABLE = rb"\[\s*tool\s*\.\s*heald\s*[.\]]"


class Search:
    """One search, for a process with this environment. `left_out`: a warning for each file that is not used at all."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.left_out: list[str] = []
        self._user_folder = config_folder(environ)
        self._trusted = config_trust.trusted_hashes(self._user_folder)

    def layers(self, folder: Path, named: Collection[Path] = ()) -> Iterator[Setting]:
        """The layers of the files found from `folder`, the strongest first. Files in `named` are skipped: they count
        already.

        Raises InvalidArgument for a fault of the user's own file, and of one that the user trusts.
        """
        named_paths = {os.path.realpath(path) for path in named}
        for path in project_files(folder):
            if os.path.realpath(path) not in named_paths:
                yield from self._project(path)
        user = self._user_folder and self._user_folder / USER_FILE
        if user is not None and os.path.isfile(user) and os.path.realpath(user) not in named_paths:  # noqa: PTH113
            yield from self._user(user)

    def _project(self, path: Path) -> Iterator[Setting]:
        """The layer of a project's file, or none for a file of another user."""
        from .file import parse, read

        digest = self._trusted.get(os.path.realpath(path))
        if digest is None and any(map(is_foreign, (path.lstat(), path.stat()))):
            if path.name == PROJECT_FILE_NAMES[0] or _has_table(path):
                self._leave_out(path, "heald", "config", "trust", str(path))
            return
        try:
            content = read(path)
        except InvalidArgument as error:
            self._leave_out_faulty(error)
            return
        if path.name != PROJECT_FILE_NAMES[0] and (
                b"heald" not in content.data or _contents_without_table.get(path) == content.data):
            return  # the usual pyproject.toml, without a table for heald: not parsed
        if digest is not None and digest == config_trust.digest(content.data):
            yield parse(path, content.data)
        elif is_foreign(content.status):
            self._leave_out(path, "heald", "config", "trust", str(path))
        else:
            yield from self._found_layer(path, content.data, untrusted_file(path, has_changed=digest is not None))

    def _user(self, path: Path) -> Iterator[Setting]:
        from .file import parse, read

        content = read(path)
        if is_foreign(content.status):
            self._leave_out(path, "chown", str(os.geteuid()), str(path))
        elif is_private(content.status):
            yield parse(path, content.data)
        else:
            found_file = FoundFile(str(path), "can be written by others", ("chmod", "go-w", str(path)))
            yield from self._found_layer(path, content.data, found_file)

    def _found_layer(self, path: Path, data: bytes, found_file: FoundFile) -> Iterator[Setting]:
        """The layer of a found file, or none for one that is empty or cannot be parsed."""
        from .file import parse

        try:
            layer = parse(path, data, found_file)
        except InvalidArgument as error:
            self._leave_out_faulty(error)
            return
        if layer.value != {}:
            yield layer
        elif path.name == PROJECT_FILE_NAMES[1]:
            _contents_without_table[path] = data

    def _leave_out(self, path: Path, *remedy: str) -> None:
        import shlex  # for this message alone

        self.left_out.append(f"{path} belongs to another user and is not used; to use it: {shlex.join(remedy)}")

    def _leave_out_faulty(self, error: InvalidArgument) -> None:
        self.left_out.append(f"{error}; this config file is not used")


def _has_table(path: Path) -> bool:
    """True for a pyproject.toml that seems to have a table for heald, by a search without parsing."""
    from .file import read

    try:
        return re.search(_TABLE, read(path).data) is not None
    except HealdError:
        return False


def project_files(folder: Path) -> Iterator[Path]:
    """The nearest file of each name, in `folder` or above it up to the project's root.

    Without a root the search ends at the root of the file system. Shared folders on the way do no harm, because files
    of other users are skipped.
    """
    folders = []
    for parent in (folder, *folder.parents):
        folders.append(parent)
        if any(os.path.lexists(parent / mark) for mark in ROOT_MARKS):
            break
    for name in PROJECT_FILE_NAMES:
        # pathlib's own test raises for a folder that cannot be searched
        yield from [path for path in (parent / name for parent in folders) if os.path.isfile(path)][:1]  # noqa: PTH113


def untrusted_file(path: Path, *, has_changed: bool = False) -> FoundFile:
    why = "has changed since it was trusted" if has_changed else "was found, not named"
    return FoundFile(str(path), why, ("heald", "config", "trust", str(path)))
