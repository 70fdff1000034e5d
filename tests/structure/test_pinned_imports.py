"""Distributions that are pinned to core's exact version take `weft.api`, public names, and a list of core's exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = {"weft", "weft.api", "weft.api.cli", "weft.errors"}
# By distribution: the names that it takes from the __init__ of a room of core.
PINNED = {
    "conformance/weft_conformance": {
        "weft.config": {"load_config"}, "weft.contract": {"KernelDef", "run_of"}, "weft.executor": {"BoundCall"},
        "weft.host": {"KernelContext"}, "weft.session": {"Runtime"},
    },
    "plugins/mlir/weft_mlir": {
        "weft.compiler": {"faults"},
        "weft.contract": {"REQUIRED", "HostKernel", "HostKernelRegistry"},
        "weft.eager": {"LinkedHandler", "TensorHandle", "completion", "runtime_of"},
        "weft.graph": {"AttrPlaceholder", "Func", "Function", "Versions", "attr_bytes", "graphdef",
                       "parse_input"},
        "weft.host_kernels": {"Turns", "finished", "settled"},
        "weft.program": {"ELEMENT_TYPES", "HOST", "Call", "CallSignature", "CompiledModel", "ProgramDef",
                         "ProgramFunction", "RegisterType", "ShapeAttribute", "Stream", "analyse_streams", "is_number",
                         "native_function",
                         "number_type", "stream_numbers", "typed", "verify"},
        "weft.protobuf": {"Buffer", "definitions", "message_class"},
        "weft.support": {"file_path", "gc_pause", "whole_file"},
    },
    "plugins/saved_model/weft_saved_model": {
        "weft.compiler": {"attributes", "inline"}, "weft.contract": {"ArgDef", "OpRegistry"},
        "weft.graph": {"Func", "Function", "ancestors", "did_you_mean", "graphdef", "graphdef_text", "parse_input"},
        "weft.protobuf": {"Buffer", "message_class", "parse_message"},
        "weft.support": {"file_path", "mapped_file"}, "weft.values": {"read_shape"},
    },
    "plugins/tools/weft_tools": {
        "weft.compiler": {"HELD"}, "weft.executor": {"Event", "Executable"},
        "weft.program": {"OWN"},
        "weft.session": {"LoadedCompiledModel", "convert", "find_inputs", "find_outputs"}, "weft.values": {"fits"},
    },
}


def imported(package: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of every import of weft in a package, those in functions included."""
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
        if module.partition(".")[0] == "weft" and module not in PUBLIC:
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

    import weft

    manifest = tomllib.loads((ROOT / package).parent.joinpath("pyproject.toml").read_text("utf-8"))
    assert f"weft-core=={weft.__version__}" in manifest["project"]["dependencies"]
