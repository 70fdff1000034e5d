"""Groups of compilers travel in compiled files; a host without the compiler links their nodes in place."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.compilers import NumPyCompiler, runtime_with
from builders.control_flow import branch, function, program
from builders.graphs import const, graph, node, placeholder
from heald import graphdef
from heald.errors import InvalidArgument
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.program.bef import file as bef
from heald.runtime.program.host_program import GROUP
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald.runtime.values import dtypes

X = np.float32([1, -2, 3])
NODES = [placeholder("x", (None, 3)), const("c", [1, 2, 3]), const("d", [2, 2, 2]), node("k", "Mul", "c", "d"),
         node("a", "Mul", "x", "k"), node("t", "Tanh", "a"), node("b", "Neg", "a"), node("e", "AddV2", "b", "t")]


def saved(tmp_path, model):
    path = tmp_path / "model.pb"
    path.write_bytes(graphdef.dumps(model))
    return path


def through_a_file(model):
    return bef.loads(bef.dumps(model))


def group_calls(program):
    return [call for one in program.functions.values() for call in one.kernels if call.code == GROUP]


def kernels(model):
    return {row["node"]: row["kernel"] for row in model.placement().table()}


@pytest.mark.parametrize("strip", [False, True])
def test_groups_are_in_a_compiled_file_and_asked_for_when_it_is_linked(tmp_path, strip):
    compiler = NumPyCompiler()
    path = saved(tmp_path, graph(*NODES))
    runtime = runtime_with(compiler)
    compiled = compile_model(path, inputs={"x": (1, 3)}, outputs=["e"], config=runtime, strip=strip)
    loaded = through_a_file(compiled)
    calls = group_calls(loaded.program)
    assert {call.attrs["compiler"] for call in calls} == {"tiny0"}
    assert len(calls) == (2 if strip else 4)  # a and b are a group, e is another; the general function has both, too
    expected = heald.load(path, outputs=["e"])(X[None])
    model = LoadedCompiledModel(loaded, config=runtime_with(compiler))
    np.testing.assert_array_equal(model(X[None]), expected)
    assert kernels(model) == {"a": "tiny0.group0", "b": "tiny0.group0", "t": "cpu.Tanh", "e": "tiny0.group1"}
    if not strip:
        rows = np.stack([X, X])
        np.testing.assert_array_equal(model(rows), np.concatenate([expected, expected]))


def test_without_the_compiler_the_nodes_are_linked_in_place_and_explained(tmp_path):
    path = saved(tmp_path, graph(*NODES))
    compiled = compile_model(path, inputs={"x": (1, 3)}, outputs=["e"], config=runtime_with(NumPyCompiler()))
    model = LoadedCompiledModel(through_a_file(compiled))
    np.testing.assert_array_equal(model(X[None]), heald.load(path, outputs=["e"])(X[None]))
    assert kernels(model) == {"a": "cpu.Mul", "b": "cpu.Neg", "t": "cpu.Tanh", "e": "cpu.AddV2"}
    assert [str(outcome) for outcome in model.groups()] == [
        "compiler tiny0 leaves group0 (2 nodes) to the kernels: no such compiler is in use",
        "compiler tiny0 leaves group1 (1 node) to the kernels: no such compiler is in use"]
    assert {row["node"]: row["op"] for row in model.placement().table()}["b"] == "Neg"


def test_groups_survive_as_text(tmp_path):
    path = saved(tmp_path, graph(*NODES))
    runtime = runtime_with(NumPyCompiler())
    compiled = compile_model(path, inputs={"x": (1, 3)}, outputs=["e"], config=runtime, strip=True)
    program = heald.mlir.loads(heald.mlir.dumps(compiled.program))
    assert [(call.attrs["compiler"], call.attrs["group"], len(call.args), len(call.results))
            for call in group_calls(program)] == [("tiny0", "group0", 2, 2), ("tiny0", "group1", 2, 1)]
    (result,) = program.run("main", X[None])
    np.testing.assert_array_equal(result.get(), heald.load(path, outputs=["e"])(X[None]))


NAMES = {
    "other outputs": lambda entry: entry._replace(outputs=()),
    "more inputs": lambda entry: entry._replace(inputs=entry.inputs * 2),
    "other names": lambda entry: entry._replace(outputs=tuple(port._replace(name="other") for port in entry.outputs)),
    "one name twice": lambda entry: entry._replace(outputs=entry.outputs * 2),
}


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_one_signature_have_the_same_names(tmp_path, name, at):
    """A model for some shapes has a function for these, and one for all others."""
    compiled = compile_model(saved(tmp_path, graph(*NODES)), inputs={"x": (1, 3)}, outputs=["e"])
    assert len(compiled.entries) == 2
    entries = [*compiled.entries]
    entries[at] = NAMES[name](entries[at])
    with pytest.raises(InvalidArgument, match="of the compiled model has"):
        LoadedCompiledModel(compiled._replace(entries=tuple(entries)))


def test_functions_with_groups_are_compiled(tmp_path):
    double = function("double", "v", [node("n", "Neg", "v"), node("s", "Sub", "v", "n:y:0")], {"y": "s:z:0"})
    same = function("same", "v", [node("m", "Neg", "v"), node("i", "Neg", "m:y:0")], {"y": "i:y:0"})
    model = program([placeholder("x", (3,)), placeholder("p", (), dtypes.bool_),
                     branch("y", "p", "double", "same", "x")], double, same)
    path = saved(tmp_path, model)
    runtime = runtime_with(NumPyCompiler())
    compiled = through_a_file(compile_model(path, inputs={"p": ()}, outputs=["y"], config=runtime, strip=True))
    assert len(group_calls(compiled.program)) == 2
    for config in (None, runtime_with(NumPyCompiler())):
        loaded = LoadedCompiledModel(compiled, config=config)
        assert loaded(x=X, p=True).tolist() == (2 * X).tolist()
        assert loaded(x=X, p=False).tolist() == X.tolist()
