"""The place of a model behind a path that is no model itself.

A folder of a server has versions of a model, "m/1" and "m/7": the highest is the model. An archive is unpacked, and the
model in it is, in this order, its only SavedModel, or its only file with a graph. A checkpoint is named by the common
part of its files' names, by one of these files or by its folder: the model is the graph beside them, in "NAME.meta".
Loaders come first: a path that one of them recognises is not searched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InvalidArgument, Location, NotFound
from ..support import mapped_file
from ..support.file_kinds import kind_of_file
from ..support.input_file import reading
from ..support.records import NamedTuple

if TYPE_CHECKING:
    from ..support.archive import Unpacked

SAVED_MODEL_FILES = frozenset(("saved_model.pb", "saved_model.pbtxt"))  # the files that tell such a folder
_GRAPH_SUFFIXES = frozenset((".pb", ".pbtxt"))
_CHECKPOINT_FILE = re.compile(r"(.+)\.(?:index|data-\d{5}-of-\d{5})")
_LATEST = re.compile(rb'^\s*model_checkpoint_path\s*:\s*"([^"\n\0]*)"', re.MULTILINE)
_LARGEST_LISTING_BYTES = 1 << 16


class LocatedModel(NamedTuple):
    """The path of a model. `unpacked`: the folder that must outlive the use of the path."""

    path: Path
    unpacked: Unpacked | None = None


def locate_model(path: Path, head: bytes) -> LocatedModel:
    """Return the place of the model behind a path, which is the path itself where there is no other.

    Raises the errors of `archive.unpack`; NotFound or InvalidArgument for an archive without one model.
    """
    if path.is_dir():
        return LocatedModel(_highest_version(path) or _latest_checkpoint(path) or path)
    prefix = _CHECKPOINT_FILE.fullmatch(path.name)
    if prefix is not None:
        return LocatedModel(graph_of_checkpoint(path.with_name(prefix[1])) or path)
    kind = kind_of_file(path, head)
    if kind is None or not kind.is_container:
        return LocatedModel(path)
    from ..support.archive import Unpacked, is_archive  # its modules take milliseconds to import

    if not is_archive(path, head):
        return LocatedModel(path)
    unpacked = Unpacked(path)
    with reading(path):
        return LocatedModel(_only_model(unpacked.folder), unpacked)


def graph_of_checkpoint(prefix: Path) -> Path | None:
    """Return the file with the graph of the checkpoint of this prefix, or None where there is no checkpoint.

    Raises NotFound for a checkpoint without a graph.
    """
    graph = prefix.with_name(f"{prefix.name}.meta")
    if graph.is_file():
        return graph
    if prefix.with_name(f"{prefix.name}.index").is_file():
        raise NotFound(f"this is a checkpoint without a graph: '{graph.name}' is missing",
                       location=Location(str(prefix)), hint="export a SavedModel with the program that wrote it")
    return None


def _latest_checkpoint(folder: Path) -> Path | None:
    """Return the file with the graph of the checkpoint that the folder's list names, or of the only checkpoint."""
    listing = folder / "checkpoint"
    if listing.is_file():
        with reading(listing):
            named = _LATEST.search(mapped_file.head(listing, _LARGEST_LISTING_BYTES))
        if named is not None:  # a path of the machine that wrote it: the name alone is of use here
            name = re.split(r"[/\\]", named[1].decode("utf-8", "replace"))[-1]
            return graph_of_checkpoint(folder / name) if name.strip(".") else None
    indices = [file for file in folder.iterdir() if file.suffix == ".index" and file.is_file()]
    return graph_of_checkpoint(indices[0].with_suffix("")) if len(indices) == 1 else None


def _highest_version(folder: Path) -> Path | None:
    """Return the folder with the highest number as its name among the models in a folder, or None."""
    versions = [child for child in folder.iterdir() if child.name.isascii() and child.name.isdecimal()
                and len(child.name) <= 20 and _is_saved_model(child)] if folder.is_dir() else []
    return max(versions, key=lambda child: (int(child.name), child.name), default=None)


def _is_saved_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in SAVED_MODEL_FILES)


def _only_model(folder: Path) -> Path:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise NotFound("the archive has no file")
    models = sorted({file.parent for file in files if file.name in SAVED_MODEL_FILES})
    versions = {_highest_version(model.parent) or model for model in models if model != folder}
    models = [model for model in models if model == folder or not model.name.isdecimal() or model in versions]
    if not models:
        models = [file for file in files if file.suffix.lower() in _GRAPH_SUFFIXES and not file.name.startswith("._")]
    if not models:
        models = [file for file in files if file.suffix == ".meta"]
    if len(models) == 1:
        return models[0]
    names = [str(model.relative_to(folder)) for model in models or files]
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")
    if models:
        raise InvalidArgument(f"the archive has {len(models)} models: {shown}", hint="unpack it, and load one of them")
    raise NotFound(f"the archive has no model: {shown}", hint="unpack it, and load a file of a known format")
