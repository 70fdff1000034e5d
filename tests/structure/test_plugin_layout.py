"""Device plugins have the same files in the same order; no two modules of a distribution differ by a plural."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PLUGINS = sorted(path.parent for pattern in ("device_*/heald_*/plugin.py", "plugins/*/heald_*/plugin.py")
                 for path in ROOT.glob(pattern))
DEVICES = [package for package in PLUGINS if "registry.device(" in (package / "plugin.py").read_text("utf-8")]
ON_HOST = {"heald_cpu"}  # its memory is the host's: it has no memory.py, and kernels need no native handle
METHODS = ("__init__", "open", "close", "allocate", "figures", "adopt", "wrap", "part", "free", "copy_in", "copy_out",
           "reaches", "copy_peer", "capture", "record", "wait", "synchronize",
           "elapsed")  # the order of the contract


def functions(path: Path) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a module by name, in order."""
    body = ast.parse(path.read_text("utf-8")).body
    return {definition.name: definition for definition in body
            if isinstance(definition, ast.FunctionDef | ast.ClassDef)}


def module(package: Path, name: str) -> Path:
    """The file of a module, which may be a package."""
    return package / f"{name}.py" if (package / f"{name}.py").exists() else package / name / "__init__.py"


def test_every_device_plugin_of_the_repository_is_looked_at() -> None:
    names = {package.name for package in DEVICES}
    assert {"heald_cpu", "heald_cuda", "heald_opencl", "heald_example_device", "heald_sim"} <= names


@pytest.mark.parametrize("package", DEVICES, ids=lambda package: package.name)
def test_a_device_module_has_scan_and_then_the_device_with_the_contracts_methods_in_order(package: Path) -> None:
    names = functions(module(package, "device"))
    public = [name for name in names if not name.startswith("_")]
    assert public[0] == "scan"
    assert len(public) == 2
    device = names[public[1]]
    methods = [definition.name for definition in device.body if isinstance(definition, ast.FunctionDef)]
    assert methods == [name for name in METHODS if name in methods]
    assert {"open", "close", "allocate", "free", "copy_in", "copy_out", "record", "synchronize"} <= set(methods)


@pytest.mark.parametrize("package", DEVICES, ids=lambda package: package.name)
def test_kernels_of_a_device_are_registered_by_one_function_name(package: Path) -> None:
    assert "register_kernels" in functions(module(package, "kernels"))


@pytest.mark.parametrize("package", [package for package in DEVICES if package.name not in ON_HOST],
                         ids=lambda package: package.name)
def test_a_device_with_memory_of_its_own_has_memory_and_a_native_handle(package: Path) -> None:
    assert "Memory" in functions(module(package, "memory"))
    assert "Native" in functions(module(package, "native"))
    assert "self.native" in module(package, "device").read_text("utf-8")


@pytest.mark.parametrize("package", PLUGINS, ids=lambda package: package.name)
def test_no_two_modules_differ_by_a_plural(package: Path) -> None:
    names = {path.stem for path in package.rglob("*.py")}
    assert not {name for name in names if f"{name}s" in names}


def sources(tree: ast.AST) -> Iterator[str]:
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom):
            yield f"{'.' * statement.level}{statement.module or ''}"


def test_resources_of_the_cpu_import_no_kernel() -> None:
    paths = list((ROOT / "device_cpu" / "heald_cpu" / "resources").glob("*.py"))
    assert paths
    for path in paths:
        assert not [s for s in sources(ast.parse(path.read_text("utf-8"))) if s.startswith("..kernels")], path


def passes() -> Iterator[tuple[str, str]]:
    """Name and function of every pass of the compiler and of heald-simplify."""
    core_passes = importlib.import_module("heald.graphs.plugin").PASSES
    plugin = importlib.import_module("heald_simplify.plugin")
    yield from ((name, f"heald.graphs.compiler.passes.{function}") for name, (function, *_) in core_passes.items())
    yield from ((name, f"heald_simplify.passes.{row.function}") for rows in (plugin.PASSES, plugin.ON_REQUEST)
                for name, row in rows.items())


@pytest.mark.parametrize(("name", "target"), list(passes()))
def test_a_pass_is_a_module_of_its_name_with_a_function_named_for_what_it_does(name: str, target: str) -> None:
    path, _, function = target.partition(":")
    assert path.rpartition(".")[2] == name.replace("-", "_")
    assert callable(getattr(importlib.import_module(path), function))
    assert "_" in function, f"{target}: a pass's function says what it does and to what, as fold_constants"


@pytest.mark.parametrize("package", ["core/heald/graphs/compiler/passes", "plugins/simplify/heald_simplify/passes"])
def test_a_folder_of_passes_has_no_other_module(package: str) -> None:
    names = {name.replace("-", "_") for name, target in passes() if target.startswith(package.split("/", 1)[1].replace(
        "/", ".").removeprefix("simplify."))}
    assert {path.stem for path in (ROOT / package).glob("*.py")} == names | {"__init__"}
