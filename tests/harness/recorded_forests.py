"""Models of decision forests that TF-DF 1.12 on TensorFlow 2.19 ran, with the inputs and results of its ops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.api import Graph, Node, dtypes

DATA = Path(__file__).parents[1] / "data" / "decision_forests"
BANK_TYPES = (dtypes.float32, dtypes.float32, dtypes.int32, dtypes.int32, dtypes.int64, dtypes.int64)
BANKS = tuple(f"bank{i}" for i in range(6))

Array = np.ndarray[Any, Any]


class RecordedForest(NamedTuple):
    """`files` by name, `banks` as the op takes them; predictions and leaves as TF-DF returned them."""

    name: str
    files: dict[str, bytes]
    banks: tuple[Array, ...]
    dense: Array
    words: list[bytes]
    leaves: Array

    @property
    def prefix(self) -> str:
        (done,) = (name for name in self.files if name.endswith("done"))
        return done.removesuffix("done")

    @property
    def feeds(self) -> dict[str, Array]:
        return dict(zip(BANKS, self.banks, strict=True))

    def write(self, folder: Path) -> Path:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder


@cache
def _archive() -> dict[str, Array]:
    with np.load(DATA / "models.npz") as archive:
        return dict(archive)


def names() -> list[str]:
    return sorted({key.partition("/")[0] for key in _archive()})


def recorded(name: str) -> RecordedForest:
    arrays = {key.removeprefix(f"{name}/"): array for key, array in _archive().items() if key.startswith(f"{name}/")}
    files = {key.removeprefix("file/"): array.tobytes() for key, array in arrays.items() if key.startswith("file/")}
    return RecordedForest(name, files, tuple(arrays[str(i)] for i in range(6)), arrays["dense"],
                          arrays["words"].tolist(), arrays["leaves"])


def forest_graph(forest: RecordedForest, types: Sequence[str] = (), **load_attrs: Any) -> Graph:
    """A graph with the nodes `load`, which takes the feed `path`, `dense` and `leaves`."""
    attrs = {"file_prefix": forest.prefix, "output_types": list(types), **load_attrs}
    return Graph([
        *(Node(name, "Placeholder", attrs={"dtype": dtype}) for name, dtype in zip(BANKS, BANK_TYPES, strict=True)),
        Node("path", "Placeholder", attrs={"dtype": dtypes.string}),
        Node("model", "SimpleMLCreateModelResource"),
        Node("load", "SimpleMLLoadModelFromPathWithHandle", ["model", "path"], attrs=attrs),
        Node("dense", "SimpleMLInferenceOpWithHandle", [*BANKS, "model"],
             attrs={"dense_output_dim": forest.dense.shape[1]}),
        Node("leaves", "SimpleMLInferenceLeafIndexOpWithHandle", [*BANKS, "model"])])


def open_session(graph: Graph, folder: Path) -> heald.Session:
    """A session whose graph may read files in the folder."""
    return heald.Session(graph, config={"files": {"read": [str(folder)]}})


def load_forest(forest: RecordedForest, folder: Path, types: Sequence[str] = (), **load_attrs: Any) -> heald.Session:
    """A session with the model, whose files are written into the folder."""
    session = open_session(forest_graph(forest, types, **load_attrs), forest.write(folder))
    session.run([], {"path": str(folder)}, targets=["load"])
    return session
