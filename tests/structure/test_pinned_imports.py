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
        "heald.graphs.compiler": {"NodeFacts", "run_passes"},
        "heald.graphs.graph": {"compare"},
        "heald.graphs.session": {"ConstantFolder"},
        "heald.runtime.config": {"load_config"},
        "heald.runtime.contract": {
            "CompilerEntry", "GraphPass", "KernelDef", "PRE_PLACEMENT", "load_callable", "run_of"},
        "heald.runtime.executor": {"KernelCall"},
        "heald.runtime.host": {"KernelContext", "WAIT_CHECKS", "Waits", "make_allocator", "make_work_queue"},
        "heald.runtime.program": {"GROUP", "GroupOutcome"},
        "heald.runtime.service": {"Runtime", "runtime"},
        "heald.runtime.support": {"available_memory"},
    },
    "plugins/eager/heald_eager": {
        "heald.graphs.compiler": {"name_tuple"},
        "heald.graphs.session": {"AsynchronousStep", "Session", "Signature", "find_inputs", "find_outputs"},
        "heald.runtime.config": {"EagerConfig"},
        "heald.runtime.contract": {
            "ArgDef", "AttrDef", "CONST", "CONTROL_TRIGGER", "DeviceName", "GRAPH_DEF_VERSION", "NO_KERNEL", "NO_OP",
            "OP_SET_PLUGIN", "OpRegistry", "PLACEHOLDER", "REQUIRED", "attr_text", "convert_attribute", "load_callable",
            "run_of"},
        "heald.runtime.executor": {
            "Executable", "buffer_poisoner", "check_payload", "check_returned", "only_call", "poison_array",
            "make_run_on_list", "view", "checked_run_function", "allocating_run"},
        "heald.runtime.host": {
            "Host", "KERNEL_MODES", "KernelContext", "ModeWords", "Resources", "bytes_of_call", "refusal"},
        "heald.runtime.linker": {"Binder"},
        "heald.runtime.program": {
            "Call", "ELEMENT_TYPES", "ShapeAttribute", "infer_outputs", "number_type", "plain_value"},
        "heald.runtime.service": {"HostContext", "convert_feed", "inputs_in_order", "dict_of_mapping", "runtime"},
        "heald.runtime.support": {
            "fault_place", "install", "kernel_errors", "lazy_exports", "notebook_table", "tensor_picture"},
        "heald.runtime.values": {
            "COO", "DENSE", "SCALAR", "broadcast", "coo_of", "error_among", "fill_dense", "fits", "layout_of",
            "layouts", "of_numpy", "when_available"},
    },
    "plugins/mlir/heald_mlir": {
        "heald.graphs.compiler": {"faulty_nodes", "lift_graph", "unlift_graph"},
        "heald.graphs.graph": {
            "AttrPlaceholder", "ExpansionLimit", "Func", "Function", "Versions", "attr_bytes", "graphdef",
            "graphdef_text", "parse_input"},
        "heald.graphs.protobuf": {"definitions", "message_class"},
        "heald.runtime.contract": {"HostKernel", "HostKernelRegistry", "REQUIRED"},
        "heald.runtime.host_kernels": {"Turns", "run_or_promise", "await_payloads"},
        "heald.runtime.program": {
            "Call", "CompiledModel", "ELEMENT_TYPES", "HOST", "ProgramDef", "ProgramFunction", "RegisterType",
            "ShapeAttribute", "Stream", "analyse_streams", "is_number", "native_function", "number_type",
            "stream_numbers", "typed_number", "verify"},
        "heald.runtime.support": {"file_kinds", "file_path", "gc_pause", "input_file", "whole_file"},
        "heald.runtime.values": {"Buffer"},
    },
    "plugins/ray/heald_ray": {
        "heald.graphs.compiler": {
            "HANDLE_TYPES", "HostTensors", "Partitioner", "Resolved", "called_functions", "colocation_groups",
            "flatten_fetches", "name_tuple", "outermost_loops", "resolve", "target_node", "tensor_of_name"},
        "heald.runtime.config": {"Config", "FILE_VARIABLE", "FoundFile", "Setting", "gather_layers", "load_config"},
        "heald.runtime.contract": {"Assignment", "CONST", "DeviceName", "Placement", "in_this_process"},
        "heald.runtime.executor": {"Event", "Trace"},
        "heald.runtime.host": {"LocalRendezvous"},
        "heald.runtime.program": {"Call"},
        "heald.runtime.service": {"check_limits", "convert_feed", "dict_of_mapping", "runtime"},
        "heald.runtime.support": {"whole_file"},
        "heald.runtime.values": {"dtypes"},
    },
    "plugins/report/heald_report": {
        "heald.graphs.graph": {"compare"},
        "heald.graphs.session": {"run_pre_placement_passes"},
        "heald.runtime.contract": {"in_this_process"},
        "heald.runtime.executor": {"Event", "HOST_CLOCK", "clock_spans"},
        "heald.runtime.program": {"COPY", "Call", "ProgramFunction", "in_execution_order", "stream_numbers"},
        "heald.runtime.service": {"convert_feed", "runtime"},
        "heald.runtime.support": {"tensor_picture", "whole_file"},
    },
    "plugins/saved_model/heald_saved_model": {
        "heald.graphs.compiler": {"inline", "with_successors_as_partners"},
        "heald.graphs.graph": {"Func", "Function", "ancestors", "graphdef", "graphdef_text", "parse_input"},
        "heald.graphs.protobuf": {"message_class", "parse_message"},
        "heald.runtime.contract": {"ArgDef", "OpRegistry", "check_attributes"},
        "heald.runtime.support": {"file_kinds", "file_path", "input_file", "mapped_file", "whole_file"},
        "heald.runtime.values": {"Buffer", "read_shape"},
    },
    "plugins/serve/heald_serve": {
        "heald.graphs.protobuf": {"definitions", "make_pool"},
        "heald.runtime.contract": {"in_this_process"},
        "heald.runtime.service": {"runtime"},
    },
    "plugins/tools/heald_tools": {
        "heald.graphs.compiler": {"HANDLE_TYPES"},
        "heald.graphs.graph": {"AttrPlaceholder", "Function", "attr_value", "function"},
        "heald.graphs.session": {"find_inputs", "find_outputs"},
        "heald.runtime.contract": {"ArgDef", "AttrDef", "OpRegistry", "REQUIRED", "check_attributes"},
        "heald.runtime.executor": {"Event", "Executable", "HOST_CLOCK", "clock_spans", "clock_texts"},
        "heald.runtime.program": {"COPY", "RUNTIME_CODES"},
        "heald.runtime.service": {"LoadedCompiledModel", "convert_feed", "model_place", "runtime"},
        "heald.runtime.support": {"file_path", "install", "mapped_file", "whole_file"},
        "heald.runtime.values": {"fits"},
    },
}


def imports_of(package: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of every import of heald in a package, those in functions included."""
    for path in package.rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
                yield from ((statement.module, alias.name) for alias in statement.names)
            elif isinstance(statement, ast.Import):
                yield from ((alias.name, "") for alias in statement.names)


@pytest.mark.parametrize("package", sorted(PINNED))
def test_a_pinned_distribution_takes_the_exports_that_are_listed(package):
    exports: dict[str, set[str]] = {}
    for module, name in imports_of(ROOT / package):
        if module.partition(".")[0] == "heald" and module not in PUBLIC:
            exports.setdefault(module, set()).add(name)
    assert exports == PINNED[package]


@pytest.mark.parametrize("package", sorted(PINNED))
def test_a_listed_name_is_exported_by_a_room(package):
    for module, names in PINNED[package].items():
        assert module.count(".") == 2
        room = __import__(module, fromlist=sorted(names))  # a name may be a module's
        assert [name for name in names if not hasattr(room, name)] == []


@pytest.mark.parametrize("package", sorted(PINNED))
def test_a_pinned_distribution_requires_the_exact_version_of_core(package):
    import tomllib

    import heald

    manifest = tomllib.loads((ROOT / package).parent.joinpath("pyproject.toml").read_text("utf-8"))
    assert f"heald-core=={heald.__version__}" in manifest["project"]["dependencies"]
