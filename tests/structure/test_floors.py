"""Imports go down the floors of ARCHITECTURE.md only; plugins see heald.api alone; importing heald is light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import heald
import numpy as np
import pytest
from heald.api import Graph, Node, ShapeAttr
from heald.runtime.program import Call, ProgramDef, ProgramFunction

ROOT = Path(__file__).parent.parent.parent
CORE = ROOT / "core" / "heald"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


@cache
def rooms() -> list[set[str]]:
    """The floors of the table in ARCHITECTURE.md, bottom up: the rooms that stand on each."""
    _, _, after_head = ARCHITECTURE.read_text("utf-8").partition("| floor | rooms")
    rows = [line.split("|")[2] for line in after_head.partition("\n\n")[0].splitlines()[2:]]
    return [{name.replace("/", ".") for name in re.findall(r"`([\w/]+?)/?`", row)} for row in rows]


@cache
def modules() -> dict[str, Path]:
    """Every module of core by its dotted name below heald."""
    paths = {p.relative_to(CORE).with_suffix("").as_posix().replace("/", "."): p for p in CORE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in paths.items() if name != "__init__"}


def imports(name: str, path: Path, *, type_only: bool = True, lazy: bool = True) -> Iterator[str]:
    """The modules below heald that a module imports, those for type checkers and those within functions included or
    not. The root's __version__ belongs to no room."""
    return imports_below(name, path, modules(), type_only=type_only, lazy=lazy)


def imports_below(
    name: str, path: Path, names: Container[str], *, type_only: bool = True, lazy: bool = True
) -> Iterator[str]:
    """The modules that a module imports from its own package, which has modules of these names."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for statement in statements(ast.parse(path.read_text("utf-8")), type_only=type_only, lazy=lazy):
        if not isinstance(statement, ast.ImportFrom) or not statement.level:
            continue
        base = package[: len(package) - statement.level + 1]
        base += statement.module.split(".") if statement.module else []
        for alias in statement.names:
            full = ".".join([*base, alias.name])
            if full in names:
                yield full
            elif base:
                yield ".".join(base)


def statements(tree: ast.AST, *, type_only: bool, lazy: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        if not type_only and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if not lazy and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from statements(child, type_only=type_only, lazy=lazy)


STOREYS = ("runtime", "graphs", "cli")  # they have rooms of their own; their signs belong to none


def room(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] in STOREYS else parts[0]


def test_every_module_stands_in_a_room_and_every_room_on_one_floor():
    listed = [name for floor in rooms() for name in floor]
    assert sorted(listed) == sorted({room(name) for name in modules()} - {"runtime", "graphs"})


@pytest.mark.parametrize("name", sorted(modules()))
def test_a_module_imports_from_its_own_room_or_from_floors_below(name):
    floor_of = {room: number for number, floor in enumerate(rooms()) for room in floor}
    used = {i for i in imports(name, modules()[name]) if room(i) != room(name)}
    wrong = {i for i in used if floor_of[room(i)] >= floor_of[room(name)]}
    wrong -= {"runtime", "graphs"}
    assert not wrong, f"{name} imports {wrong}, which the table in ARCHITECTURE.md puts on its own floor or above"


def test_the_table_of_storeys_states_their_sizes():
    rows = re.findall(r"^\| `(\w+)/` \| ([\d,]+) \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    assert {storey for storey, _ in rows} == {*STOREYS, "api"}
    for storey, lines in rows:
        size = sum(len(path.read_text("utf-8").splitlines()) for path in (CORE / storey).rglob("*.py"))
        assert size == pytest.approx(int(lines.replace(",", "")), rel=0.1), storey


def test_the_runtime_names_neither_graphs_nor_eager_ops_in_an_import_or_a_text():
    for module, path in modules().items():
        if module.startswith("runtime"):
            assert not [name for name in imports(module, path) if name.startswith(("graphs", "cli", "api"))], module
            texts = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8")))
                     if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            assert not [text for text in texts if re.match(r"heald(\.graphs|\.cli|_\w+)\b[.:]", text)], module


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("heald.graphs.", "heald.cli", "google.protobuf", "heald_mlir.", "heald_eager.")) and not (
                name.endswith(".plugin")):
            raise AssertionError(f"{name} is imported")
sys.meta_path.insert(0, Blocker())
import heald
"""


@pytest.mark.parametrize("code", [
    "heald.load(sys.argv[1])({array})", "heald.HostProgram.load(sys.argv[1])",
    "heald.HostProgram.load(sys.argv[2]).run('main')"], ids=["model", "program of a model", "program"])
def test_compiled_files_run_without_a_module_of_graphs(code, tmp_path):
    from heald.graphs.session import compile_model

    model, program = tmp_path / "model.bef", tmp_path / "program.bef"
    digits = ROOT / "examples" / "digits"
    heald.bef.dump(compile_model(digits / "frozen.pb", inputs={"image": [(2, 8, 8, 1)]}), model)
    constant = Call("tfrt.constant.i32", (), (0,), {"value": 7})
    main = ProgramFunction("main", (), ("i32",), (constant,), (0,))
    heald.bef.dump(ProgramDef({"main": main}, (), ()), program)
    run = code.replace("{array}", "__import__('numpy').zeros((2, 8, 8, 1), 'float32')")
    subprocess.run([sys.executable, "-c", BLOCKED + run, str(model), str(program)], check=True, timeout=60)


@pytest.mark.parametrize("folder", sorted(path.parent for path in CORE.rglob("__init__.py") if path.parent != CORE),
                         ids=lambda folder: folder.relative_to(CORE).as_posix())
def test_the_sign_of_a_room_names_all_of_its_modules(folder):
    sign = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    named = set(re.findall(r"`([a-z_0-9.]+)/?`", sign))
    inside = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    inside |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert inside <= {name.rpartition(".")[2] for name in named}


def test_modules_do_not_import_each_other_in_circles():
    graph = {name: set(imports(name, path, type_only=False, lazy=False)) - {name} for name, path in modules().items()}
    # a package's own modules are imported through it
    others = {name: {i for i in used if not name.startswith(f"{i}.")} for name, used in graph.items()}
    TopologicalSorter(others).prepare()


def test_no_two_classes_of_core_have_one_name():
    files_by_class: dict[str, list[str]] = {}
    for name, path in modules().items():
        for statement in ast.parse(path.read_text("utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                files_by_class.setdefault(statement.name, []).append(name)
    assert {name: where for name, where in files_by_class.items() if len(where) > 1} == {}


PACKAGES = {path.parent.name: path.parent
            for pattern in ("device_*/heald_*/__init__.py", "plugins/*/heald_*/__init__.py")
            for path in ROOT.glob(pattern)}
INSIDERS = {"heald_eager", "heald_mlir", "heald_ray", "heald_report", "heald_saved_model", "heald_serve",
            "heald_tools"}  # they work on core's own graphs, programs and runtimes
FOR_USERS = {"heald_tf_ops/ops.py", "heald_tf_ops/stubs.py"}  # no part of a plugin: they take the public `heald.ops`


@pytest.mark.parametrize("package", sorted(PACKAGES.keys() - INSIDERS))
def test_plugins_import_nothing_of_heald_but_its_api(package):
    for path in PACKAGES[package].rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [statement.module or ""] if isinstance(statement, ast.ImportFrom) and not statement.level else []
            names += [a.name for a in statement.names] if isinstance(statement, ast.Import) else []
            public = {"heald.api", "heald.api.cli"} | ({"heald"} if "/".join(path.parts[-2:]) in FOR_USERS else set())
            assert not [n for n in names if n.split(".")[0] == "heald" and n not in public], path


def test_no_module_has_a_name_that_says_nothing():
    for folder in ("core", "device_cpu", "device_opencl", "conformance", "plugins", "release", "tests", "benchmarks",
                   "examples"):
        assert not [p for p in (ROOT / folder).rglob("*.py") if p.stem in FORBIDDEN_NAMES]


HEAVY = ("numpy", "google.protobuf", "pluggy", "tabulate", "tqdm", "importlib.metadata", "heald_cpu",
         "heald_decision_forests", "heald_eager", "heald_example_device", "heald_mlir", "heald_opencl", "heald_sim",
         "heald_onednn", "heald_ray", "heald_report", "heald_saved_model", "heald_serve", "heald_simplify",
         "heald_tf_ops", "heald_tf_text", "heald_tools", "grpc", "httptools", "ray", "orjson", "uvicorn", "asyncio",
         "pyopencl", "_cffi_backend", "heald_cuda")


def loaded_after(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after running `code`."""
    report = f"{code}\nimport json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_heald_loads_nothing_heavy():
    assert loaded_after("import heald") == set()
    assert loaded_after("import heald; heald.__version__; dir(heald); heald.errors.InvalidArgument") == set()


def test_the_version_on_the_command_line_loads_nothing_heavy():
    code = "import sys, heald.cli\ntry:\n    heald.cli.main(['--version'])\nexcept SystemExit:\n    pass"
    assert loaded_after(code) == set()


def test_discovery_loads_the_light_modules_of_plugins_and_no_kernels():
    code = "from heald.runtime.service.runtime import runtime; runtime().plugins.records()"
    assert loaded_after(code) == {
        "heald_cpu", "heald_cuda", "heald_decision_forests", "heald_eager", "heald_example_device", "heald_mlir",
        "heald_opencl", "heald_sim", "heald_onednn", "heald_ray", "heald_report", "heald_saved_model", "heald_serve",
        "heald_simplify",
        "heald_tf_ops", "heald_tf_text", "heald_tools"}


def test_a_program_on_the_cpu_loads_no_driver_of_another_device():
    code = """
import sys
import numpy as np
import heald
from heald.graphs.graph.graph import Graph, Node
F = heald.api.dtypes.float32
session = heald.Session(Graph([Node("c", "Const", attrs={"dtype": F, "value": np.ones(2, "f4")}),
                              Node("n", "Neg", ["c"], attrs={"T": F}, device="CPU:0")]))
session.run("n")
assert not [m for m in sys.modules
            if m.startswith(("heald_example_device.", "heald_sim.")) and not m.endswith((".plugin", ".config"))]
"""
    assert "numpy" in loaded_after(code)


MOST_MODULES_OF_A_START = 208  # each costs about 0.1 ms


def test_a_compiled_network_starts_with_few_modules_and_without_graphs(tmp_path):
    code = """
import sys
import numpy as np
import heald
model = heald.load(sys.argv[1])
model(np.ones((1, 8, 8, 3), np.float32))
modules = [name for name in sys.modules if name.startswith("heald")]
assert not [name for name in modules if name.startswith(("heald.graphs", "heald.cli", "heald_simplify"))]
assert not {"pluggy", "shlex", "hashlib"} & set(sys.modules)
print(len(modules))
"""
    float32 = heald.api.dtypes.float32
    convolution = {"T": float32, "strides": [1, 1, 1, 1], "padding": "SAME"}
    heald.graphdef.dump(Graph([
        Node("x", "Placeholder", attrs={"dtype": float32, "shape": ShapeAttr((1, 8, 8, 3))}),
        Node("filters", "Const", attrs={"dtype": float32, "value": np.ones((3, 3, 3, 4), np.float32)}),
        Node("bias", "Const", attrs={"dtype": float32, "value": np.ones(4, np.float32)}),
        Node("conv", "Conv2D", ["x", "filters"], attrs=convolution),
        Node("biased", "BiasAdd", ["conv", "bias"], attrs={"T": float32}),
        Node("y", "Relu6", ["biased"], attrs={"T": float32}),
    ]), tmp_path / "m.pb")
    compile_network = [sys.executable, "-m", "heald", "compile", "m.pb", "-o", "m.bef"]
    subprocess.run(compile_network, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.bef")], capture_output=True, text=True,
                          check=True)
    assert int(done.stdout) <= MOST_MODULES_OF_A_START


def test_unknown_attributes_of_heald_are_attribute_errors():
    import heald

    with pytest.raises(AttributeError, match="nothing_like_this"):
        heald.nothing_like_this  # noqa: B018
    assert "load" in dir(heald)


@pytest.mark.parametrize("room", sorted({room(name) for name in modules() if "." in room(name)}))
def test_the_modules_of_a_room_import_each_other_in_no_circle(room):
    inside = {name: {module for module in imports(name, path) if module.startswith(f"{room}.")}
              for name, path in modules().items() if name.startswith(f"{room}.")}
    TopologicalSorter(inside).prepare()  # raises CycleError, which names the circle


CIRCLES_OF_PLUGINS = {"heald_mlir"}  # an import for type checkers closes one


def imports_of_package(package: Path, *, type_only: bool) -> dict[str, set[str]]:
    """For each module of a plugin's package the modules that it imports, those within functions included."""
    paths = {path.relative_to(package).with_suffix("").as_posix().replace("/", "."): path
             for path in package.rglob("*.py") if path.parent != package or path.name != "__init__.py"}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    return {name: set(imports_below(name, path, paths, type_only=type_only)) - {name} for name, path in paths.items()}


@pytest.mark.parametrize("name", sorted(PACKAGES.keys() - CIRCLES_OF_PLUGINS))
def test_no_import_for_type_checkers_closes_a_circle_in_a_plugin(name):
    graph, used = (imports_of_package(PACKAGES[name], type_only=type_only) for type_only in (True, False))
    for module, imported in graph.items():
        for other in imported - used[module]:
            assert module not in reachable(graph, other), f"{module} imports {other} for type checkers"


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """The modules that a module imports, at any depth."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        waiting += graph.get(module, set()) - reached
        reached |= graph.get(module, set())
    return reached
