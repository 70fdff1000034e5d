"""The working folder leaves sys.path when Python put it there, and stays when the user did."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

import pytest
from heald.runtime.support import working_folder
from heald.runtime.support.working_folder import is_working_folder, remove_working_folder

HERE = "HERE"  # stands for the working folder in the tables below


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)


def path_after_removal(path: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """This sys.path after the removal."""
    here = str(Path.cwd())
    monkeypatch.setattr(sys, "path", [here if entry == HERE else entry for entry in path])
    remove_working_folder()
    return [HERE if entry == here else entry for entry in sys.path]


@pytest.mark.parametrize(("path", "left"), [
    ([HERE, "/lib"], ["/lib"]),
    (["/bin", "", "/lib", "."], ["/bin", "/lib"]),
    (["/bin", "/lib"], ["/bin", "/lib"]),
    ([HERE, "/lib", HERE], ["/lib", HERE]),  # the second one is of a .pth file
    ([], []),
])
def test_the_folder_that_python_adds_is_removed(path: list[str], left: list[str], monkeypatch: pytest.MonkeyPatch,
                                                ) -> None:
    assert path_after_removal(path, monkeypatch) == left


@pytest.mark.parametrize(("parts", "left"), [
    (["", "/x"], ["/bin", "/x"]), ([".", "/x"], ["/bin", "/x"]), (["", HERE, "/x"], ["/bin", HERE, "/x"]),
    ([HERE, "/x"], ["/bin", HERE, "/x"]),
])
def test_an_empty_part_of_the_path_is_removed_and_a_named_one_is_not(
    parts: list[str], left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [str(Path.cwd()) if part == HERE else part for part in parts]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(named))
    assert path_after_removal(["/bin", HERE, "/x"], monkeypatch) == left


def test_the_folder_that_heald_is_imported_from_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(working_folder.__file__).parent.parent)
    assert path_after_removal([HERE, "/lib"], monkeypatch) == [HERE, "/lib"]


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_missing_folder() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(sys, "path", ["", "/lib"])
    monkeypatch.setattr(os, "getcwd", raise_missing_folder)
    remove_working_folder()
    assert sys.path == ["/lib"]


def test_entry_points_are_read_from_site_packages_even_as_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_working_folder(str(Path.cwd()))
    assert is_working_folder("")
    assert not is_working_folder("/")
    assert not is_working_folder("/absent")
    packages = next(folder for folder in site.getsitepackages() if Path(folder).is_dir())
    monkeypatch.chdir(packages)
    assert not is_working_folder(packages)
    assert is_working_folder(".")
