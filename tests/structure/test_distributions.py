"""Every distribution has its row in each list of distributions: a new one that is left out of a list fails here.

The lists are requirements.txt, the sources of uv, the files of mypy, ARCHITECTURE.md's table, and test_floors' HEAVY.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from structure.test_floors import HEAVY

from release.manifests import folders, is_template

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TEMPLATES_IN_USE = {"example_device"}  # the tests use it; of the other templates they use copies
DISTRIBUTIONS = [folder for folder in folders() if folder != ROOT]
INSTALLED = [folder for folder in DISTRIBUTIONS if not is_template(folder) or folder.name in TEMPLATES_IN_USE]


def manifest(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def packages(folder: Path) -> list[str]:
    wheel = manifest(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]
    return [Path(package).name for package in wheel["packages"]]


def place(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix()


def architecture_rows() -> set[str]:
    """The folders that the first column of ARCHITECTURE.md's table of distributions names."""
    _, _, after_head = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("\n| distribution | content |\n")
    rows = after_head.partition("\n\n")[0].splitlines()[1:]
    names = [name for row in rows for name in re.findall(r"`([\w/]+)`", row.split("|")[1])]
    return {*names, *(f"plugins/{name}" for name in names)}  # a row of several has the first one's folder alone


def test_distributions_are_found():
    assert {"core", "device_cpu", "conformance", "plugins/eager", "plugins/example_ops"} <= {*map(place, DISTRIBUTIONS)}


@pytest.mark.parametrize("folder", INSTALLED, ids=place)
def test_a_distribution_is_installed_with_the_requirements_of_developers(folder):
    installed = re.findall(r"^-e \./([\w/]+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert place(folder) in installed


@pytest.mark.parametrize("folder", INSTALLED, ids=place)
def test_a_distribution_is_a_source_of_the_workspace(folder):
    assert PROJECT["tool"]["uv"]["sources"].get(manifest(folder)["project"]["name"]) == {"workspace": True}


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=place)
def test_a_distribution_has_its_types_checked(folder):
    checked = PROJECT["tool"]["mypy"]["files"]
    assert {f"{place(folder)}/{package}" for package in packages(folder)} <= {*checked}


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=place)
def test_a_distribution_has_a_row_in_the_architecture(folder):
    assert place(folder) in architecture_rows()


@pytest.mark.parametrize("folder", INSTALLED, ids=place)
def test_a_distribution_with_plugins_is_among_the_modules_that_an_import_of_heald_spares(folder):
    has_plugins = "heald.plugins" in manifest(folder)["project"].get("entry-points", {})
    if has_plugins and folder != ROOT / "core":
        assert {*packages(folder)} <= {*HEAVY}


def test_lists_name_no_distribution_that_is_gone():
    names = {manifest(folder)["project"]["name"] for folder in DISTRIBUTIONS}
    assert {*PROJECT["tool"]["uv"]["sources"]} <= names
    required = re.findall(r"^-e \./([\w/]+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert {*required} <= {*map(place, DISTRIBUTIONS)}
