"""Distributions pinned to core's exact version take `heald.api`, public names, and a list of core's exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = {"heald", "heald.api", "heald.api.cli", "heald.errors"}
# By distribution: the names that it takes from the __init__ of a room of core.
PINNED = {
    "conformance/heald_conformance": {
        "heald.config": {"load_config"}, "heald.contract": {"KernelDef", "run_of"}, "heald.executor": {"BoundCall"},
        "heald.host": {"KernelContext"}, "heald.session": {"Runtime"},
    },
    "plugins/mlir/heald_mlir": {
        "heald.compiler": {"faults"},
        "heald.contract": {"REQUIRED", "HostKernel", "HostKernelRegistry"},
        "heald.eager": {"LinkedHandler", "TensorHandle", "completion", "runtime_of"},
        "heald.graph": {"AttrPlaceholder", "ExpansionLimit", "Func", "Function", "Versions", "attr_bytes", "graphdef",
                       "parse_input"},
        "heald.host_kernels": {"Turns", "finished", "settled"},
        "heald.program": {"ELEMENT_TYPES", "HOST", "Call", "CompiledModel", "ProgramDef",
                         "ProgramFunction", "RegisterType", "ShapeAttribute", "Stream", "analyse_streams", "is_number",
                         "native_function",
                         "number_type", "stream_numbers", "typed", "verify"},
        "heald.protobuf": {"Buffer", "definitions", "message_class"},
        "heald.support": {"file_path", "gc_pause", "whole_file"},
    },
    "plugins/saved_model/heald_saved_model": {
        "heald.compiler": {"check_attributes", "inline"}, "heald.contract": {"ArgDef", "OpRegistry"},
        "heald.graph": {"Func", "Function", "ancestors", "did_you_mean", "graphdef", "graphdef_text", "parse_input"},
        "heald.protobuf": {"Buffer", "message_class", "parse_message"},
        "heald.support": {"file_path", "mapped_file", "whole_file"}, "heald.values": {"read_shape"},
    },
    "plugins/tools/heald_tools": {
        "heald.compiler": {"HELD"}, "heald.executor": {"Event", "Executable"},
        "heald.program": {"OWN"},
        "heald.session": {"LoadedCompiledModel", "convert", "find_inputs", "find_outputs"},
        "heald.support": {"install", "whole_file"}, "heald.values": {"fits"},
    },
}


def imported(package: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of every import of heald in a package, those in functions included."""
    for path in package.rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
                yield from ((statement.module, alias.name) for alias in statement.names)
            elif isinstance(statement, ast.Import):
                yield from ((alias.name, "") for alias in statement.names)


@pytest.mark.parametrize("package", sorted(PINNED))
def test_a_pinned_distribution_takes_the_exports_that_are_listed(package):
    found: dict[str, set[str]] = {}
    for module, name in imported(ROOT / package):
        if module.partition(".")[0] == "heald" and module not in PUBLIC:
            found.setdefault(module, set()).add(name)
    assert found == PINNED[package]


@pytest.mark.parametrize("package", sorted(PINNED))
def test_what_is_listed_is_exported_by_a_room(package):
    for module, names in PINNED[package].items():
        assert module.count(".") == 1
        room = __import__(module, fromlist=sorted(names))  # a name may be a module's
        assert [name for name in names if not hasattr(room, name)] == []


@pytest.mark.parametrize("package", sorted(PINNED))
def test_a_pinned_distribution_requires_the_exact_version_of_core(package):
    import tomllib

    import heald

    manifest = tomllib.loads((ROOT / package).parent.joinpath("pyproject.toml").read_text("utf-8"))
    assert f"heald-core=={heald.__version__}" in manifest["project"]["dependencies"]
