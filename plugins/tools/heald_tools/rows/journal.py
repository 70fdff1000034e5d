"""The journal of a run over many rows: its inputs and options, and how far it has come.

A run that was cut off goes on with `--resume` where its journal says. It refuses where inputs, model or options are
others, since its rows would be of two runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heald.errors import AlreadyExists, DataLoss, FailedPrecondition
from heald.runtime.support import whole_file

VERSION = 1
_CHUNK = 1 << 20  # bytes


class Reached(NamedTuple):
    """The state of a run. `read`: rows of the inputs, good and bad. `columns`: the names in the table.

    `parts`: The files that are written, in order.
    """

    read: int = 0
    written: int = 0
    bad: int = 0
    columns: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


class Journal:
    """`identity`: inputs, model and options, by which a run knows its own journal. `resume`: This run goes on."""

    def __init__(self, path: Path, identity: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self._resume = resume
        self._identity = json.loads(json.dumps(identity))

    def load(self) -> Reached:
        """Read how far the run has come. Raises AlreadyExists for a journal with which this run does not go on,
        FailedPrecondition for one of another run, DataLoss for a damaged one."""
        if not self._resume and self.path.exists():
            raise AlreadyExists(f"'{self.path}' is of an earlier run",
                                hint=f"--resume goes on with it; remove '{self.path.parent}' to begin anew")
        try:
            content = json.loads(self.path.read_bytes())
            reached = content["reached"]
            identity = content["identity"]
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']}")
            state = Reached(int(reached["read"]), int(reached["written"]), int(reached["bad"]),
                            tuple(map(str, reached["columns"])), tuple(map(str, reached["parts"])))
        except FileNotFoundError:
            return Reached()
        except (ValueError, KeyError, TypeError) as error:
            raise DataLoss(f"the journal '{self.path}' is damaged: {error}",
                           hint="remove it, and the unfinished output, to begin anew") from error
        for key, value in self._identity.items():
            if identity.get(key) != value:
                raise FailedPrecondition(f"--resume: {key} changed since '{self.path}' was written",
                                         hint=f"remove '{self.path.parent}' to begin anew")
        return state

    def save(self, reached: Reached) -> None:
        content = {"version": VERSION, "identity": self._identity, "reached": reached._asdict()}
        whole_file.write_whole(self.path, [json.dumps(content, indent=1).encode()])


def identity_of(model: Path | str, files: Iterable[Path], options: str) -> dict[str, Any]:
    """The inputs with their sizes and times, the hash of the model's files, and the options."""
    return {"inputs": [_size_and_time(file) for file in files], "model": _hash_of(model), "options": options}


def _size_and_time(file: Path) -> list[Any]:
    try:
        stat = file.stat()
    except OSError:  # a link to nothing: its row is told when it is read
        return [str(file), None, None]
    return [str(file), stat.st_size, stat.st_mtime_ns]


def _hash_of(model: Path | str) -> str:
    """The SHA-256 of a file, or of all files of a folder with their names; the address of a served model itself."""
    if isinstance(model, str):
        return model
    digest = hashlib.sha256()
    files = sorted(path for path in model.rglob("*") if path.is_file()) if model.is_dir() else [model]
    for file in files:
        digest.update(f"{file.relative_to(model) if model.is_dir() else file.name}\0".encode())
        with file.open("rb") as data:
            while chunk := data.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()
