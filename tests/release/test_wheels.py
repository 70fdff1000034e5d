"""The wheel of each distribution has the files of its folder, and its sdist gives the same wheel."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from heald_tools import new
from packaging.metadata import Metadata

from release import manifests, wheels

ROOT = Path(__file__).parents[2]
FOLDERS = manifests.folders()
MACHINE_PATH = re.compile(rb"(?<![\w.-])(?:%b|/tmp)/" % re.escape(str(ROOT).encode()))
META_HOOK = runpy.run_path(str(ROOT / "hatch_build.py"))
TOOLS_HOOK = runpy.run_path(str(ROOT / "plugins/tools/hatch_build.py"))


def package_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder's package, by their paths in a wheel."""
    targets = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for package in targets["wheel"].get("packages", ()) for path in (folder / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts}


def templates() -> dict[str, bytes]:
    """The files that `heald new` copies in a checkout, by their paths in the wheel of heald-tools."""
    examples = {kind: ROOT / "plugins" / f"example_{kind}" for kind in new.NEXT}
    files = {f"heald_tools/templates/{kind}.py": new.template_file(kind).read_bytes() for kind in new.FILES}
    return files | {f"heald_tools/templates/{kind}/{path.relative_to(example).as_posix()}": path.read_bytes()
                    for kind, example in examples.items() for path in new.template_files(example)}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_wheel_has_the_files_of_its_folder_and_its_sdist_gives_the_same_files(folder, tmp_path):
    (tmp_path / "of_folder").mkdir()
    of_folder = wheels.build_wheel_of(folder, tmp_path / "of_folder")
    sdist, of_sdist = wheels.build_distribution(folder, tmp_path)
    assert of_sdist.name == of_folder.name == sdist.name.replace(".tar.gz", "-py3-none-any.whl")

    contents = wheels.wheel_contents(of_sdist)
    info = sdist.name.replace(".tar.gz", ".dist-info/")
    record = contents.pop(f"{info}RECORD")
    others = wheels.wheel_contents(of_folder)
    assert sorted(record.splitlines()) == sorted(others.pop(f"{info}RECORD").splitlines())
    assert contents == others
    files = {name: content for name, content in contents.items() if not name.startswith(info)}
    assert files == package_files(folder) | (templates() if folder.name == "tools" else {})
    assert contents[f"{info}licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    package = {name.split("/")[0] for name in files}
    assert all(f"{name}/py.typed" in files for name in package)
    assert [name for name, content in contents.items() if MACHINE_PATH.search(content)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_metadata_of_a_wheel_are_valid_and_describe_it_without_relative_links(folder, tmp_path):
    contents = wheels.wheel_contents(wheels.build_wheel_of(folder, tmp_path))
    (text,) = (content for name, content in contents.items() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.license_expression == "Apache-2.0"
    assert tuple(metadata.classifiers) == manifests.CLASSIFIERS
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description.startswith(f"# {metadata.name}\n")
    assert not META_HOOK["LINK"].findall(metadata.description)
    assert "<img" not in metadata.description


def test_links_of_the_readme_lead_to_the_files_of_the_version_or_become_text():
    text = ('# a\n<picture>\n  <img src="b.svg">\n</picture>\n\n'
            "[a page](docs/a.md#part), [the web](https://example.org)")
    describe = META_HOOK["index_description"]
    assert describe(text, "") == "# a\na page, [the web](https://example.org)"
    assert "[a page](https://example.org/x/blob/v1/docs/a.md#part)" in describe(text, "https://example.org/x/blob/v1")


def test_templates_are_of_the_kinds_of_heald_new_and_a_missing_example_is_an_error(tmp_path):
    assert set(TOOLS_HOOK["KINDS"]) == set(new.NEXT)
    assert TOOLS_HOOK["FILES"] == {kind: template.example for kind, template in new.FILES.items()}
    with pytest.raises(FileNotFoundError, match="example_device: `heald new` needs this example"):
        list(TOOLS_HOOK["template_files"](tmp_path / "example_device"))


def test_builds_replace_the_old_files_of_heald_in_a_folder_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "folders", lambda: [ROOT / "plugins" / "sim"])
    for name in ("heald_sim-0.0.1-py3-none-any.whl", "numpy-2.0.0.whl"):
        (tmp_path / name).write_bytes(b"")
    wheels.build_all(tmp_path)
    version = manifests.project_version()
    assert {path.name for path in tmp_path.iterdir()} == {
        "numpy-2.0.0.whl", f"heald_sim-{version}.tar.gz", f"heald_sim-{version}-py3-none-any.whl"}


def test_stale_manifests_are_an_error_before_anything_is_built(monkeypatch, capsys):
    monkeypatch.setattr(wheels, "stale_files", lambda: [(ROOT / "core/pyproject.toml", b"")])
    monkeypatch.setattr(wheels, "build_all", lambda to: pytest.fail("built"))
    assert wheels.main() == 1
    assert "core/pyproject.toml: not as python -m release.manifests writes them" in capsys.readouterr().err
