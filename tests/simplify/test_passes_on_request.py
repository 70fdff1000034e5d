"""Passes on request: each keeps its stated promises, is idempotent, and runs in no session by itself."""

import heald
import numpy as np
import pytest
from builders.control_flow import branch, function
from builders.graphs import const, graph, node, placeholder
from heald.graphs.graph import Func, compare
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.function import ArgDef
from heald.graphs.graph.graph import Function, Graph
from heald.graphs.session.pre_placement import enabled_passes
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.contract.graph_pass import GRAPH, ON_REQUEST, PRE_PLACEMENT
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from hypothesis import given
from hypothesis import strategies as st

NAMES = ["topological-sort", "dead-nodes", "dedupe-constants", "strip-defaults", "add-defaults",
         "consolidate-attributes", "name-compression", "drop-output-shapes", "drop-unregistered-attributes"]


def after(before, *names, kept_names=(), **more):
    *_, (_, rewritten) = run_requested_passes(before, names, kept_names, runtime(), **more)
    return rewritten


@st.composite
def graphs(draw):
    """Sums over a placeholder and constants of few values, in any order, and one output."""
    nodes, names = [placeholder("x", (2,))], ["x"]
    for i in range(draw(st.integers(1, 5))):
        nodes.append(const(f"c{i}", [draw(st.integers(0, 1)), 2.0]))
        names.append(f"c{i}")
    for i in range(draw(st.integers(1, 6))):
        ends = [draw(st.sampled_from(names)) for _ in range(2)]
        attrs = {"transpose_a": draw(st.booleans())} if draw(st.booleans()) else {}
        nodes.append(node(f"s{i}", "AddV2", *ends))
        names.append(f"s{i}")
        if draw(st.booleans()):
            nodes.append(node(f"m{i}", "MatMul", "x", "x", **attrs))
    return names[-1], Graph(draw(st.permutations(nodes)))


@pytest.mark.parametrize("name", NAMES)
@given(graphs())
def test_results_and_kept_names_stay_and_a_second_run_changes_nothing(name, output_and_graph):
    output, before = output_and_graph
    rewritten = after(before, name, kept_names=("x", output))
    assert {"x", output} <= rewritten.nodes.keys()
    assert after(rewritten, name, kept_names=("x", output)) is rewritten
    x = np.float32([3, 4])
    results = []
    for tested_graph in (before, rewritten):
        with heald.Session(tested_graph) as session:
            results.append(session.run(output, {"x": x}))
    np.testing.assert_array_equal(*results)


@given(graphs())
def test_sorting_changes_nothing_but_the_order(output_and_graph):
    rewritten = after(output_and_graph[1], "topological-sort")
    assert not compare(output_and_graph[1], rewritten)._replace(reordered=False)
    position = {name: i for i, name in enumerate(rewritten.nodes)}
    assert all(position[i.node] < position[n.name] for n in rewritten for i in n.inputs)


@given(graphs())
def test_stripped_defaults_come_back(output_and_graph):
    full = after(output_and_graph[1], "add-defaults")
    assert not compare(after(full, "strip-defaults", "add-defaults"), full)


def test_no_session_runs_a_pass_on_request():
    passes = runtime().host.registries.passes
    assert {*NAMES} <= {name for name, entry in passes.items() if entry.stage == ON_REQUEST}
    assert not {entry.name for stage in (PRE_PLACEMENT, GRAPH) for entry in enabled_passes(runtime(), stage)} & {*NAMES}


def test_defaults_of_each_type_are_added_and_stripped():
    conv = node("y", "Conv2D", "x", "x", strides=(1, 1, 1, 1), padding=b"SAME", T=dtypes.float32)
    full = after(graph(placeholder("x", (1, 1, 1, 1)), conv), "add-defaults")["y"].attrs
    assert (full["data_format"], full["dilations"], full["use_cudnn_on_gpu"]) == (b"NHWC", (1, 1, 1, 1), True)
    assert full["explicit_paddings"] == ()
    bare = after(graph(placeholder("x", (1, 1, 1, 1)), conv.replace(attrs=full)), "strip-defaults")["y"].attrs
    assert set(bare) == set(conv.attrs)


def test_attributes_with_other_values_and_nodes_of_unknown_ops_stay():
    mul = node("m", "MatMul", "x", "x", transpose_a=True, transpose_b=False)
    before = graph(placeholder("x", (2, 2)), mul, node("u", "Unknown", "x", flag=False))
    rewritten = after(before, "strip-defaults")
    assert rewritten["m"].attrs["transpose_a"] is True
    assert "transpose_b" not in rewritten["m"].attrs
    assert rewritten["u"] is before["u"]


def test_defaults_in_functions_are_stripped_too():
    body = node("m", "MatMul", "a", "a", transpose_a=False)
    before = Graph([], [Function("f", [ArgDef("a", dtypes.float32)], nodes=[body])])
    assert "transpose_a" not in after(before, "strip-defaults").functions["f"].nodes["m"].attrs


def test_equal_constants_become_the_first_one_but_for_kept_ones_and_partners():
    before = graph(const("a", [1, 2]), const("b", [1, 2]), const("c", [1, 2]), const("d", [1, 2]), const("e", [1, 3]),
                   const("f", [1, 2], np.int32), node("y", "AddV2", "b", "e", _class=(b"loc:@d",)),
                   node("z", "Neg", "y").replace(controls=["a", "b"]))
    rewritten = after(before, "dedupe-constants", kept_names=("c",))
    assert [*rewritten.nodes] == ["a", "c", "d", "e", "f", "y", "z"]
    assert [str(i) for i in rewritten["y"].inputs] == ["a", "e"]
    assert rewritten["z"].controls == ("a",)


def test_nodes_and_functions_that_nothing_needs_are_removed():
    call = node("y", "PartitionedCall", "x", f=Func("outer"), Tin=(dtypes.float32,), Tout=(dtypes.float32,))
    functions = [Function("outer", nodes=[node("n", "inner")]), Function("inner"), Function("idle")]
    rewritten = after(Graph([placeholder("x", (2,)), call, node("z", "Neg", "x")], functions), "dead-nodes",
                      kept_names=("y",))
    assert ([*rewritten.nodes], [*rewritten.functions]) == (["x", "y"], ["outer", "inner"])


def test_a_fed_node_hides_the_nodes_in_front_of_it():
    before = graph(placeholder("x", (2,)), node("a", "Neg", "x"), node("y", "Neg", "a"), node("idle", "Neg", "x"))
    rewritten = after(before, "dead-nodes", feeds=["a"], fetches=["y"])
    assert [(n.name, n.op) for n in rewritten] == [("a", "Placeholder"), ("y", "Neg")]


def test_an_entry_function_keeps_the_functions_that_it_calls():
    functions = [Function("outer", nodes=[node("n", "inner")]), Function("inner"), Function("idle")]
    assert [*after(Graph([], functions), "dead-nodes", entry="outer").functions] == ["outer", "inner"]


def test_the_order_is_that_of_tensorflows_pass():
    """Recorded: a node is followed by the nodes that it makes ready, the nodes behind control edges first."""
    before = graph(node("n3", "Relu", "n1"), placeholder("p"), placeholder("x"), node("n0", "Neg", "x"),
                   node("n1", "Neg", "x"), const("zero", 0), node("n2", "AddV2", "p", "x").replace(controls=["n1"]),
                   placeholder("k"))
    assert [*after(before, "topological-sort").nodes] == ["p", "x", "n0", "n1", "n2", "n3", "zero", "k"]


def test_names_in_functions_are_those_of_tensorflows_pass():
    """Recorded: arguments, results, control results and nodes are numbered in this order."""
    callee = function("callee", "x", [node("n", "Neg", "x")], {"y": "n:y:0"})
    body = function("body", "first second", [
        node("sum", "AddV2", "first", "second"), node("c", "callee", "sum:z:0"),
        node("last", "NoOp").replace(controls=["first"])], {"y": "c:y:0", "same": "first"}, effects=["last"])
    rewritten = after(Graph([placeholder("x")], [body, callee]), "name-compression").functions["body"]
    assert [[arg.name for arg in args] for args in (rewritten.inputs, rewritten.outputs)] == [["A", "B"], ["C", "D"]]
    assert {**rewritten.control_ret} == {"E": "H"}
    assert {n.name: [*map(str, n.inputs), *n.controls] for n in rewritten.nodes.values()} == {
        "F": ["A", "B"], "G": ["F:z:0"], "H": ["A"]}
    assert {key: str(tensor) for key, tensor in rewritten.ret.items()} == {"C": "G:B:0", "D": "A"}


@pytest.mark.parametrize(("index", "name"), [
    (0, "A"), (25, "Z"), (26, "a"), (61, "9"), (62, "."), (63, "AA"), (64, "BA"), (63 + 63, "AB"), (63 * 65 - 1, "._"),
    (63 * 65, "A/"), (63 * 66, "AAA"),
])
def test_numbers_are_written_with_63_and_66_characters(index, name):
    nodes = [node(f"n{i}", "NoOp") for i in range(index + 1)]
    rewritten = after(Graph([], [Function("f", nodes=nodes)]), "name-compression")
    assert [*rewritten.functions["f"].nodes][index] == name


@pytest.mark.parametrize(("any_op", "op_shapes", "expected"), [
    ([(2, None)], [(None, 3)], [(2, 3)]), ([None], [(2,)], [(2,)]), ([(2,)], [(3,)], None),
    ([(2,)], [(2,), (2,)], None), ([(2,)], [], None),
])
def test_shapes_that_a_node_states_twice_become_what_both_state(any_op, op_shapes, expected):
    attributes = [tuple(None if shape is None else ShapeAttr(shape) for shape in shapes)
                  for shapes in (any_op, op_shapes)]
    y = branch("y", "p", "f", "f", "x").replace(attrs={"_output_shapes": attributes[0], "output_shapes": attributes[1]})
    f = function("f", "x", [], {"y": "x"})
    before = Graph([placeholder("x"), placeholder("p", (), dtypes.bool_), y], [f])
    rewritten = after(before, "consolidate-attributes")["y"].attrs
    shapes = attributes if expected is None else [tuple(map(ShapeAttr, expected))] * 2
    assert [rewritten["_output_shapes"], rewritten["output_shapes"]] == shapes


def test_shapes_of_outputs_are_dropped_in_functions_too_but_for_the_attribute_that_an_op_declares():
    shapes = {"_output_shapes": (ShapeAttr((2,)),), "output_shapes": (ShapeAttr((2,)),)}
    y = branch("y", "p", "f", "f", "x").replace(attrs=shapes)
    f = function("f", "x", [node("n", "Neg", "x", _output_shapes=(ShapeAttr((2,)),))], {"y": "n:y:0"})
    before = Graph([placeholder("x"), placeholder("p", (), dtypes.bool_), y], [f])
    rewritten = after(before, "drop-output-shapes")
    assert "_output_shapes" not in rewritten.functions["f"].nodes["n"].attrs
    assert rewritten["y"].attrs["output_shapes"] == shapes["output_shapes"]
    assert "_output_shapes" not in rewritten["y"].attrs
    assert rewritten["x"] is before["x"]


def test_attributes_that_an_op_does_not_declare_are_dropped_but_for_those_of_every_node():
    newer = {"grad_a": False, "_class": (b"loc:@x",)}
    f = function("f", "x", [node("n", "Neg", "x", newer=1)], {"y": "n:y:0"})
    before = Graph([placeholder("x"), node("m", "MatMul", "x", "x", transpose_a=True, unheard_of=1, **newer),
                    node("u", "Unknown", "x", flag=False), node("c", "f", "x", flag=True)], [f])
    rewritten = after(before, "drop-unregistered-attributes")
    declared = {name for name in newer if name in runtime().host.registries.ops.get("MatMul").attrs}
    assert {*rewritten["m"].attrs} == {*before["m"].attrs} - {"unheard_of", *newer} | {"_class", *declared}
    assert "newer" not in rewritten.functions["f"].nodes["n"].attrs
    assert [rewritten[name] is before[name] for name in "ux"] == [True, True]
    assert rewritten["c"] is before["c"]
