"""The loaders of `.mlir` and `.tfg` files. Every load of a file imports this module, so `open` imports the code that
reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from heald.api import LoadOptions

if TYPE_CHECKING:
    from .text_file import MlirSource
    from .tfg.text_file import TfgSource

PROGRAM_SUFFIX, GRAPH_SUFFIX = ".mlir", ".tfg"  # a `.mlir` file may have the text of a graph, too
_GRAPH = re.compile(rb"^\s*+(?:tfg\.|\"tfg\.|module\b[^\n]*\{\s*+\"?tfg\.)(?:graph|func)\b", re.MULTILINE)


def is_graph_text(head: bytes) -> bool:
    """True for the first bytes of the text of a graph."""
    return _GRAPH.search(head) is not None


class MlirLoader:
    """Recognises files by their suffix; the text of a graph is none of its own."""

    def recognise(self, path: Path, head: bytes) -> bool:
        return path.suffix.lower() == PROGRAM_SUFFIX and not is_graph_text(head)

    def open(self, path: Path, options: LoadOptions) -> MlirSource:
        """Raises the errors of `heald.mlir.load`."""
        from .text_file import read_program_file

        return read_program_file(path)


class TfgLoader:
    """Recognises `.tfg` files, and `.mlir` files that begin with a graph or a function of one."""

    def recognise(self, path: Path, head: bytes) -> bool:
        suffix = path.suffix.lower()
        return suffix == GRAPH_SUFFIX or (suffix == PROGRAM_SUFFIX and is_graph_text(head))

    def open(self, path: Path, options: LoadOptions) -> TfgSource:
        """Raises the errors of `heald.tfg.load`, and InvalidArgument for a signature or tags."""
        from .tfg.text_file import read_graph_file

        return read_graph_file(path, options)


MLIR, TFG = MlirLoader(), TfgLoader()
