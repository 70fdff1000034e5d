"""heald new: a copy of each example under another name works as it stands, beside the original."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from harness.distributions import distribution_files
from heald.api import Graph, Node, dtypes
from heald.graphs.graph.graphdef import dump
from heald_tools import new

ROOT = Path(__file__).parents[2]
NAMES = {"device": "acme", "kernels": "acme-fast", "ops": "acme_ops", "pass": "acme_pass2"}


def install(copy: Path, site: Path) -> None:
    """Lay a copy out on a path as an installer does."""
    project = tomllib.loads((copy / "pyproject.toml").read_text("utf-8"))["project"]
    (package,) = copy.glob("heald_*")
    files = {path.relative_to(copy).as_posix(): path.read_text("utf-8") for path in package.iterdir()}
    laid_out = distribution_files(project["name"], project["entry-points"]["heald.plugins"], files, project["version"],
                                  project["dependencies"])
    for name, text in laid_out.items():
        target = site / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder with a copy of each kind, and the environment in which all are installed."""
    folder = tmp_path_factory.mktemp("copies")
    for kind, name in NAMES.items():
        done = subprocess.run([sys.executable, "-m", "heald", "new", kind, name], cwd=folder, capture_output=True,
                              text=True, check=True)
        assert done.stdout.splitlines()[-2:][0] == f"install it later: pip install -e './{name}[test]'"
        install(folder / name, folder / "site")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HEALD_")}
    return folder, environment | {"PYTHONPATH": str(folder / "site")}


def run(copies: tuple[Path, dict[str, str]], *arguments: str) -> str:
    folder, environ = copies
    done = subprocess.run([sys.executable, "-W", "error", "-m", *arguments], cwd=folder, env=environ, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_all_copies_are_plugins_beside_the_original(copies: tuple[Path, dict[str, str]]) -> None:
    listed = {row["id"]: row["status"] for row in json.loads(run(copies, "heald", "plugins", "--json"))}
    ids = {"acme", "acme_fast", "acme_ops", "acme_pass2", "example_device"}
    assert {plugin: listed[plugin] for plugin in ids} == dict.fromkeys(ids, "ok")


def test_a_copy_of_the_device_passes_conformance(copies: tuple[Path, dict[str, str]]) -> None:
    stdout = run(copies, "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "heald_conformance", "--device",
                 "ACME:0", "--conformance-quick")
    assert int(re.findall(r"(\d+) passed", stdout)[0]) > 100


def test_a_copy_of_the_others_passes_its_own_tests(copies: tuple[Path, dict[str, str]]) -> None:
    run(copies, "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
        *(NAMES[kind] for kind in ("kernels", "ops", "pass")))


@pytest.mark.parametrize("kind", NAMES)
def test_the_next_command_of_a_package_passes_before_it_is_installed(command, tmp_path, monkeypatch, kind):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    next_command = command("new", kind, f"my-{kind}").out.splitlines()[-1].removeprefix("next: ")
    assert "pip" not in next_command
    options = " --conformance-quick -k 'memory or Relu'" if kind == "device" else ""
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-c", f"{next_command} -q -p no:cacheprovider -p no:xdist{options}"], cwd=tmp_path,
                         env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                         timeout=120)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("kind", NAMES)
def test_a_copy_lacks_the_name_of_the_example(copies: tuple[Path, dict[str, str]], kind: str) -> None:
    folder = copies[0] / NAMES[kind]
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert not [path for path in files
                if "example" in (path.relative_to(folder).as_posix() + path.read_text("utf-8")).lower()]
    assert len(files) == len([*new.template_files(new.template_folder(kind))])


def test_a_wheel_has_templates_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packed = tmp_path / "heald_tools" / "templates" / "ops"
    packed.mkdir(parents=True)  # tests/release/test_wheels.py compares the content with the examples
    monkeypatch.setattr(new, "__file__", str(tmp_path / "heald_tools" / "new.py"))
    assert new.template_folder("ops") == packed


@pytest.mark.parametrize("kind", ["loader", "command", "pass"])
@pytest.mark.parametrize("is_installed", [True, False])
def test_a_copy_names_the_suite_where_its_tests_lack_it(  # type: ignore[no-untyped-def]
    command, tmp_path, monkeypatch, kind, is_installed,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(new.install, "is_importable", lambda module: is_installed)
    needs = "its tests need heald-conformance: pip install" in command("new", kind, "mine").out
    assert needs == (not is_installed and kind != "command")


def test_a_new_command_reads_the_models_of_every_loader(command, tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    command("new", "command", "my-count")
    command("new", "loader", "my-form")
    (tmp_path / "model.my_form").write_text("my_form 3")
    done = command("my-count", "model.my_form", "--plugin", "my_count.py", "--plugin", "my_form.py")
    assert (done.status, done.err) == (0, "")
    assert done.words == [["1", "Const"], ["1", "Mul"], ["1", "Placeholder"]]


@pytest.mark.parametrize("kind", new.FILES)
def test_the_next_command_of_a_file_passes(command, tmp_path, monkeypatch, kind):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    done = command("new", kind, f"my-{kind}")
    assert [path.name for path in tmp_path.iterdir()] == [f"my_{kind}.py"]
    text = (tmp_path / f"my_{kind}.py").read_text("utf-8")
    assert not [word for word in new.FILES[kind].names if word in text]
    next_command = done.out.splitlines()[-1].removeprefix("next: ")
    assert "pip" not in next_command  # it works without an index
    options = " -q -p no:cacheprovider -p no:xdist --conformance-quick" if "pytest" in next_command else ""
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-c", next_command + options], cwd=tmp_path, env=environ, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(("name", "message"), [
    ("9x", "'9x' is no name of a plugin"), ("My", "'My' is no name of a plugin"), ("../x", "is no name of a plugin"),
    ("a__b", "is no name of a plugin"), ("sim", "a plugin 'sim' is installed already"),
    ("kernel-text", "a package 'heald_kernel_text' is installed already"), ("taken", "'taken' exists already"),
])
def test_a_name_that_cannot_be_used_is_an_error(command, tmp_path, monkeypatch, name, message):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    done = command("new", "device", name)
    assert (done.status, done.out) == (1, "")
    assert message in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_copy_that_fails_half_way_leaves_nothing(command, tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    files = [*new.template_files(new.template_folder("ops"))]
    monkeypatch.setattr(new, "template_files", lambda template: [*files, template / "gone.py"])
    done = command("new", "ops", "mine")
    assert done.status == 1
    assert done.err.startswith("error: mine: ")
    assert [*tmp_path.iterdir()] == []


def test_the_types_of_every_copy_are_right(command, tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    kinds = [*new.NEXT, *new.FILES]
    for kind in kinds:
        assert command("new", kind, f"typed-{kind}").status == 0
    dump(Graph([Node("x", "Placeholder", attrs={"dtype": dtypes.float32}),
                Node("y", "Acme>Rare", ["x"], attrs={"T": dtypes.float32})]), tmp_path / "rare.pb")
    assert command("new", "ops", "typed-rare", "--from", "rare.pb", "Acme>Rare").status == 0
    (tmp_path / "typed-rare/tests/test_ops.py").rename(tmp_path / "typed-rare/tests/test_rare.py")  # names are unique
    files = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.py"))]
    assert {Path(file).parts[0].removesuffix(".py") for file in files} == {
        *(f"typed_{kind}" for kind in new.FILES), *(f"typed-{kind}" for kind in new.NEXT), "typed-rare"}
    cache = tmp_path / "cache"
    if (ROOT / ".mypy_cache").is_dir():  # a copy saves a minute; other options would spoil the repository's own
        shutil.copytree(ROOT / ".mypy_cache", cache)
    checked = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *files]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
