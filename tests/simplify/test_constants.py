"""Constants: nodes that need constants alone become constants."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import FLOAT, const, node, placeholder
from builders.rewritten_graphs import (
    INT,
    PASSES,
    op_counts,
    optimized_graph,
    rewrite_and_compare,
    session_with_passes,
    vector,
)
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node, TensorValue
from heald.runtime.values import dtypes, wire
from heald.runtime.values.tensor_proto import put_shape


def test_a_node_of_constants_alone_becomes_a_constant_under_its_name():
    nodes = [placeholder("x", (2,)), const("c", [3, 4]), node("s", "Square", "c"), node("i", "Identity", "s"),
             node("r", "Rsqrt", "i"), node("y", "Mul", "x", "r")]
    rewritten = rewrite_and_compare(nodes, "constants")
    assert [(graph_node.name, graph_node.op) for graph_node in rewritten] == [
        ("x", "Placeholder"), ("r", "Const"), ("y", "Mul")]
    assert rewritten["r"].attrs["value"].array().tolist() == pytest.approx([1 / 3, 1 / 4])


def test_an_identity_of_a_constant_copies_nothing():
    nodes = [placeholder("x", (2,)), const("c", [3, 4]), node("i", "Identity", "c"), node("y", "Mul", "x", "i")]
    rewritten = rewrite_and_compare(nodes, "constants")
    assert (op_counts(rewritten), rewritten["y"].inputs[1].node) == ({"Mul": 1}, "c")


def test_every_output_of_a_node_that_is_used_becomes_a_constant():
    nodes = [placeholder("x", (2,)), const("c", np.arange(6)), const("axis", 0, np.int32),
             Node("s", "Split", ["axis", "c"], attrs={"T": FLOAT, "num_split": 3}),
             node("y", "AddV2", "s:1", "s:2"), node("z", "Mul", "x", "y"), node("w", "Mul", "z", "s")]
    assert op_counts(rewrite_and_compare(nodes, "constants", fetches=("w",))) == {"Mul": 2}


@pytest.mark.parametrize(("length", "left"), [(128, {"Mul": 1}), (129, {"Mul": 1, "Fill": 1})])
def test_a_folded_result_is_small_or_no_larger_than_its_inputs(length, left):
    nodes = [placeholder("x", (1,)), vector("dims", [128, length]), const("one", 1),
             node("f", "Fill", "dims", "one", index_type=INT), node("y", "Mul", "x", "f")]
    assert op_counts(rewrite_and_compare(nodes, "constants")) == left
    nodes = [placeholder("x", (1,)), const("c", np.ones((128, length))), node("n", "Neg", "c"),
             node("y", "Mul", "x", "n")]
    assert op_counts(rewrite_and_compare(nodes, "constants")) == {"Mul": 1}


def test_a_constant_of_one_value_all_over_is_small_itself():
    raw = wire.put_integer(1, 1) + wire.put_bytes(2, put_shape((1 << 8, 1 << 8))) + wire.put_float(5, 7.0)
    filled = Node("c", "Const", attrs={"dtype": FLOAT, "value": TensorValue.read(raw, 0, len(raw))})
    nodes = [placeholder("x", (1,)), filled, node("n", "Neg", "c"), node("y", "Mul", "x", "n")]
    assert op_counts(rewrite_and_compare(nodes, "constants")) == {"Mul": 1, "Neg": 1}


def test_a_failing_node_of_constants_stays_and_fails_in_the_run():
    nodes = [placeholder("x", (1,), INT), vector("zero", [0]), vector("c", [6]),
             node("d", "FloorDiv", "c", "zero", T=INT), node("n", "Neg", "c", T=INT),
             node("z", "AddV2", "x", "n", T=INT), node("y", "AddV2", "z", "d", T=INT)]
    assert op_counts(optimized_graph(nodes, "constants")) == {"AddV2": 2, "FloorDiv": 1}
    with pytest.raises(InvalidArgument, match="division by zero") as caught:
        session_with_passes(nodes, "constants").run("y", {"x": [1]})
    assert caught.value.node == "d"
    assert session_with_passes(nodes, "constants").run("z", {"x": [1]}).tolist() == [-5]


def test_random_numbers_are_drawn_with_every_run():
    nodes = [placeholder("x", (1,)), vector("dims", [4]),
             Node("r", "RandomUniform", ["dims"], attrs={"T": INT, "dtype": FLOAT}), node("y", "Mul", "x", "r")]
    assert op_counts(optimized_graph(nodes, *PASSES)) == {"Mul": 1, "RandomUniform": 1}


def test_a_constant_that_is_fed_is_none():
    nodes = [const("c", [1, 2]), node("n", "Neg", "c"), node("y", "Neg", "n")]
    assert session_with_passes(nodes, *PASSES).run("y", {"c": [5, 6]}).tolist() == [5, 6]
    assert session_with_passes(nodes, *PASSES).run("y", {"n": [5, 6]}).tolist() == [-5, -6]
    assert session_with_passes(nodes, *PASSES).run(["y", "c", "n"])[0].tolist() == [1, 2]


def test_control_edges_from_constants_are_removed():
    nodes = [placeholder("x", (1,)), const("c", 1), node("i", "Identity", "c"), node("s", "Neg", "c"),
             Node("n", "NoOp", controls=["i", "s"]), node("m", "Neg", "x").replace(controls=["s"]),
             node("y", "Identity", "m").replace(controls=["n"])]
    rewritten = rewrite_and_compare(nodes, "constants")
    assert op_counts(rewritten) == {"Identity": 1, "Neg": 1}
    assert rewritten["y"].controls == rewritten["m"].controls == ()


def test_a_node_that_waits_for_foldable_nodes_alone_is_folded():
    nodes = [placeholder("x", (2,)), const("c", [3, 4]), node("i", "Neg", "c"), node("j", "Neg", "i"),
             node("m", "Neg", "c").replace(controls=["i", "j"]), node("y", "Mul", "x", "m")]
    assert op_counts(rewrite_and_compare(nodes, "constants")) == {"Mul": 1}


def test_control_edges_from_a_node_that_may_fail_stay():
    nodes = [placeholder("x", (), dtypes.bool_), const("c", 1), const("message", b"no", np.object_),
             Node("a", "Assert", ["x", "message"], attrs={"T": [dtypes.string]}),
             node("i", "Identity", "c").replace(controls=["a"]), node("n", "Neg", "i"), node("y", "Neg", "n")]
    assert op_counts(optimized_graph(nodes, *PASSES)) == {"Assert": 1, "Identity": 1, "Neg": 2}
    with pytest.raises(InvalidArgument, match="no"):
        session_with_passes(nodes, *PASSES).run("y", {"x": False})
