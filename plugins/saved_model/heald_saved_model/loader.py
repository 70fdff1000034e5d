"""The loaders of SavedModels and of checkpoints. Every load of a file imports this module, so `open` imports the code
that reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heald.api import LoadOptions

from .file_names import GRAPH_FILES, META_GRAPH_SUFFIX, META_GRAPH_TEXT

if TYPE_CHECKING:
    from .meta_graph import MetaGraphSource
    from .source import SavedModelSource


class SavedModelLoader:
    """Recognises folders with one of `GRAPH_FILES`."""

    def recognise(self, path: Path, head: bytes) -> bool:
        return not head and path.is_dir() and any((path / name).exists() for name in GRAPH_FILES)

    def open(self, path: Path, options: LoadOptions) -> SavedModelSource:
        """Raises NotFound for a missing graph or signature, and the errors of `saved_model.read`."""
        from .saved_model import read
        from .source import SavedModelSource

        return SavedModelSource(read(path, options.tags, mmap=options.mmap, weights=options.weights), options)


class MetaGraphLoader:
    """Recognises files with the suffix .meta that begin as a MetaGraphDef does, in binary or in text form."""

    def recognise(self, path: Path, head: bytes) -> bool:
        return path.suffix.lower() == META_GRAPH_SUFFIX and head.startswith((b"\n", b"\x12", META_GRAPH_TEXT))

    def open(self, path: Path, options: LoadOptions) -> MetaGraphSource:
        """Raises the errors of `open_meta_graph`."""
        from .meta_graph import open_meta_graph

        return open_meta_graph(path, options)


LOADER, META_GRAPHS = SavedModelLoader(), MetaGraphLoader()
