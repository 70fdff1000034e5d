"""Whole files and folders: errors name the asked path, and leftovers go without harm to other writers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from harness.disk_calls import Call, Killed, end_by_exception, killing, recording
from heald.errors import AlreadyExists, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted
from heald.runtime.support import disk, whole_file

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="this system has other locks")


def write(file: Path, *chunks: bytes) -> None:
    whole_file.write_whole(file, chunks)


def write_model(folder: Path, content: bytes) -> None:
    with whole_file.writing_folder(folder, overwrite=True) as new:
        whole_file.write_new(new / "deep" / "file", [content])


def temporary_folders(folder: Path) -> list[Path]:
    return list(folder.glob(".heald-*.tmp"))


def leave_temporary_folder(folder: Path) -> Path:
    """Kill a writer in `folder`, and return the temporary folder that it leaves."""
    before = set(temporary_folders(folder))
    with pytest.raises(Killed), killing(3, end_by_exception):
        write(folder / "killed", b"x" * 100_000)
    [left] = set(temporary_folders(folder)) - before
    return left


def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "exchange", lambda one, other: False)


@POSIX
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    left = leave_temporary_folder(tmp_path)
    assert [path.name for path in left.iterdir()] == ["killed"]
    write(tmp_path / "other", b"y")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("write_other", [lambda folder: write(folder / "b", b"b"),
                                         lambda folder: write_model(folder / "b", b"b")])
def test_a_writer_leaves_the_temporary_folder_of_a_living_one(tmp_path, write_other):
    with whole_file.writing_file(tmp_path / "a") as out:
        out.write(b"first half, ")
        write_other(tmp_path)
        out.write(b"second half")
    assert (tmp_path / "a").read_bytes() == b"first half, second half"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_writers_of_one_file_at_once_leave_the_file_of_the_last(tmp_path):
    with whole_file.writing_file(tmp_path / "a") as first:
        write(tmp_path / "a", b"second")
        first.write(b"first")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"first"]


def test_a_writer_tries_again_when_its_temporary_folder_is_removed_before_it_has_the_lock(tmp_path, monkeypatch):
    attempts = []

    def make_folder(folder: Path, mode: int) -> None:
        folder.mkdir(mode)
        attempts.append(folder)
        if len(attempts) == 1:
            whole_file.remove_leftovers(tmp_path)

    monkeypatch.setattr(disk, "make_folder", make_folder)
    write(tmp_path / "a", b"x")
    assert len(attempts) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@POSIX
@pytest.mark.parametrize("name", [".heald-0123456789ab.tmp", ".heald-0123456789ab.tmp.old", "heald.tmp",
                                  ".heald-0123456789abc.tmp"])
def test_files_and_links_of_other_programs_stay(tmp_path, name):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"")
    (tmp_path / name).symlink_to(tmp_path / "kept")
    (tmp_path / ".heald-ba9876543210.tmp").write_bytes(b"a file, not a folder")
    write(tmp_path / "a", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, ".heald-ba9876543210.tmp", "a", "kept"])
    assert (tmp_path / "kept" / "file").exists()


@POSIX
def test_a_link_in_a_temporary_folder_goes_and_its_target_stays(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"")
    left = leave_temporary_folder(tmp_path)
    (left / "link").symlink_to(tmp_path / "kept")
    write(tmp_path / "a", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "kept"]
    assert (tmp_path / "kept" / "file").exists()


@POSIX
def test_a_temporary_folder_of_another_user_stays(tmp_path, monkeypatch):
    left = leave_temporary_folder(tmp_path)
    monkeypatch.setattr(whole_file, "is_foreign", lambda status: True)
    write(tmp_path / "a", b"x")
    assert temporary_folders(tmp_path) == [left]


def test_a_replaced_folder_has_the_new_files_alone(tmp_path):
    write_model(tmp_path / "m", b"old")
    (tmp_path / "m" / "more").write_bytes(b"")
    write_model(tmp_path / "m", b"new")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["m", "m/deep", "m/deep/file"]
    assert (tmp_path / "m" / "deep" / "file").read_bytes() == b"new"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this system cannot exchange folders in one step")
def test_the_name_of_a_replaced_folder_is_there_at_each_call(tmp_path):
    write_model(tmp_path / "m", b"old")
    for survived in range(100):
        with killing(survived, end_by_exception):
            try:
                write_model(tmp_path / "m", b"new")
                break
            except Killed:
                assert (tmp_path / "m" / "deep" / "file").read_bytes() in (b"old", b"new")
    assert survived > 10


@POSIX
def test_the_next_writer_completes_an_exchange_in_three_steps(tmp_path, monkeypatch):
    without_exchange(monkeypatch)
    missing = 0
    for survived in range(100):
        folder = tmp_path / str(survived)
        folder.mkdir()
        write_model(folder / "m", b"old")
        with killing(survived, end_by_exception):
            try:
                write_model(folder / "m", b"new")
                break
            except Killed:
                missing += not (folder / "m").exists()
        write(folder / "another", b"x")
        assert (folder / "m" / "deep" / "file").read_bytes() in (b"old", b"new")
        assert sorted(path.name for path in folder.iterdir()) == ["another", "m"]
    assert missing == 1  # the moment between the two renames


@POSIX
def test_an_error_between_the_renames_gives_the_old_folder_its_name_again(tmp_path, monkeypatch):
    write_model(tmp_path / "m", b"old")
    without_exchange(monkeypatch)
    rename = disk.rename

    def rename_but_the_new(old: Path, new: Path) -> None:
        if old.name == "new":
            raise OSError(28, "No space left on device")
        rename(old, new)

    monkeypatch.setattr(disk, "rename", rename_but_the_new)
    with pytest.raises(ResourceExhausted, match=r"/m: No space left"):
        write_model(tmp_path / "m", b"new")
    assert (tmp_path / "m" / "deep" / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path):
    writing = whole_file.writing_folder(tmp_path / "m")
    whole_file.write_new(writing.__enter__() / "file", [b"mine"])
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "file").write_bytes(b"theirs")
    with pytest.raises(AlreadyExists, match="/m"):
        writing.__exit__(None, None, None)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m" / "file").read_bytes() == b"theirs"


def full_at(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device", "an inner file")

    monkeypatch.setattr(disk, call, fail)


@pytest.mark.parametrize("call", ["create", "write", "sync", "make_folder", "rename", "sync_folder"])
@pytest.mark.parametrize("writer", [write, write_model])
def test_a_full_disk_names_the_path_that_the_user_gave(tmp_path, monkeypatch, call, writer):
    full_at(call, monkeypatch)
    with pytest.raises(ResourceExhausted, match="No space left on device") as caught:
        writer(tmp_path / "asked", b"x" * 100_000)
    assert str(caught.value) == f"{tmp_path / 'asked'}: No space left on device"
    monkeypatch.undo()
    write(tmp_path / "next", b"")
    assert temporary_folders(tmp_path) == []


@pytest.mark.parametrize("writer", [write, write_model])
def test_a_missing_folder_is_named_as_it_was_given(tmp_path, monkeypatch, writer):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound) as caught:
        writer(Path("no/folder/file"), b"x")
    assert str(caught.value) == "no/folder/file: the folder 'no/folder' does not exist; make it first"
    Path("file").write_bytes(b"")
    with pytest.raises(NotFound, match="'file' is a file, not a folder"):
        writer(Path("file/inner"), b"x")


def test_a_file_in_the_place_of_a_folder_is_an_error_and_a_folder_that_is_there_is_none(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        whole_file.make_folders(tmp_path / "file")
    whole_file.make_folders(tmp_path)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="every folder can be written by this user")
def test_a_folder_without_permission_names_the_file(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionDenied, match="/asked"):
        write(tmp_path / "asked", b"x")


def test_an_error_of_the_caller_within_a_write_stays_as_it_is(tmp_path):
    with pytest.raises(PermissionDenied) as caught, whole_file.writing_file(tmp_path / "a"):
        raise PermissionDenied("the caller's own")
    assert str(caught.value) == "the caller's own"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["folder", "folder/.."])
def test_a_folder_in_the_place_of_a_file_is_told(tmp_path, path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidArgument, match="not a regular file"):
        write(tmp_path / path, b"x")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidArgument, match="is a file, not a folder"):
        write_model(tmp_path / "file", b"x")


@POSIX
def test_files_have_the_mode_that_the_users_mask_gives(tmp_path):
    (tmp_path / "plain").touch()
    write(tmp_path / "a", b"")
    whole_file.write_whole(tmp_path / "b", [], mode=whole_file.PRIVATE)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("plain", "a", "b")]
    assert modes == [modes[0], modes[0], 0o600]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_second_name_is_made_of_synced_content(tmp_path, monkeypatch, has_links):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").write_bytes(b"old")
    if not has_links:
        monkeypatch.setattr(disk, "link", lambda old, new: False)
    calls: list[Call] = []
    with recording(calls):
        whole_file.add_names({tmp_path / "a": tmp_path / "b"})
    assert (tmp_path / "b").read_bytes() == b"x"
    assert calls[0] == ("sync_file", (tmp_path / "a",))
    assert calls[-1] == ("sync_folder", (tmp_path,))
