"""The cache on disk: for the next process, and never an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.another_user import POSIX, give_away
from heald.runtime.support.disk_cache import DiskCache


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(home: Path) -> Path:
    """The folder of a cache that has one value."""
    assert DiskCache("things").put("a", b"value")
    return home / "heald" / "things"


def test_a_disk_cache_returns_the_value_that_was_put_last(home: Path) -> None:
    cache = DiskCache("things")
    assert cache.get("a\nb") is None
    assert cache.put("a\nb", b"old")
    assert cache.put("a\nb", b"new")
    assert (DiskCache("things").get("a\nb"), DiskCache("others").get("a\nb")) == (b"new", None)
    assert len(list((home / "heald" / "things").iterdir())) == 1


def test_a_disk_cache_that_cannot_be_written_is_empty(home: Path) -> None:
    home.mkdir()
    (home / "heald").write_text("a file, not a folder")
    assert not DiskCache("things").put("a", b"value")
    assert DiskCache("things").get("a") is None


@POSIX
def test_every_folder_that_it_makes_is_the_users_alone(home: Path, folder: Path) -> None:
    assert [path.stat().st_mode & 0o777 for path in (home, home / "heald", folder)] == [0o700] * 3


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o702])
def test_a_folder_that_others_may_write_is_not_used(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert DiskCache("things").get("a") is None
    assert not DiskCache("things").put("b", b"value")
    assert len(list(folder.iterdir())) == 1


@POSIX
def test_a_file_that_others_may_write_is_not_read(folder: Path) -> None:
    next(folder.iterdir()).chmod(0o602)
    assert DiskCache("things").get("a") is None


@POSIX
def test_a_folder_of_another_user_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(folder, monkeypatch)
    assert DiskCache("things").get("a") is None
    assert not DiskCache("things").put("b", b"value")


@POSIX
def test_a_file_of_another_user_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(next(folder.iterdir()), monkeypatch)
    assert DiskCache("things").get("a") is None


def test_a_disk_cache_of_a_user_without_a_home_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    assert not DiskCache("things").put("a", b"value")
    assert list(tmp_path.iterdir()) == []
