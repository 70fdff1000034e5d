"""heald.api offers plugins the names that type checkers see, one at a time."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import pytest
from heald import api
from structure import api_page

ROOT = Path(__file__).parents[2]
MET = (  # the classes whose methods and hooks an author writes against
    "DeviceRegistrar", "FactoryRegistrar", "KernelPackRegistrar", "LoaderRegistrar", "OpHandlerRegistrar",
    "OpRegistrar", "PassRegistrar", "SessionRegistrar", "Device", "Bind", "Kernels", "KernelDef", "FusionDef",
    "PatternDef", "FusedOp", "OpSpec", "HostAllocator", "ConcurrentWorkQueue", "PassContext", "Node", "ValueInfo",
)


def declared_names() -> set[str]:
    """The names that the block for type checkers imports."""
    tree = ast.parse(Path(api.__file__).read_text("utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {alias.name for statement in block.body if isinstance(statement, ast.ImportFrom)
            for alias in statement.names}


def test_type_checkers_see_the_names_that_the_module_offers():
    assert declared_names() == set(api.__all__)
    assert dir(api) == sorted(api.__all__)


@pytest.mark.parametrize("name", api.__all__)
def test_each_name_can_be_imported(name):
    assert getattr(importlib.import_module("heald.api"), name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_this"):
        api.nothing_like_this  # noqa: B018


def test_a_name_loads_its_own_module_only():
    code = "import sys; from heald.api import hookimpl; print(sys.modules.keys() & {'numpy', 'heald.graphs.graph'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def annotations(name: str) -> set[str]:
    """The names in the annotations of a class's public fields and methods."""
    source = Path(str(importlib.import_module(getattr(api, name).__module__).__file__)).read_text("utf-8")
    (of,) = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
    expressions: list[ast.expr | None] = []
    for node in of.body:
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            expressions.append(node.annotation)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            expressions += [arg.annotation for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            expressions.append(node.returns)
    return {part.id for node in expressions if node is not None for part in ast.walk(node)
            if isinstance(part, ast.Name)}


@pytest.mark.parametrize("name", MET)
def test_all_types_that_an_author_meets_are_offered(name):
    module = importlib.import_module(getattr(api, name).__module__)
    ours = {type_name for type_name in annotations(name)
            if getattr(value := getattr(module, type_name, None), "__module__", "").startswith("heald.")
            and not isinstance(value, TypeVar)}
    assert ours - set(api.__all__) == set()


def test_the_aliases_of_the_contract_are_offered():
    assert {"Alias", "Bound", "BindFunction", "Buffer", "Event", "Factory", "Stream", "Task"} <= set(api.__all__)


@pytest.mark.parametrize("name", api.__all__)
def test_each_name_is_documented_where_it_is_defined(name):
    assert api_page.documentation(name)


def test_the_page_of_names_is_the_one_that_make_tables_writes():
    assert (ROOT / "docs" / "api.md").read_text("utf-8") == api_page.page(), "make tables"


def test_the_examples_and_plugins_take_names_that_are_offered():
    names = {alias.name for folder in ("examples", "plugins", "device_cpu", "device_opencl", "conformance")
             for path in (ROOT / folder).rglob("*.py") for statement in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(statement, ast.ImportFrom) and statement.module == "heald.api" for alias in statement.names}
    assert names - set(api.__all__) == {"cli"} & names


def contract_names() -> set[str]:
    """The names that `heald.api` and `heald.api.cli` export, and the public members of their classes."""
    names = set()
    for module in (api, importlib.import_module("heald.api.cli")):
        for name in module.__all__:
            exported = getattr(module, name)
            names.add(f"{module.__name__}.{name}")
            for base in exported.__mro__ if isinstance(exported, type) else ():
                if base.__module__.startswith("heald"):
                    members = {*vars(base), *getattr(base, "__annotations__", ())}
                    names |= {f"{module.__name__}.{name}.{member}" for member in members if not member.startswith("_")}
    return names


def test_no_name_of_the_contract_goes_and_no_member_of_its_classes():
    """Plugins use them. A name that has to go leaves contract.txt with a line of the changelog; new names need none."""
    listed = set((Path(__file__).with_name("contract.txt")).read_text("utf-8").split())
    assert listed - contract_names() == set()
