"""Passes of the compiler on request: functions, control flow and shapes of a whole graph."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, case, function, loop
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.errors import AlreadyExists, InvalidArgument, NotFound, Unimplemented
from heald.graphs.graph.attr_value import AttrPlaceholder, ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes

X, P = placeholder("x", (2,)), placeholder("p", (), dtypes.bool_)
TWICE = function("twice", "x", [node("sum", "AddV2", "x", "x")], {"y": "sum:z:0"})
ONE = function("one", "x", [const("one", [1, 1])], {"y": "one:output:0"})


def after(before, *names, kept=("x", "y"), **more):
    *_, (_, after_passes) = run_requested_passes(before, names, kept, runtime(), **more)
    return after_passes


def ops(graph):
    return {node.name: node.op for node in graph}


def test_an_if_becomes_the_nodes_of_tensorflows_lowering():
    changed = after(Graph([X, P, branch("y", "p", "twice", "one", "x")], [TWICE, ONE]), "lower-control-flow")
    assert ops(changed) == {
        "x": "Placeholder", "p": "Placeholder", "y": "Identity", "y/switch_pred": "Switch", "y/pivot_f": "Identity",
        "y/pivot_t": "Identity", "y/x": "Switch", "y/then": "NoOp", "y/then/sum": "AddV2", "y/else": "NoOp",
        "y/else/one": "Const", "y/merge": "Merge", "y/branch_end": "Identity", "y/branch_end_1": "Identity",
        "y/branch_executed": "Merge"}
    assert changed["y/else/one"].controls == ("y/pivot_f",)  # dead when the other branch runs
    assert [*map(str, changed["y/merge"].inputs)] == ["y/else/one", "y/then/sum"]


@pytest.mark.parametrize(("index", "result"), [(0, [6, 8]), (1, [1, 1]), (5, [1, 1])])
def test_a_case_takes_a_branch_by_its_index(index, result):
    before = Graph([X, placeholder("k", (), dtypes.int32), case("y", "k", ["twice", "one"], "x")], [TWICE, ONE])
    with heald.Session(after(before, "lower-control-flow", "dead-nodes")) as session:
        np.testing.assert_array_equal(session.run("y", {"x": [3, 4], "k": np.int32(index)}), result)


def test_a_variable_that_a_loop_only_passes_on_is_a_constant_of_its_frame():
    step = function("step", "i:int32 v:resource", [
        const("one", 1, np.int32), node("next", "AddV2", "i", "one:output:0", T=dtypes.int32),
        const("add", [1, 1]), Node("a", "AssignAddVariableOp", ["v", "add:output:0"], attrs={"dtype": FLOAT})],
        {"j": "next:z:0", "w": "v"}, "j:int32 w:resource", effects=["a"])
    below = function("below", "i:int32 v:resource", [const("most", 3, np.int32),
                     node("t", "Less", "i", "most:output:0", T=dtypes.int32)], {"go": "t:z:0"}, "go:bool_")
    nodes = [const("zero", 0, np.int32), Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": ShapeAttr((2,))}),
             const("start", [0, 0]), Node("init", "AssignVariableOp", ["v", "start"], attrs={"dtype": FLOAT}),
             loop("w", "below", "step", "zero", "v", arguments="i:int32 v:resource"),
             Node("y", "ReadVariableOp", ["v"], controls=["w"], attrs={"dtype": FLOAT})]
    changed = after(Graph(nodes, [step, below]), "lower-control-flow", kept=("y", "init"))
    assert [changed_node.name for changed_node in changed if changed_node.attrs.get("is_constant")] == ["w/enter_1"]
    assert "Switch" in {changed_node.op for changed_node in changed}
    with heald.Session(changed) as session:
        session.run([], targets=["init"])
        np.testing.assert_array_equal(session.run("y"), [3, 3])  # one addition a turn, none in the last one


def test_conditions_that_no_switch_takes_are_refused():
    before = Graph([X, placeholder("p", (), FLOAT), branch("y", "p", "twice", "one", "x", of=FLOAT)], [TWICE, ONE])
    with pytest.raises(Unimplemented, match="condition of 'y' is not of type bool"):
        after(before, "lower-control-flow")


def test_a_recursive_call_stays_a_call():
    again = function("again", "x", [call("c", "again", "x")], {"y": "c:output:0"})
    for name in ("inline", "lower-control-flow"):
        changed = after(Graph([X, call("y", "again", "x")], [again]), name)
        assert ops(changed) == {"x": "Placeholder", "y": "Identity", "y/c": "StatefulPartitionedCall"}


def test_a_kept_call_of_several_results_is_an_identity_of_them():
    both = function("both", "x", [node("n", "Neg", "x")], {"a": "n:y:0", "b": "x"})
    changed = after(Graph([X, call("y", "both", "x", gives="a b")], [both]), "inline")
    assert (changed["y"].op, [*map(str, changed["y"].inputs)]) == ("IdentityN", ["y/n", "x"])


def test_legacy_calls_become_calls_in_functions_too_with_the_names_of_their_results():
    outer = function("outer", "x", [Node("c", "twice", ["x"]), node("n", "Neg", "c:y:0")], {"y": "n:y:0", "z": "c:y:0"})
    changed = after(Graph([X, Node("y", "outer", ["x"])], [TWICE, outer]), "lift-legacy-calls")
    body = changed.functions["outer"]
    assert (changed["y"].op, body.nodes["c"].op) == ("PartitionedCall", "PartitionedCall")
    assert (str(body.nodes["n"].inputs[0]), str(body.ret["z"])) == ("c:output:0", "c:output:0")


def test_a_call_whose_types_depend_on_the_function_around_it_stays():
    outer = function("outer", "x", [Node("c", "twice", ["x"], attrs={"T": AttrPlaceholder("T")})], {"y": "c:y:0"})
    before = Graph([X], [TWICE, outer])
    assert after(before, "lift-legacy-calls", kept=()) is before


def test_shapes_are_written_in_the_graph_and_its_functions():
    nodes = [X, node("n", "Neg", "x"), node("y", "Sum", "n", "axis", keep_dims=False), const("axis", 0, np.int32)]
    changed = after(Graph(nodes, [TWICE, ONE]), "shape-inference")
    assert [changed_node.attrs["_output_shapes"]
            for changed_node in changed] == [(ShapeAttr((2,)),)] * 2 + [(ShapeAttr(()),)] * 2
    assert changed.functions["one"].nodes["one"].attrs["_output_shapes"] == (ShapeAttr((2,)),)
    assert changed.functions["twice"].nodes["sum"].attrs["_output_shapes"] == (None,)


def test_shapes_pass_switches_and_merges_but_no_loop_carries_them_round():
    nodes = [X, P, node("s", "Switch", "x", "p"), node("a", "Neg", "s"), node("m", "Merge", "a", "s:1", N=2),
             node("e", "Enter", "x", frame_name=b"f", is_constant=False), node("l", "Merge", "e", "i", N=2),
             node("i", "NextIteration", "l")]
    changed = after(graph(*nodes), "shape-inference", kept=("m", "l"))
    shapes = {changed_node.name: changed_node.attrs["_output_shapes"] for changed_node in changed}
    two, scalar = ShapeAttr((2,)), ShapeAttr(())
    assert (shapes["s"], shapes["m"], shapes["e"], shapes["l"]) == ((two, two), (two, scalar), (None,), (None, scalar))


def test_a_graph_becomes_a_function_of_its_feeds_and_fetches_and_runs_as_before():
    before = graph(X, const("Scale/By", [2, 2]), node("m", "Mul", "x", "Scale/By"), node("y", "Neg", "m"))
    changed = after(before, "graph-to-function", entry="model", feeds=["x"], fetches=["y", "m"])
    assert ops(changed) == {"x": "Placeholder", "model": "PartitionedCall", "y": "Identity", "m": "Identity"}
    function_ = changed.functions["model"]
    assert ([arg.name for arg in function_.inputs], {**function_.ret}) == (
        ["x"], {"y_1": function_.ret["y_1"], "m_1": function_.ret["m_1"]})
    with heald.Session(changed) as session:
        np.testing.assert_array_equal(session.run("y", {"x": [1, 2]}), [-2, -4])


def test_a_kept_node_that_is_no_argument_or_result_is_refused():
    with pytest.raises(InvalidArgument, match="'z' is neither fed nor fetched"):
        after(graph(X, node("y", "Neg", "x"), node("z", "Neg", "x")), "graph-to-function", kept=("z",), fetches=["y"])


def test_a_function_that_several_nodes_call_does_not_become_the_graph():
    before = Graph([X, call("y", "twice", "x"), call("z", "twice", "x")], [TWICE])
    with pytest.raises(InvalidArgument, match="2 nodes call it"):
        after(before, "function-to-graph", entry="twice")
    with pytest.raises(NotFound, match="no function 'thrice'"):
        after(before, "function-to-graph", entry="thrice")
    shared = Graph([X, call("y", "twice", "x"), node("sum", "Neg", "x")], [TWICE])
    with pytest.raises(AlreadyExists, match="have a node 'sum'"):
        after(shared, "function-to-graph", kept=("x",), entry="twice")


def test_frames_that_are_malformed_are_refused_by_name():
    nodes = [X, node("e", "Enter", "x", frame_name=b"f", is_constant=False, parallel_iterations=10),
             node("y", "AddV2", "e", "x")]
    with pytest.raises(InvalidArgument, match="frame|loop"):
        after(graph(*nodes), "functionalize")
