"""The model files below a folder, by the recognition of single files: no suffix and no format is named twice.

A SavedModel, and a package of Core ML, is one model: its folder. The graph of a checkpoint stands for the checkpoint.
Other files are models by their first bytes, or by a suffix of graphs. Loaders of plugins come first: a file that one of
them recognises is a model of its format, whatever heald knows of its kind. Text files of any content share some
suffixes of graphs, so such a file is a model only where it begins as a graph does.

Links are not followed: a link within the folder leads to a file that the walk meets anyway, and another link leads out.
The walk holds the names of one folder at a time, and does not recurse.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...errors import FailedPrecondition, HealdError, InvalidArgument, Location, NotFound
from ...graphs.graph.graphdef_suffixes import TEXT_SUFFIXES
from ...runtime.contract.loader import HEAD_BYTES
from ...runtime.program.bef.sections import MAGIC
from ...runtime.service.loading import is_recognised, is_recognised_by_plugin
from ...runtime.service.model_place import SAVED_MODEL_FILES, locate_model
from ...runtime.service.runtime import runtime
from ...runtime.support import mapped_file
from ...runtime.support.archive import is_archive
from ...runtime.support.file_kinds import KINDS, FileKind, kind_of_file
from ...runtime.support.file_path import file_path
from ...runtime.support.input_file import reading

CHECKPOINT_GRAPH, CHECKPOINT_INDEX = ".meta", ".index"
_OF_GRAPHS = frozenset((".pb", ".pbtxt", CHECKPOINT_GRAPH, CHECKPOINT_INDEX))
_OF_MODELS = _OF_GRAPHS.union(*(kind.suffixes for kind in KINDS if kind.is_model))
_CHECKPOINT_VALUES = re.compile(r"\.data-\d{5}-of-\d{5}")
_TEXT_GRAPH = re.compile(rb"(?:\s|#[^\n]*+\n)*+(?:node|versions|library|graph_def|meta_graphs)\s*+:?\s*+\{")


class ModelFile(NamedTuple):
    """A model: the path of its file or folder, its name below the scanned folder, and its kind where that is no format
    of a loader."""

    path: Path
    name: str
    kind: FileKind | None


class ModelFiles(NamedTuple):
    """The models below a folder by name. `others` and `links` count files that are none, and links that were not
    followed. `faults` has the errors of folders and files that cannot be read."""

    models: list[ModelFile]
    others: int
    links: int
    faults: list[HealdError]


class _Walk:
    """One walk over a folder, and its counts so far."""

    def __init__(self, root: Path) -> None:
        self.root, self.others, self.links = root, 0, 0
        self.faults: list[HealdError] = []

    def models(self) -> Iterator[ModelFile]:
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            try:
                with reading(folder):
                    model = self._folder_model(folder)
                    folders, files = self._entries(folder, is_model=model is not None)
            except HealdError as error:
                self.faults.append(error)
                continue
            if model is not None:
                yield model
            if model is None or model.kind is None:  # versions of a model may be in its folder
                waiting += folders
            yield from self._file_models(files)

    def _folder_model(self, folder: Path) -> ModelFile | None:
        """The model that a folder is as a whole: a format of folders, or a package with the suffix of one."""
        kind = next((kind for kind in KINDS if kind.is_model and folder.suffix.lower() in kind.suffixes), None)
        if kind is None and not any(os.path.lexists(folder / name) for name in SAVED_MODEL_FILES):
            return None
        return ModelFile(folder, self._name(folder), kind)

    def _entries(self, folder: Path, *, is_model: bool) -> tuple[list[Path], list[Path]]:
        """The folders and the files of a folder, but for the parts of a model."""
        folders, files = list[Path](), list[Path]()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = Path(entry.path)
                if entry.is_symlink():
                    self.links += 1
                elif entry.is_dir(follow_symlinks=False):
                    folders += [path] * (not is_model or entry.name not in _PARTS)
                elif is_model or _is_part_of_checkpoint(path):
                    continue
                elif entry.is_file(follow_symlinks=False):
                    files.append(path)
                else:
                    self.others += 1
        return folders[::-1], files

    def _file_models(self, files: list[Path]) -> Iterator[ModelFile]:
        for path in files:
            try:
                with reading(path):
                    head = mapped_file.head(path, HEAD_BYTES)
                    is_claimed = is_recognised_by_plugin(path, head, runtime().host.registries)
                    kind = None if is_claimed else kind_of_file(path, head)
                    if is_claimed or _is_model(path, head, kind):
                        yield ModelFile(path, self._name(path), kind if kind is not None and kind.is_model else None)
                    else:
                        self.others += 1
            except HealdError as error:
                self.faults.append(error)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


_PARTS = frozenset(("variables", "assets", "assets.extra"))  # the folders of a SavedModel


def is_folder_of_models(text: str) -> bool:
    """True for a folder that is no model itself, neither by a loader nor by its content."""
    with suppress(HealdError, OSError):
        folder = file_path(text)
        return (folder.is_dir() and not is_recognised(folder, b"", runtime().host.registries)
                and locate_model(folder, b"").path == folder)
    return False  # the loaders tell the fault


def find_models(folder: Path) -> ModelFiles:
    """Return the models below a folder. Raises NotFound without one, InvalidArgument for a file."""
    if not folder.exists():
        raise NotFound("no such folder", location=Location(str(folder)))
    if not folder.is_dir():
        raise InvalidArgument("this is a file, not a folder", location=Location(str(folder)),
                              hint="heald inspect shows one model")
    walk = _Walk(folder.resolve())
    models = sorted(walk.models(), key=lambda model: model.name)
    return ModelFiles(models, walk.others, walk.links, walk.faults)


def check_links(model: ModelFile, root: Path) -> None:
    """Raises FailedPrecondition for a model with a part that is a link out of the folder `root`."""
    for part in _parts(model.path):
        if part.is_symlink() and not part.resolve().is_relative_to(root.resolve()):
            raise FailedPrecondition(f"'{part.name}' is a link that leads out of the folder, and it is not followed",
                                     hint=f"heald inspect {model.path} follows it")


def _parts(path: Path) -> Iterator[Path]:
    """The files of a model: all in its folder, or those of a checkpoint."""
    if path.is_dir():
        for folder, folders, files in os.walk(path):
            yield from (Path(folder) / name for name in (*folders, *files))
    elif path.suffix == CHECKPOINT_GRAPH:
        yield from (file for file in path.parent.iterdir() if file.name.startswith(path.stem))


def _is_part_of_checkpoint(path: Path) -> bool:
    """True for an index whose graph is beside it, which stands for both, and for a file of values."""
    return (path.suffix == CHECKPOINT_INDEX and path.with_suffix(CHECKPOINT_GRAPH).is_file()) or (
        _CHECKPOINT_VALUES.fullmatch(path.suffix) is not None)


def _is_model(path: Path, head: bytes, kind: FileKind | None) -> bool:
    suffix = path.suffix.lower()
    if kind is not None and not head.startswith(MAGIC):
        return (kind.is_model or suffix == ".pb" or (kind.is_failed_download and suffix in _OF_MODELS)
                or (kind.is_container and is_archive(path, head)))
    if suffix in TEXT_SUFFIXES - _OF_GRAPHS:
        return _TEXT_GRAPH.match(head) is not None
    return suffix in _OF_GRAPHS or is_recognised(path, head, runtime().host.registries)
