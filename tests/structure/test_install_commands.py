"""Install commands come from one table, which agrees with the manifests, or name distributions of other projects."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from heald.runtime.support import install
from heald.runtime.support.install import DISTRIBUTIONS, normalized_name
from packaging.requirements import Requirement
from structure.install_commands import (
    PAGES,
    REQUIREMENTS,
    ROOT,
    SOURCES,
    commands_in,
    renew_commands,
    table_commands,
    use_names,
)

EXAMPLE = re.compile(r"heald-example-\w+")  # a template, which no command installs by name
UNPUBLISHED, PUBLISHED = (table_commands(published=published) for published in (False, True))


@cache
def manifests() -> dict[str, tuple[Path, dict[str, Any]]]:
    """By the name of a distribution: its folder, and the table `project` of its manifest."""
    paths = [*ROOT.glob("pyproject.toml"), *ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    projects = {path.parent: tomllib.loads(path.read_text("utf-8"))["project"] for path in paths}
    return {project["name"]: (folder, project) for folder, project in projects.items()}


def is_ours(name: str) -> bool:
    return normalized_name(name).partition("-")[0] == "heald"


def ours(requirements: list[str]) -> set[str]:
    return {name for text in requirements if is_ours(name := Requirement(text).name)}


def needs(name: str, extras: set[str]) -> set[str]:
    """The distributions of heald that a manifest and these extras of it require."""
    _, project = manifests()[name]
    optional = project.get("optional-dependencies", {})
    return ours(project["dependencies"]).union(*(ours(optional[extra]) for extra in extras))


def names_asked_of_index(words: str, page: Path) -> set[str]:
    """The distributions of heald's that pip would ask the index for.

    A command names them, or folders of the command need them. A folder of a distribution spares the index.
    """
    requested, local = set(), set()
    folders = {folder: name for name, (folder, _) in manifests().items()}
    for word in shlex.split(words):
        path, _, extras = word.rstrip("]").partition("[")
        paths = [start / path for start in (page.parent, ROOT)]
        folder = next((path.resolve() for path in paths if path.resolve() in folders), None)
        if folder is not None:
            local.add(folders[folder])
            requested |= needs(folders[folder], set(filter(None, extras.split(","))))
        elif re.fullmatch(r"[\w.\[\],=<>!~-]+", word) and not word.startswith("-") and is_ours(path):
            requested.add(normalized_name(re.split(r"[=<>!~]", path)[0]))
    return requested - local


def test_the_table_has_the_distributions_of_the_manifests():
    assert {name for name in manifests() if not EXAMPLE.fullmatch(name)} == set(DISTRIBUTIONS)
    for name, row in DISTRIBUTIONS.items():
        folder, project = manifests()[name]
        optional = project.get("optional-dependencies", {})
        assert (ROOT / row.folder).resolve() == folder
        assert set(row.needs) == ours(project["dependencies"]), name
        assert {extra: set(brought) for extra, brought in row.extras.items()} == {
            extra: ours(texts) for extra, texts in optional.items()}, name
        assert list(project.get("entry-points", {}).get("heald.plugins", {})) == [row.plugin] * bool(row.plugin)


def test_the_table_has_the_commands_of_heald_s_plugins():
    from heald.runtime.service.runtime import runtime

    brought: dict[str, set[str]] = {}
    for command in runtime().plugins.registries.commands.usable():
        brought.setdefault(install.PLUGINS[command.plugin], set()).add(command.name)
    assert {name: set(row.commands) for name, row in DISTRIBUTIONS.items() if row.commands} == brought


def test_the_extras_of_heald_are_these_and_all_has_the_others():
    _, project = manifests()["heald"]
    optional = project["optional-dependencies"]
    assert [*optional] == ["special", "opencl", "gpu", "mlir", "text", "forests", "images", "audio", "parquet", "serve",
                           "report", "all"]
    assert sorted(optional["all"]) == sorted(text for extra in optional if extra != "all" for text in optional[extra])


@pytest.mark.parametrize("words", [command.removeprefix("pip install ") for command in UNPUBLISHED])
def test_an_unpublished_command_names_folders_with_all_that_they_need(words):
    assert names_asked_of_index(words, ROOT / "README.md") == set()
    for word in shlex.split(words):
        path, _, extras = word.rstrip("]").partition("[")
        assert path == "." or path.startswith("./")
        name = next(name for name, (folder, _) in manifests().items() if folder == (ROOT / path).resolve())
        assert set(filter(None, extras.split(","))) <= set(DISTRIBUTIONS[name].extras)


@pytest.mark.parametrize(("command", "requirements"), [*zip(PUBLISHED, REQUIREMENTS, strict=True)])
def test_a_published_command_names_distributions_and_extras_of_the_manifests(command, requirements):
    assert shlex.split(command) == ["pip", "install", *requirements]
    for requirement in map(Requirement, requirements):
        assert requirement.extras <= set(manifests()[requirement.name][1].get("optional-dependencies", {}))


def test_a_published_upgrade_asks_for_the_newest_version():
    assert table_commands(published=True, upgrade=True) == [text.replace("install", "install -U") for text in PUBLISHED]
    assert table_commands(published=False, upgrade=True) == UNPUBLISHED


@pytest.mark.parametrize("published", [False, True])
def test_the_hint_of_a_command_with_folders_names_the_place(published):
    with use_names(published=published):
        hints = [install.install_hint("heald-mlir"), install.install_hint("heald-mlir", upgrade=True),
                 install.install_hint("numpy"), install.install_hint("ml_dtypes", upgrade=True)]
    assert hints[2:] == ["pip install numpy", "pip install -U ml_dtypes"]
    assert hints[:2] == (["pip install heald-mlir", "pip install -U heald-mlir"] if published else [
        "pip install ./core ./plugins/eager ./plugins/mlir (in heald's repository)",
        "pip install ./core ./plugins/eager ./plugins/mlir (in the newest state of heald's repository)"])


@pytest.mark.parametrize(("requirements", "installed", "command"), [
    (["heald-serve"], ["heald"], "pip install ./heald_serve-V.whl"),
    (["heald-mlir"], ["heald"], "pip install ./heald_eager-V.whl ./heald_mlir-V.whl"),
    (["heald-mlir"], ["heald", "heald_eager"], "pip install ./heald_mlir-V.whl"),
    (["heald", "heald-conformance"], ["heald", "heald_cpu"], "pip install ./heald-V.whl ./heald_eager-V.whl "
     "./heald_conformance-V.whl ./heald_onednn-V.whl ./heald_saved_model-V.whl ./heald_simplify-V.whl "
     "./heald_tf_ops-V.whl ./heald_tools-V.whl"),
    (["heald-client[grpc]"], ["heald"], "pip install './heald_client-V.whl[grpc]'"),
    (["numpy"], ["heald"], "pip install numpy"),
])
def test_a_hint_of_an_installed_heald_names_wheels_and_no_folder_of_the_repository(
    monkeypatch, requirements, installed, command
):
    monkeypatch.setattr(install, "is_in_repository", lambda: False)
    monkeypatch.setattr(install, "is_importable", lambda module: module in installed)
    place = " (in a folder with the wheels of heald)" if requirements != ["numpy"] else ""
    assert install.install_hint(*requirements) == command.replace("-V", "-0.1.0-py3-none-any") + place


def test_the_upgrade_of_an_installed_heald_names_newer_wheels(monkeypatch):
    monkeypatch.setattr(install, "is_in_repository", lambda: False)
    assert install.install_hint("heald-core", upgrade=True) == (
        "pip install -U ./heald_core-*.whl (in a folder with newer wheels of heald)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "Makefile", ROOT / "device_gpu/check.sh"],
                         ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_are_the_tables_or_name_distributions_of_others(page):
    text = page.read_text("utf-8")
    by_table = {command.removeprefix("pip install ") for command in table_commands(published=install.PUBLISHED)}
    by_table |= {command.replace("pip install", "--no-index --find-links dist") for command in PUBLISHED}
    covered = {name for words in commands_in(text) if words in by_table for name in local_names(words)}
    for words in commands_in(text):
        if words in by_table:
            continue
        assert names_asked_of_index(words, page) <= covered, f"pip install {words}"
    assert renew_commands(text, published=install.PUBLISHED) == text, "python tests/structure/install_commands.py"


def local_names(words: str) -> set[str]:
    """The distributions that a command installs by folder or by name."""
    by_path = {row.path: name for name, row in DISTRIBUTIONS.items()}
    return {by_path.get(word.partition("[")[0], word.partition("[")[0]) for word in shlex.split(words)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_source_has_no_command_that_installs_heald(path):
    if path.samefile(install.__file__):
        return
    for words in commands_in(path.read_text("utf-8")):
        assert "{" not in words, f"take the command from heald.runtime.support.install: pip install {words}"
        assert names_asked_of_index(words, path) == set(), f"pip install {words}"


def test_pages_change_with_the_switch_and_back():
    for page in PAGES:
        text = page.read_text("utf-8")
        published = renew_commands(text, published=True)
        assert not [words for words in commands_in(published) if "./core" in words]
        assert renew_commands(published, published=False) == text


@pytest.mark.parametrize("words", [
    "heald", "'heald[gpu]'", "heald-mlir numpy", "Heald_Core", "heald.tools==0.1.0", "./plugins/mlir",
    "./core ./device_opencl", "-e './plugins/example_ops[test]' ./core", "'heald-core>=9'",
])
def test_a_command_that_would_ask_the_index_for_heald_is_found(words):
    assert names_asked_of_index(words, ROOT / "README.md") != set()


@pytest.mark.parametrize("text", [
    "run `pip install heald-x`, then", "(pip install heald-x)", 'hint="pip install heald-x")',
    "pip install heald-x # a", "pip install heald-x && pytest", "pip install \\\n    heald-x\nnext",
    "pip install heald-x\n",
])
def test_a_command_is_found_in_a_text(text):
    assert commands_in(text) == ["heald-x"]
