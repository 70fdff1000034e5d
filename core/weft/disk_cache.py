"""What is worth keeping for the next process: bytes by key, in the user's cache folder. Nothing in it is needed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_USER_FOLDER = {"win32": ("LOCALAPPDATA", "~/AppData/Local"), "darwin": ("", "~/Library/Caches")}


class DiskCache:
    """One kind of thing. A cache that cannot be read is empty, and one that cannot be written stays so."""

    def __init__(self, kind: str) -> None:
        variable, fallback = _USER_FOLDER.get(sys.platform, ("XDG_CACHE_HOME", "~/.cache"))
        home = os.environ.get(variable) or os.path.expanduser(fallback)  # noqa: PTH111 - Path's own raises without a home
        self.folder = Path(home, "weft", kind)

    def get(self, key: str) -> bytes | None:
        try:
            return self._path(key).read_bytes()
        except OSError:
            return None

    def put(self, key: str, value: bytes) -> bool:
        """Keep a value, if that is possible. Who reads meanwhile, in whatever process, finds all of it or nothing."""
        import tempfile

        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(value)
            Path(name).replace(self._path(key))
        except OSError:
            return False
        return True

    def _path(self, key: str) -> Path:
        from hashlib import sha256  # whoever only registers plugins needs no hashes: to import them takes 3 ms

        return self.folder / sha256(key.encode()).hexdigest()
