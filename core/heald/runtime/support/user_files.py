"""The user's own folders, and the test that no other user of this machine could have written a file.

Root's files count as the user's own, because root can change anything anyway. Windows has no such owner and mode: there
every file counts as the user's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

WRITABLE_BY_OTHERS = 0o022  # the mode bits of group and others

# By system: the variable that names the folder, and the folder without it.
_CONFIG = {"win32": ("APPDATA", "~/AppData/Roaming"), "darwin": ("", "~/Library/Application Support")}
_CACHE = {"win32": ("LOCALAPPDATA", "~/AppData/Local"), "darwin": ("", "~/Library/Caches")}


def config_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of the user's settings for heald; None for a user without a home."""
    return _folder(environ, *_CONFIG.get(sys.platform, ("XDG_CONFIG_HOME", "~/.config")))


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of the user's caches of heald; None for a user without a home."""
    return _folder(environ, *_CACHE.get(sys.platform, ("XDG_CACHE_HOME", "~/.cache")))


def _folder(environ: Mapping[str, str], variable: str, fallback: str) -> Path | None:
    """The folder `heald` in the folder that `variable` names, else in `fallback`. A relative path does not count: it
    would mean the working folder."""
    home = environ.get(variable) or os.path.expanduser(fallback)  # noqa: PTH111 - Path's own raises without a home
    return Path(home, "heald") if os.path.isabs(home) else None  # noqa: PTH117


def is_foreign(status: os.stat_result) -> bool:
    """True when the file belongs to another user."""
    return hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid())


def is_private(status: os.stat_result) -> bool:
    """True when the file is the user's own, and neither its group nor others may write it."""
    return not hasattr(os, "geteuid") or not (is_foreign(status) or status.st_mode & WRITABLE_BY_OTHERS)
