"""Files of another user, for tests that look at owners."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files of this system have no owner and mode")


def give_away(path: Path, patch: pytest.MonkeyPatch) -> None:
    """Make another user the owner. Only root can do so; others become another user themselves."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        patch.setattr(os, "geteuid", lambda: 12345)
