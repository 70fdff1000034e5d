"""FilePolicy: the files that ops of a graph may open, as [files] says.

A kernel that opens files declares its accesses (`KernelDef.files`) and gets each path from `Bind.file`. A step whose
kernels are not permitted any file is refused before it is linked. Each path is checked when a kernel asks for it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from ...errors import InvalidArgument, PermissionDenied
from ..config.files import FilesConfig

READ, WRITE = "read", "write"


class FilePolicy:
    """Permits an op to read or write a file. Immutable.

    A step is checked by `permits` before it runs, and each path by `path` when a kernel opens it.
    """

    def __init__(self, config: FilesConfig) -> None:
        self._ops = frozenset(config.allow_ops)
        self._folders = {READ: _resolve_folders(config.read), WRITE: _resolve_folders(config.write)}

    def with_readable(self, folders: Iterable[Path]) -> FilePolicy:
        """Return a policy that permits reading in these folders, too: a model's own files."""
        wider = FilePolicy(FilesConfig())
        wider._ops = self._ops
        wider._folders = {**self._folders, READ: (*self._folders[READ], *_resolve_folders(map(str, folders)))}
        return wider

    def permits(self, op: str, accesses: Iterable[str]) -> bool:
        """True when some file could be opened by the op in each of these ways, "read" and "write"."""
        return op in self._ops or all(self._folders[access] for access in accesses)

    def path(self, op: str, name: str | bytes, access: str) -> Path:
        """Return the path of a file, its folder resolved.

        Raises PermissionDenied for a path, or the target of a link, outside the folders of this access; InvalidArgument
        for a name that no file can have.
        """
        try:
            file = Path(os.fsdecode(name))
            _check_links(file.parent)
            resolved = file.parent.resolve() / file.name
            target = resolved.resolve()
        except (OSError, RuntimeError, ValueError) as error:  # too long, links in a circle, zeros
            raise InvalidArgument(f"{name!r} names no file: {error}", op=op) from None
        if op not in self._ops and not any(
            resolved.is_relative_to(root) and target.is_relative_to(root) for root in self._folders[access]
        ):
            raise PermissionDenied(f"{op} may not {access} '{resolved}'", op=op,
                                   hint=f"add its folder to [files] {access}")
        return resolved


def refusal(nodes: Iterable[tuple[str, str, Iterable[str]]]) -> PermissionDenied:
    """Return the error of a step whose nodes may not open files: name, op and accesses of each node."""
    listed = [(f"{node} ({op})", op, {*accesses}) for node, op, accesses in nodes]
    keys = {access for _, _, accesses in listed for access in accesses}
    ops = ", ".join(repr(op) for op in sorted({op for _, op, _ in listed}))
    shown = ", ".join(access_text[0] for access_text in listed[:_LONGEST_NODE_LIST])
    more = f" and {len(listed) - _LONGEST_NODE_LIST} more" if len(listed) > _LONGEST_NODE_LIST else ""
    folders = " and ".join(f"[files] {key} = [FOLDER, ...]" for key in sorted(keys))
    return PermissionDenied(f"these nodes open files, and the config permits none: {shown}{more}",
                            hint=f"set {folders}, or [files] allow_ops = [{ops}]")


_LONGEST_NODE_LIST = 20


def _check_links(folder: Path) -> None:
    """Raises OSError for links in a circle, which `Path.resolve` passes over since Python 3.13."""
    try:
        folder.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise


def _resolve_folders(folders: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(folder).resolve() for folder in folders)
