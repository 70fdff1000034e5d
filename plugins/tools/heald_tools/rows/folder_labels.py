"""Labels from folders: the class of a picture is the name of its folder.

Below a folder that --input names it is the folder one level down, as for Keras's image_dataset_from_directory; for
patterns and lists it is the file's own. The classes are the folders' names in the order of their texts, as there,
unless --labels names them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from heald.errors import HealdWarning, InvalidArgument, did_you_mean

from .sources import Source, is_folder

MOST_NAMED = 5


class FolderLabels:
    """`names`: the classes, in the order of the model's scores."""

    def __init__(self, source: Source, names: Sequence[str] | None) -> None:
        """Raises InvalidArgument for rows without folders of their own, and for folders that no label names."""
        if not source.format.decoder:
            raise InvalidArgument(f"--labels-from-folders: the rows of '{source.text}' have no folders of their own",
                                  hint="it is for files that are a row each, such as photos/cat/1.jpg")
        self._root = Path(source.text) if is_folder(source.text) else None
        folders = sorted({folder for file in source.files if (folder := self.folder_of(str(file))) is not None})
        if not folders:
            raise InvalidArgument(f"--labels-from-folders: '{source.text}' has no folders",
                                  hint="the class is the folder's name, as in photos/cat/1.jpg")
        self.names = folders if names is None else names
        self._check_names(folders)

    def folder_of(self, file: str) -> str | None:
        """The class of a file, or None for one that lies in no folder of a class."""
        if self._root is None:
            return Path(file).absolute().parent.name or None
        parts = Path(file).relative_to(self._root).parts
        return parts[0] if len(parts) > 1 else None

    def _check_names(self, folders: Sequence[str]) -> None:
        unknown = [folder for folder in folders if folder not in self.names]
        named = ", ".join(unknown[:MOST_NAMED]) + (", ..." if len(unknown) > MOST_NAMED else "")
        if len(unknown) == len(folders):
            raise InvalidArgument(f"--labels-from-folders: no folder is called as a label: {named}",
                                  hint=did_you_mean(unknown[0], list(self.names)) or
                                  f"the labels: {', '.join(self.names[:MOST_NAMED])}, ...")
        if unknown:
            warnings.warn(f"folders that are no label are not counted: {named}", HealdWarning, stacklevel=2)
