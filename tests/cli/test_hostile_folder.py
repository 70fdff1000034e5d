"""In a folder that a stranger filled, no command and no import runs a line of its Python.

Each Python file in the folder appends its name to a file when it is run. Python itself imports some modules before
heald is reached; no program can defend these, so the folder shadows all others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from argparse import Action, ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders.graphs import node, placeholder
from heald.cli.commands import COMMANDS, of_plugins, parser_of
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump

ROOT = Path(__file__).parents[2]
INSTALLED = ("numpy", "google", "pluggy", "tabulate", "tqdm", "PIL", "ml_dtypes", "re2", "scipy", "pyopencl",
             "tensorflow", "onnxruntime", "openvino", "heald_cpu", "heald_example_device", "heald_simplify",
             "heald_sim", "heald_decision_forests", "heald_kernel_text", "heald_saved_model", "heald_tools",
             "heald_ray", "ray", "heald_report", "jinja2", "markupsafe", "fast_sugiyama", "heald_serve", "httptools",
             "orjson", "uvicorn", "uvloop")
CONFIG = """
[plugins]
load = ["heald_evil.py", "./heald_evil.py", "heald_evil"]
allow = ["evil"]
[allocator]
name = "plain"
[kernels]
Neg = "heald_evil"
[plugin.heald_evil]
path = "heald_evil.py"
"""
ENTRY_POINTS = "[heald.plugins]\nevil = heald_evil\ncpu = heald_evil\n"

# By metavar, the values of required arguments; by name of a command, further arguments.
GIVEN = {"A": "CPU:0", "FOLDER": ".", "OUT": "../out.pbtxt", "FILE": "../harmless/heald.toml", "NAME": "acme",
         "FILE.html": "../out.html"}
BESIDES = {"bench": ["--duration", "0.01"], "devices": ["CPU:0", "--check", "--isolate"],
           "diff": ["--device", "CPU:0"], "edit": ["--force"], "new": ["acme"], "ops": ["Neg"],
           "run": ["--input", "[1, 2]"], "serve": ["--version"],
           "trace": ["--input", "[1, 2]"], "translate": ["--output", "../out.tfg"]}
DRIVER = """
import json, os, socketserver, sys
from heald.__main__ import remove_working_folder
remove_working_folder()
socketserver.BaseServer.serve_forever = lambda *_: None  # of heald view, which ends with Ctrl-C alone
from heald.cli import main
from heald.runtime.service.runtime import process_scope
statuses = {}
for arguments in json.loads(sys.argv[1]):
    process_scope.default = None
    try:
        statuses[" ".join(arguments)] = main(arguments)
    except SystemExit as end:
        statuses[" ".join(arguments)] = end.code
os.chdir("models")
process_scope.default = None
statuses["below"] = main(["inspect", "model.pb"])
print()
print(json.dumps(statuses))
"""


class Folder(NamedTuple):
    path: Path
    mark: Path  # exists when Python of the folder was run

    def run(self, *command: str, within: str = ".", **environ: str) -> subprocess.CompletedProcess[str]:
        self.mark.unlink(missing_ok=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HEALD_", "PYTHON"))}
        environment |= {
            "XDG_CONFIG_HOME": str(self.path.parent / "user"), "XDG_CACHE_HOME": str(self.path.parent / "cache"),
            "HEALD_PLUGINS__BLOCK": "onednn,opencl,sim"}
        return subprocess.run(command, cwd=self.path / within, env=environment | environ, capture_output=True,
                              text=True, timeout=60, check=False)

    @property
    def has_run(self) -> list[str]:
        return self.mark.read_text().split() if self.mark.exists() else []


def make(folder: Path, names: frozenset[str]) -> Folder:
    """A folder with a model, and these modules and a plugin that are all of a stranger."""
    folder_of_files = Folder(folder / "hostile", folder / "mark")
    (folder_of_files.path / "models").mkdir(parents=True)
    source = f"open({str(folder_of_files.mark)!r}, 'a').write(__name__ + ' ')\nHEALD_API = (1, 0)\n"
    for name in names | {"heald_evil"}:
        (folder_of_files.path / f"{name}.py").write_text(source)
    info = folder_of_files.path / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder_of_files.path / "heald.toml").write_text(CONFIG)
    (folder_of_files.path / "pyproject.toml").write_text(CONFIG.replace("\n[", "\n[tool.heald."))
    for directory in (folder_of_files.path, folder_of_files.path / "models"):
        dump(Graph([placeholder("x", (2,)), node("y", "Neg", "x")]), directory / "model.pb")
    (folder / "harmless").mkdir()
    (folder / "harmless" / "heald.toml").write_text("[placement]\nclear = false\n")
    return folder_of_files


@pytest.fixture(scope="module")
def shadows(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Every module that heald may import, without the modules that Python and the start script import before heald."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.py").write_text("import re, sys\nprint(*sys.modules)\n")
    imported: set[str] = set()
    for start in (["-m", "probe"], ["-c", "import sys; print(*sys.modules)"]):  # Python 3.13 registers the lines of -c
        probe = subprocess.run([sys.executable, *start], cwd=folder, capture_output=True, text=True, check=True)
        imported.update(probe.stdout.split())
    return (sys.stdlib_module_names | set(INSTALLED)) - imported


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, shadows: frozenset[str]) -> Folder:
    return make(tmp_path_factory.mktemp("shadows"), shadows)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command `heald` as an installer writes it."""
    scripts = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["heald"].partition(":")
    path = tmp_path_factory.mktemp("bin") / "heald"
    path.write_text(f"import re\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    return str(path)


def actions_of(parser: ArgumentParser) -> list[Action]:
    return parser._actions  # argparse has no public list


def leaves(parser: ArgumentParser, *names: str) -> Iterator[tuple[tuple[str, ...], ArgumentParser]]:
    """Every command with its parser, from argparse's own tree."""
    below: Any = next((action.choices for action in actions_of(parser) if isinstance(action.choices, dict)), None)
    if below is None:
        yield names, parser
    for name, child in (below or {}).items():
        yield from leaves(child, *names, name)


def leaves_of_all() -> Iterator[tuple[tuple[str, ...], ArgumentParser]]:
    for command in (*COMMANDS.values(), *of_plugins().usable()):
        yield from leaves(parser_of(command), command.name)


def required_words(action: Action) -> list[str]:
    value = next(iter(action.choices)) if action.choices else GIVEN.get(str(action.metavar), "model.pb")
    return [action.option_strings[-1], value] if action.option_strings else [value]


def every_command() -> list[list[str]]:
    commands = []
    for names, parser in leaves_of_all():
        actions = [action for action in actions_of(parser) if action.required and action.nargs != "*"]
        action_words = [word for action in actions for word in required_words(action)]
        commands.append([*names, *action_words, *BESIDES.get(names[0], [])])
    return [["--version"], ["--help"], *commands]


def test_no_command_runs_python_of_the_folder(tmp_path: Path, shadows: frozenset[str]) -> None:
    """Not even a package called heald: a command that starts Python anew does not find it."""
    import json

    folder = make(tmp_path, shadows)
    (folder.path / "heald.py").write_text((folder.path / "heald_evil.py").read_text())
    (tmp_path / "driver.py").write_text(DRIVER)
    commands = every_command()
    done = folder.run(sys.executable, str(tmp_path / "driver.py"), json.dumps(commands))
    assert folder.has_run == []
    statuses = json.loads(done.stdout.splitlines()[-1])
    assert len(statuses) == len(commands) + 1 > 10
    assert {command: status for command, status in statuses.items() if status != 0} == {}, done.stderr
    assert f"{folder.path / 'heald.toml'} was found, not named: it cannot set plugins." in done.stderr


def test_the_module_as_a_command_imports_nothing_from_the_folder(hostile: Folder) -> None:
    done = hostile.run(sys.executable, "-m", "heald", "run", "model.pb", "--input", "[1, 2]")
    assert hostile.has_run == []
    assert (done.returncode, "-1" in done.stdout) == (0, True), done.stderr


def test_the_script_imports_nothing_from_the_folder_for_parts_of_the_path_that_are_not_absolute(
    hostile: Folder, script: str
) -> None:
    done = hostile.run(sys.executable, script, "inspect", "model.pb", PYTHONPATH=os.pathsep.join(("", ".", "models")))
    assert hostile.has_run == []
    assert done.returncode == 0, done.stderr


def test_importing_heald_runs_nothing_of_the_folder(hostile: Folder) -> None:
    done = hostile.run(sys.executable, "-c", "import heald, sys; print(sys.path[0] == '', *dir(heald))")
    assert hostile.has_run == []
    assert done.stdout.startswith("True"), done.stderr  # a program's own sys.path stays as it was
    load = "import heald, numpy; print(heald.load('model.pb')(numpy.ones(2, 'f')))"
    done = hostile.run(sys.executable, "-P", "-c", load)
    assert hostile.has_run == []
    assert done.stdout == "[-1. -1.]\n", done.stderr


def test_entry_points_in_the_working_folder_are_not_taken(tmp_path: Path) -> None:
    folder = make(tmp_path, frozenset())
    code = """
import os, sys, heald
from heald.runtime.service.runtime import process_scope
heald.load("model.pb")
for place in ("", os.getcwd()):  # as python -c and python -m write it
    sys.path[0] = place
    process_scope.default = None
    print(*sorted(record.id for record in heald.plugins()))
"""
    done = folder.run(sys.executable, "-c", code)
    assert folder.has_run == []
    plugins = ["cpu", "cuda", "decision_forests", "eager", "example_device", "heald", "mlir", "onednn", "opencl",
               "ray", "report", "saved_model", "serve", "sim", "simplify", "tf_ops", "tf_text", "tools"]
    assert done.stdout.split() == plugins * 2, done.stderr
