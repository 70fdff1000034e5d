"""Imports go down the floors only; plugins see weft.api alone; importing weft is light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CORE = ROOT / "core" / "weft"
FLOORS = (
    ("values", "async_value collector dtypes errors forked tensor user_files"),
    ("contracts", "allocator allocators debug_config device disk_cache geometry graph_pass hookspecs host_kernel "
                  "host_type kernel metadata op op_spec placement_config plugin_code registries work_queue "
                  "work_queues"),
    ("graphs", "array_files attr_value checkpoint crc32c function graph graph_order graph_verifier graphdef "
               "graphdef_text mapped_file messages node rewriting saved_model signature snappy sstable tensor_proto "
               "text_fields text_scalars "
               "vocabulary wire"),
    ("programs", "host_program program_verifier"),
    ("passes", "asset_tables captures colocation freeze host_numbers infer inline lower names optimize place prune "
               "resolve signature_graph workload"),
    ("running", "running"),
    ("fronts", "__main__ api cli config config_file config_schema config_search config_sources config_trust difference "
               "discovery evaluation installed model plugin_module plugin_record program rewritten runtime session "
               "working_folder"),
)
FLOOR_OF = {module: number for number, (_, modules) in enumerate(FLOORS) for module in modules.split()}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def modules() -> dict[str, Path]:
    """Every module of core by its dotted name below weft."""
    paths = {p.relative_to(CORE).with_suffix("").as_posix().replace("/", "."): p for p in CORE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in paths.items() if name != "__init__"}


def imports(name: str, path: Path, *, top_only: bool) -> Iterator[str]:
    """The modules below weft that a module imports when it runs, those within functions included or not."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for statement in statements(ast.parse(path.read_text("utf-8")), top_only=top_only):
        if not isinstance(statement, ast.ImportFrom) or not statement.level:
            continue
        base = package[: len(package) - statement.level + 1]
        base += statement.module.split(".") if statement.module else []
        for alias in statement.names:
            full = ".".join([*base, alias.name])
            if full in modules():
                yield full
            elif base:
                yield ".".join(base)


def statements(tree: ast.AST, *, top_only: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if top_only and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from statements(child, top_only=top_only)


def test_every_module_has_a_floor():
    assert {name.split(".")[0] for name in modules()} == set(FLOOR_OF)


@pytest.mark.parametrize("name", sorted(modules()))
def test_a_module_imports_from_its_own_floor_or_below(name):
    floor = FLOOR_OF[name.split(".")[0]]
    above = {i for i in imports(name, modules()[name], top_only=False) if FLOOR_OF[i.split(".")[0]] > floor}
    assert not above, f"{name} is on floor {floor} ({FLOORS[floor][0]}) and imports {above}"


def test_modules_do_not_import_each_other_in_circles():
    graph = {name: set(imports(name, path, top_only=True)) - {name} for name, path in modules().items()}
    # a package's own modules are imported through it
    others = {name: {i for i in used if not name.startswith(f"{i}.")} for name, used in graph.items()}
    TopologicalSorter(others).prepare()


@pytest.mark.parametrize("package", [
    "device_cpu/weft_cpu", "device_opencl/weft_opencl", "plugins/example/weft_example", "plugins/sim/weft_sim",
    "plugins/kernel_text/weft_kernel_text", "plugins/onednn/weft_onednn", "plugins/simplify/weft_simplify"])
def test_plugins_import_nothing_of_weft_but_its_api(package):
    for path in (ROOT / package).rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [statement.module or ""] if isinstance(statement, ast.ImportFrom) and not statement.level else []
            names += [a.name for a in statement.names] if isinstance(statement, ast.Import) else []
            assert not [n for n in names if n.split(".")[0] == "weft" and n != "weft.api"], path


def test_no_module_has_a_name_that_says_nothing():
    for folder in ("core", "device_cpu", "device_opencl", "conformance", "plugins", "tests", "benchmarks", "examples"):
        assert not [p for p in (ROOT / folder).rglob("*.py") if p.stem in FORBIDDEN_NAMES]


HEAVY = ("numpy", "google.protobuf", "pluggy", "tabulate", "tqdm", "importlib.metadata", "weft_cpu", "weft_example",
         "weft_opencl", "weft_sim", "weft_onednn", "weft_simplify", "pyopencl", "_cffi_backend")


def loaded_after(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after running `code`."""
    report = f"{code}\nimport json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_weft_loads_nothing_heavy():
    assert loaded_after("import weft") == set()
    assert loaded_after("import weft; weft.__version__; dir(weft); weft.errors.InvalidArgument") == set()


def test_the_version_on_the_command_line_loads_nothing_heavy():
    code = "import sys, weft.cli\ntry:\n    weft.cli.main(['--version'])\nexcept SystemExit:\n    pass"
    assert loaded_after(code) == set()


def test_discovery_loads_the_light_modules_of_plugins_and_no_kernels():
    assert loaded_after("import weft.runtime; weft.runtime.runtime().plugins.records()") == {
        "pluggy", "weft_cpu", "weft_example", "weft_opencl", "weft_sim", "weft_onednn", "weft_simplify"}


def test_a_program_on_the_cpu_loads_no_driver_of_another_device():
    code = """
import sys
import numpy as np
import weft
from weft.graph import Graph, Node
F = weft.api.dtypes.float32
session = weft.Session(Graph([Node("c", "Const", attrs={"dtype": F, "value": np.ones(2, "f4")}),
                              Node("n", "Neg", ["c"], attrs={"T": F}, device="CPU:0")]))
session.run("n")
assert not [m for m in sys.modules if m.startswith(("weft_example.", "weft_sim.")) and not m.endswith(".plugin")]
"""
    assert "numpy" in loaded_after(code)


def test_unknown_attributes_of_weft_are_attribute_errors():
    import weft

    with pytest.raises(AttributeError, match="nothing_like_this"):
        weft.nothing_like_this  # noqa: B018
    assert "load" in dir(weft)
