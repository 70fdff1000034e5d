"""A model's files on the nodes of a cluster.

The caller reads the files once, into one array of bytes and a manifest. Ray's object store moves the array to each node
at most once. The first actor of a node writes the files below the temporary folder, in a folder named by their hash;
the others find it there. A found folder is believed only when it belongs to this user and its files have the hash.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from heald.errors import AlreadyExists, DataLoss, InvalidArgument, NotFound, PermissionDenied, of_system
from heald.runtime.support import whole_file

MOST_FILES = 100_000
PRIVATE_FOLDER = 0o700
_CHUNK_BYTES = 1 << 20


ReadContents = Callable[[], Any]


class ModelFiles(NamedTuple):
    """`name`: The file or folder that is the model. `sizes`: Bytes by path relative to it; "" for the only file.

    `digest`: SHA-256 of the manifest and the contents.
    """

    name: str
    sizes: Mapping[str, int]
    digest: str


def read_model_files(path: str | os.PathLike[str]) -> tuple[ModelFiles, Any]:
    """Return the manifest and the contents of a model's files, one behind the other, as an array of bytes.

    Raises NotFound and PermissionDenied for files that cannot be read, InvalidArgument for too many of them.
    """
    import numpy as np

    root = Path(path)
    try:
        files = {"": root} if root.is_file() else {file.relative_to(root).as_posix(): file for file in _walk(root)}
        sizes = {name: file.stat().st_size for name, file in files.items()}
        contents, start = np.empty(sum(sizes.values()), np.uint8), 0
        for name, file in files.items():
            with file.open("rb") as source:
                if source.readinto(contents[start : start + sizes[name]].data) != sizes[name]:
                    raise DataLoss(f"'{file}' became shorter while it was read")
            start += sizes[name]
    except OSError as error:
        raise of_system(error, str(path)) from error
    if not files:
        raise NotFound(f"'{path}' has no file", hint="name the file or folder of a model")
    return ModelFiles(root.resolve().name, sizes, _digest(sizes, [contents])), contents


def _walk(root: Path) -> list[Path]:
    if not root.is_dir():
        raise NotFound(f"'{root}' is no file and no folder",
                       hint="name the file or folder of a model; a path on all workers: model_on_workers")
    files = sorted(Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    if len(files) > MOST_FILES:
        raise InvalidArgument(f"'{root}' has {len(files):,} files; a model has at most {MOST_FILES:,}",
                              hint="name the folder of the model alone")
    return files


def model_path(files: ModelFiles, read_contents: ReadContents) -> Path:
    """Return the path of the model on this node, and write its files where none has yet.

    `read_contents`: Returns the contents, as an array of bytes. A node that has the files asks for none.

    Raises DataLoss for contents that do not have the manifest's hash, PermissionDenied for a folder of another user.
    """
    cache = Path(tempfile.gettempdir(), f"heald-ray-{_user()}")
    whole_file.make_folders(cache, PRIVATE_FOLDER)
    _check_owner(cache)
    folder = cache / files.digest
    if not folder.is_dir():
        _write(files, read_contents(), folder)
    model = folder / _safe(files.name)
    try:
        digest = _digest(files.sizes, _chunks_of_files([model / _safe(name) for name in files.sizes]))
    except OSError as error:
        raise of_system(error, str(model)) from error
    if digest != files.digest:
        raise DataLoss(f"the files in '{folder}' are not those of the model", hint="remove this folder")
    return model


def _write(files: ModelFiles, contents: Any, folder: Path) -> None:
    if _digest(files.sizes, [contents]) != files.digest:
        raise DataLoss(f"the files of '{files.name}' arrived with other bytes than they were sent with")
    # Another actor of this node may write the same files at this moment: the first one names the folder.
    with suppress(AlreadyExists, FileExistsError), whole_file.writing_folder(folder) as new:
        start = 0
        for name, size in files.sizes.items():
            whole_file.write_new(new / _safe(files.name) / _safe(name), [contents[start : start + size].data])
            start += size


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise InvalidArgument(f"'{name}' leads out of the model's folder")
    return path


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _check_owner(folder: Path) -> None:
    state = folder.lstat()
    if hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & 0o022 or folder.is_symlink()):
        raise PermissionDenied(f"'{folder}' belongs to another user, or others may write to it",
                               hint="remove it, or set TMPDIR on this node")


def _chunks_of_files(files: list[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as source:
            while chunk := source.read(_CHUNK_BYTES):
                yield chunk


def _digest(sizes: Mapping[str, int], chunks: Any) -> str:
    digest = hashlib.sha256(repr(sorted(sizes.items())).encode("utf-8", "surrogateescape"))
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
