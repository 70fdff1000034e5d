"""The section [files]: the files that ops of a graph may open."""

from __future__ import annotations

from ..support.records import dataclass


@dataclass(frozen=True)
class FilesConfig:
    """The section [files]. By default no op opens a file.

    `read`: Folders from which ops may read files.
    `write`: Folders to which ops may write files.
    `allow_ops`: Names of ops that may open files in any folder.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    allow_ops: tuple[str, ...] = ()
