"""The scan finds what importlib.metadata finds, and requirements are judged as pip judges them."""

from __future__ import annotations

import importlib
import importlib.metadata
from pathlib import Path

import pytest
from heald.runtime.discovery.entry_points import (
    ENTRY_POINT_GROUP,
    Distribution,
    asks_newer_core,
    plugin_distributions,
    unmet_requirement,
)
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
CLAUSES = st.one_of(
    st.builds("{}{}".format, st.sampled_from([">=", "<=", ">", "<", "==", "!="]), RELEASES),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), RELEASES),
    st.builds("~={}.{}".format, st.integers(0, 3), RELEASES),
)


def distribution(*requires: str) -> Distribution:
    return Distribution("heald-x", "1.0", requires, {})


def test_the_scan_finds_the_entry_points_that_importlib_metadata_finds() -> None:
    expected = {(e.dist.name, e.dist.version, e.name, e.value)
                for e in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
                if e.dist is not None}
    assert {(d.name, d.version, *plugin) for d in plugin_distributions() for plugin in d.plugins.items()} == expected


@given(st.lists(CLAUSES, min_size=1, max_size=3), RELEASES)
def test_a_requirement_is_met_when_packaging_says_so(clauses: list[str], version: str) -> None:
    text = ",".join(clauses)
    is_met = unmet_requirement(distribution(f"heald-core{text}"), version) is None
    assert is_met == SpecifierSet(text).contains(version)


@pytest.mark.parametrize(
    ("line", "met"),
    [
        ("numpy>=99", True), ("heald-core", True), ("Heald_Core (>=9)", False), ("heald.core[images] >= 9", False),
        ("heald-core>=9; extra == 'all'", True), ("heald-core>=9 ; python_version >= '3.11'", False),
        ("heald-core-extra>=9", True), ("heald-core @ https://example.org/x.whl", True), ("???", True),
    ],
)
def test_only_requirements_on_heald_core_count(line: str, met: bool) -> None:
    assert (unmet_requirement(distribution("other", line), "0.1.0") is None) is met


@pytest.mark.parametrize(("requirement", "older"), [
    ("heald-core>=0.2,<1", True), ("heald-core==0.2.*", True), ("heald-core~=1.0", True), ("heald-core<0.1", False),
    ("heald-core!=0.1.0", False), ("heald-core>=0.0,<0.1", False),
])
def test_the_remedy_knows_whether_heald_core_is_too_old(requirement: str, older: bool) -> None:
    assert asks_newer_core(requirement, "0.1.0") is older


def test_the_first_distribution_of_a_name_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder_name, version in (("one", "1.0"), ("two", "2.0")):
        info = tmp_path / folder_name / f"Heald.Twin-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: Heald.Twin\r\nVersion: {version}\r\nRequires-Dist: heald-core>=0.1\r\n")
        (info / "entry_points.txt").write_text("[other]\na = b\n[heald.plugins]\n# words\ntwin = twin.plugin [extra]\n")
    (tmp_path / "broken.zip").write_bytes(b"")
    paths = [tmp_path / name for name in ("absent", "broken.zip", "one", "two")]
    monkeypatch.setattr("sys.path", [str(path) for path in paths])
    twin = Distribution("Heald.Twin", "1.0", ("heald-core>=0.1",), {"twin": "twin.plugin"})
    assert plugin_distributions() == [twin]


PLUGINS = "[heald.plugins]\nx = x.plugin\n"
FOLDERS = {
    "plain": ("heald_x-1.0.dist-info", PLUGINS),
    "egg": ("heald_x-1.0.egg-info", PLUGINS),
    "egg without a version": ("heald_x.egg-info", PLUGINS),
    "capitals": ("Heald_X-1.0.Dist-Info", PLUGINS),
    "EGG-INFO of an egg": ("heald_x-1.0-py3.egg/EGG-INFO", PLUGINS),
    "EGG-INFO elsewhere": ("EGG-INFO", PLUGINS),
    "another suffix": ("heald_x-1.0.dist-infos", PLUGINS),
    "a suffix alone": ("heald_x-info", PLUGINS),
    "dots and dashes": ("heald.x_y-1.0+local.dist-info", PLUGINS),
    "no group": ("heald_x-1.0.dist-info", "x = x.plugin\n"),
    "another group": ("heald_x-1.0.dist-info", "[heald.plugins.more]\nx = x.plugin\n"),
    "spaces in the group": ("heald_x-1.0.dist-info", "[ heald.plugins ]\nx = x.plugin\n"),
    "spaces around the group": ("heald_x-1.0.dist-info", "  [heald.plugins]  \n   x   =   x.plugin  \n"),
    "a group twice": ("heald_x-1.0.dist-info", PLUGINS + "[other]\na = b\n[heald.plugins]\ny = y.plugin\n"),
    "comments and blank lines": (
        "heald_x-1.0.dist-info", "# [heald.plugins]\n" + f"{PLUGINS}\n# y = y.plugin\n;z = z\n"),
    "extras": ("heald_x-1.0.dist-info", "[heald.plugins]\nx = x.plugin [one, two]\n"),
    "Windows' ends of lines": ("heald_x-1.0.dist-info", PLUGINS.replace("\n", "\r\n")),
    "capitals in the group": ("heald_x-1.0.dist-info", "[Heald.Plugins]\nx = x.plugin\n"),
    "an id with spaces": ("heald_x-1.0.dist-info", "[heald.plugins]\nx y = x.plugin\n"),
    "an empty file": ("heald_x-1.0.dist-info", ""),
}


@pytest.mark.parametrize("kind", sorted(FOLDERS))
def test_the_scan_reads_a_folder_as_importlib_metadata_does(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, text = FOLDERS[kind]
    info = tmp_path / "site" / place
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: heald-x\nVersion: 1.0\n")
    (info / "PKG-INFO").write_text("Name: heald-x\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(text, newline="")
    monkeypatch.setattr("sys.path", [str(info.parent)])
    importlib.invalidate_caches()
    expected = {(e.name, e.module) for e in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}
    assert {plugin for d in plugin_distributions() for plugin in d.plugins.items()} == expected


def test_an_egg_has_its_requirements_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "heald_x-1.0.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: heald-x\nVersion: 1.0\n\nRequires-Dist: of the description\n")
    (info / "entry_points.txt").write_text(PLUGINS)
    (info / "requires.txt").write_text("numpy\nheald-core>=9\n\n[more]\nother\n")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    (found,) = plugin_distributions()
    assert found.requires == ("numpy", "heald-core>=9")
    assert unmet_requirement(found, "0.1.0") == "heald-core>=9"


@pytest.mark.parametrize(("file", "text", "expected"), [
    ("entry_points.txt", "[heald.plugins]\nyy = y.plugin\n", [Distribution("heald-x", "1.0", (), {"yy": "y.plugin"})]),
    ("entry_points.txt", "", []),
    ("entry_points.txt", None, []),
    ("METADATA", "Name: heald-x\nVersion: 2.0\n", [Distribution("heald-x", "2.0", (), {"x": "x.plugin"})]),
    ("PKG-INFO", "Name: other\nVersion: 3.0\n", [Distribution("heald-x", "1.0", (), {"x": "x.plugin"})]),
    ("requires.txt", "numpy\n", [Distribution("heald-x", "1.0", ("numpy",), {"x": "x.plugin"})]),
])
def test_a_changed_file_of_metadata_is_read_again(
    file: str, text: str | None, expected: list[Distribution], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "heald_x-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: heald-x\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(PLUGINS)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert plugin_distributions() == [Distribution("heald-x", "1.0", (), {"x": "x.plugin"})]
    if text is None:
        (info / file).unlink()
    else:
        (info / file).write_text(text)
    assert plugin_distributions() == expected


def test_a_distribution_that_announces_a_plugin_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "heald_x-1.0.dist-info"
    info.mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert plugin_distributions() == []
    (info / "entry_points.txt").write_text(PLUGINS)
    assert plugin_distributions() == [Distribution("heald_x", "1.0", (), {"x": "x.plugin"})]
    (info / "METADATA").write_text("Name: heald-x\nVersion: 1.0\n")
    assert plugin_distributions() == [Distribution("heald-x", "1.0", (), {"x": "x.plugin"})]


def test_a_folder_that_has_not_changed_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "heald_x-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(PLUGINS)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    first = plugin_distributions()
    monkeypatch.setattr(Path, "read_text", None)
    assert plugin_distributions() == first
