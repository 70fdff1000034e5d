"""Kills and power cuts: at every call of a writer, the old content or the new one is there, whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from harness.disk_calls import Call, Disk, Killed, end_by_exception, killing, recording, without_syncs
from harness.writers import SEVERAL, WRITERS
from heald.errors import HealdError

OLD, NEW, NEXT = 1, 2, 3
CUTS = 400  # replayed power cuts of each writer
names = pytest.mark.parametrize("name", WRITERS)


@pytest.fixture(autouse=True)
def quick_disk():
    with without_syncs():
        yield


def check_versions(name: str, folder: Path, before: set[int]) -> set[int]:
    versions = WRITERS[name].read(folder)
    assert versions in (before, {NEW}) or (name in SEVERAL and versions <= before | {NEW}), versions
    return versions


def prepare(name: str, folder: Path) -> set[int]:
    """Write the old version, and return the versions that are there."""
    folder.mkdir()
    if name != "new plugin":  # which never replaces a folder
        WRITERS[name].write(folder, OLD)
    return WRITERS[name].read(folder)


def check_next_write(name: str, folder: Path) -> None:
    """The next write succeeds, and removes the temporary files of the one that was killed."""
    WRITERS[name].write(folder, NEXT)
    assert WRITERS[name].read(folder) == {NEXT}
    assert list(folder.rglob(".heald-*")) == []


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


@names
def test_a_kill_at_each_call_leaves_the_old_content_or_the_new(tmp_path, name):
    contents: set[int] = set()
    for survived in range(1000):
        folder = tmp_path / str(survived)
        before = prepare(name, folder)
        try:
            with killing(survived, end_by_exception):
                WRITERS[name].write(folder, NEW)
            break
        except (Killed, HealdError):  # a kernel's exception becomes a typed error
            contents |= check_versions(name, folder, before)
        check_next_write(name, folder)
    assert WRITERS[name].read(folder) == {NEW}
    assert contents == before | {NEW}  # the kills were on both sides of the commit
    assert survived > 5


@names
def test_a_power_cut_leaves_the_old_content_or_the_new(tmp_path, name):
    disk, start = tmp_path / "disk", tmp_path / "start"
    before = prepare(name, disk)
    shutil.copytree(disk, start)
    calls: list[Call] = []
    with recording(calls):
        WRITERS[name].write(disk, NEW)
    draw = Random(7)  # noqa: S311 - cuts, no secrets
    checked: list[dict[str, bytes]] = []
    for number in range(CUTS):
        files = Disk(disk, start, calls[: number % (len(calls) + 1)]).after_cut(draw)
        visible = {path: content for path, content in files.items() if ".heald-" not in path}
        if visible not in checked:
            checked.append(visible)
            write_files(tmp_path / str(number), files)
            check_versions(name, tmp_path / str(number), before)
            check_next_write(name, tmp_path / str(number))
    assert check_versions(name, disk, before) == {NEW}
    assert len(checked) > 1
