"""All manifests have one version, one licence and the same classifiers; the script that writes them is the source."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from release import manifests

ROOT = Path(__file__).parents[2]
FOLDERS = manifests.folders()
TEXT = """\
[project]
name = "heald-some-device"
version = "0.1.0"  # old
requires-python = ">=3.11"
dependencies = [
    "heald-core==0.1.0",  # a comment stays
    "heald-kernel-text>=0.1,<0.2",
    'heald-cpu[special]==0.1.0; sys_platform == "linux"',
    "numpy>=2.0", "cuda-core>=1.0,<2", "not-heald-core==0.1.0",
]

[project.optional-dependencies]
test = ["heald", "heald-conformance>=0.1,<0.2"]

[tool.hatch.build.targets.wheel]
packages = ["heald_some_device"]
"""


def project(text: str) -> dict:
    return tomllib.loads(text)["project"]


def test_every_file_of_a_distribution_is_as_the_script_writes_it():
    assert [str(path.relative_to(ROOT)) for path, _ in manifests.stale_files()] == []


def test_every_manifest_of_the_repository_is_one_of_a_distribution():
    listed = {path.parent for path in ROOT.rglob("pyproject.toml")
              if not {".venv", "dist", "tests"} & set(path.relative_to(ROOT).parts)}
    assert listed == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_distribution_has_the_version_of_heald_and_a_readme(folder):
    import heald

    table = project((folder / "pyproject.toml").read_text("utf-8"))
    assert table["version"] == heald.__version__ == manifests.project_version()
    assert (folder / "README.md").stat().st_size > 200
    assert "readme" in table or "readme" in table["dynamic"]


def test_a_new_version_reaches_pins_and_ranges_of_our_distributions_alone():
    table = project(manifests.renew_manifest(TEXT, "0.4.2", ""))
    assert table["version"] == "0.4.2"
    assert table["dependencies"] == [
        "heald-core==0.4.2", "heald-kernel-text>=0.4,<0.5", 'heald-cpu[special]==0.4.2; sys_platform == "linux"',
        "numpy>=2.0", "cuda-core>=1.0,<2", "not-heald-core==0.1.0"]
    assert table["optional-dependencies"] == {"test": ["heald", "heald-conformance>=0.4,<0.5"]}


def test_a_renewed_manifest_keeps_its_comments_and_is_not_renewed_again():
    renewed = manifests.renew_manifest(TEXT, "1.0.0", "https://example.org/heald")
    assert '"heald-core==1.0.0",  # a comment stays\n' in renewed
    assert manifests.renew_manifest(renewed, "1.0.0", "https://example.org/heald") == renewed


def test_an_address_comes_with_the_project_and_goes_with_it():
    renewed = manifests.renew_manifest(TEXT, "0.1.0", "https://example.org/heald")
    assert project(renewed)["urls"]["Repository"] == "https://example.org/heald"
    assert all(url.startswith("https://example.org/heald") for url in project(renewed)["urls"].values())
    assert manifests.renew_manifest(renewed, "0.1.0", "") == manifests.renew_manifest(TEXT, "0.1.0", "")
    assert "urls" not in project(manifests.renew_manifest(TEXT, "0.1.0", ""))


def test_a_manifest_without_a_version_is_no_manifest_of_a_distribution():
    with pytest.raises(ValueError, match="version"):
        manifests.renew_manifest('[project]\nname = "heald-x"\ndynamic = ["version"]\n', "0.1.0", "")


versions = st.builds(lambda major, minor, patch, suffix: f"{major}.{minor}.{patch}{suffix}", st.integers(0, 3),
                     st.integers(0, 12), st.integers(0, 9), st.sampled_from(["", "", "a1", "rc2"]))


@given(versions)
def test_a_range_has_its_own_version_and_ends_before_the_next_incompatible_one(version):
    compatible = SpecifierSet(manifests.compatible_range(version))
    parsed = Version(version)
    assert compatible.contains(version, prereleases=True)
    assert compatible.contains(f"{parsed.major}.{parsed.minor}.{parsed.micro + 1}")
    assert not compatible.contains(f"{parsed.major + 1}.0.0")
    assert compatible.contains(f"{parsed.major}.{parsed.minor + 1}.0") == (parsed.major > 0)
    assert not compatible.contains("0.0.0.dev1", prereleases=True)
