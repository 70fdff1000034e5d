"""The loader of SavedModels. Every load of a file imports this module, so `open` imports the code that reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heald.api import LoadOptions

from .file_names import GRAPH_FILES

if TYPE_CHECKING:
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


LOADER = SavedModelLoader()
