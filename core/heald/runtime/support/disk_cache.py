"""DiskCache: bytes by key for later processes, in the user's cache folder. Every entry can be made anew.

Binaries of kernels are code, so a folder or file that another user could have written is not used.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import HealdError
from .user_files import cache_folder, is_private


class DiskCache:
    """The entries of one kind. An unreadable cache counts as empty; an unwritable one drops new entries.

    The folder must be the user's own, and its mode must let no other user write. The same holds for each file in it. A
    user without a home has no cache.
    """

    def __init__(self, kind: str) -> None:
        home = cache_folder(os.environ)
        self.folder = None if home is None else home / kind

    def get(self, key: str) -> bytes | None:
        if self.folder is None:
            return None
        try:
            if not is_private(self.folder.stat()):
                return None
            with _path(self.folder, key).open("rb") as file:
                return file.read() if is_private(os.fstat(file.fileno())) else None
        except OSError:
            return None

    def put(self, key: str, value: bytes) -> bool:
        """Keep a value, if that is possible. Returns False if not. A concurrent reader in any process gets the whole
        value or none."""
        from . import whole_file

        if self.folder is None:
            return False
        try:
            whole_file.make_folders(self.folder, whole_file.PRIVATE_FOLDER)
            if not is_private(self.folder.stat()):
                return False
            whole_file.write_whole(_path(self.folder, key), [value], mode=whole_file.PRIVATE)
        except (OSError, HealdError):
            return False
        return True


def _path(folder: Path, key: str) -> Path:
    from hashlib import sha256  # imported late: it takes 3 ms, and registering plugins needs no hashes

    return folder / sha256(key.encode()).hexdigest()
