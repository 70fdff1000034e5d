"""The files of a model: three messages, and the trees in shards.

All files of one model stand in one folder, and their names begin with the model's prefix, which may be empty. The file
`header.pb` names the kind of forest, and so the name of the third message.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import DecodeError
from heald.api import errors
from yggdrasil_decision_forests.dataset import data_spec_pb2
from yggdrasil_decision_forests.model import abstract_model_pb2
from yggdrasil_decision_forests.model.gradient_boosted_trees import gradient_boosted_trees_pb2
from yggdrasil_decision_forests.model.random_forest import random_forest_pb2

from .blob_sequence import read_records

M = TypeVar("M")
Ask = Callable[[int, str], None]
OpenFile = Callable[[str, str], Path]

GRADIENT_BOOSTED_TREES, RANDOM_FOREST = "GRADIENT_BOOSTED_TREES", "RANDOM_FOREST"
_KINDS = {  # by name of a kind: the file and the message of its own header
    GRADIENT_BOOSTED_TREES: ("gradient_boosted_trees_header.pb", gradient_boosted_trees_pb2.Header),
    RANDOM_FOREST: ("random_forest_header.pb", random_forest_pb2.Header),
}
_NODE_FORMATS = ("BLOB_SEQUENCE", "BLOB_SEQUENCE_GZIP")
_LARGEST_SHARD_COUNT = 100_000


class ModelFiles(NamedTuple):
    """The content of the files, parsed and not yet checked. `nodes` are serialized, tree by tree, parents first."""

    header: Any
    data_spec: Any
    forest_header: Any
    nodes: list[bytes]


def read_model(folder: str, prefix: str, open_file: OpenFile, ask: Ask) -> ModelFiles:
    """Read a model. `open_file` and `ask` are the functions `file` and `ask` of a Bind.

    Raises NotFound for a missing file, PermissionDenied for one that [files] does not permit, DataLoss for damage,
    Unimplemented for another kind of model.
    """
    files = _Files(folder, prefix, open_file, ask)
    header = files.read_message("header.pb", abstract_model_pb2.AbstractModel)
    if header.name not in _KINDS:
        raise errors.Unimplemented(f"a model of the kind {header.name!r} cannot be run; known: {', '.join(_KINDS)}")
    name, message = _KINDS[header.name]
    data_spec = files.read_message("data_spec.pb", data_spec_pb2.DataSpecification)
    forest_header = files.read_message(name, message)
    return ModelFiles(header, data_spec, forest_header, files.read_nodes(forest_header))


class _Files:
    """The files of one model."""

    def __init__(self, folder: str, prefix: str, open_file: OpenFile, ask: Ask) -> None:
        self._start = f"{folder.rstrip('/') if folder != '/' else ''}/{prefix}" if folder else prefix
        self._open_file = open_file
        self._ask = ask

    def read_message(self, name: str, message: type[M]) -> M:
        data = self._read(name)
        try:
            return message.FromString(data)  # type: ignore[attr-defined,no-any-return]
        except DecodeError as error:
            raise errors.DataLoss(f"'{self._start}{name}' is damaged: {error}") from None

    def read_nodes(self, header: Any) -> list[bytes]:
        if header.node_format not in _NODE_FORMATS:
            raise errors.Unimplemented(f"trees in the format {header.node_format!r} are not read; known: "
                                       f"{', '.join(_NODE_FORMATS)}")
        count = header.num_node_shards
        if not 0 < count <= _LARGEST_SHARD_COUNT:
            raise errors.DataLoss(f"the header states {count} files of trees; 1 to {_LARGEST_SHARD_COUNT} are possible")
        return [node for shard in range(count) for node in self._read_shard(f"nodes-{shard:05d}-of-{count:05d}")]

    def _read_shard(self, name: str) -> Iterator[bytes]:
        data = self._read(name)
        try:
            yield from read_records(data, self._ask)
        except errors.DataLoss as error:
            raise errors.DataLoss(f"'{self._start}{name}' is damaged: {error.message}") from None

    def _read(self, name: str) -> bytes:
        path = self._open_file(f"{self._start}{name}", "read")
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):  # reading a pipe could wait for ever
                raise errors.InvalidArgument(f"'{path}' is no regular file")
            self._ask(status.st_size, f"'{path}'")
            return path.read_bytes()
        except FileNotFoundError:
            raise errors.NotFound(f"'{path}', a file of a decision forest, does not exist") from None
        except PermissionError as error:
            raise errors.PermissionDenied(f"'{path}' cannot be read: {error.strerror}") from None
        except NotADirectoryError:
            raise errors.NotFound(f"'{path}', a file of a decision forest, does not exist") from None
        except OSError as error:
            raise errors.Unavailable(f"'{path}' cannot be read: {error.strerror}") from None
