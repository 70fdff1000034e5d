"""The cache on disk: for the next process, and never an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from weft.disk_cache import DiskCache


def test_it_gives_back_what_was_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = DiskCache("things")
    assert cache.get("a\nb") is None
    assert cache.put("a\nb", b"old")
    assert cache.put("a\nb", b"new")
    assert (DiskCache("things").get("a\nb"), DiskCache("others").get("a\nb")) == (b"new", None)
    assert len(list((tmp_path / "weft" / "things").iterdir())) == 1


def test_where_it_cannot_be_written_it_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weft").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not DiskCache("things").put("a", b"value")
    assert DiskCache("things").get("a") is None
