"""Patterns: a row of a table is a fusion, and it applies only where nothing else needs the nodes that go."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from harness.run_op import REGISTRIES
from heald.api import Known, PassContext, Pattern, Rule, rewrite
from heald.errors import PluginError
from heald.graphs.compiler.pass_manager import NodeFacts

X = placeholder("x", (2,))
SQUARE = Rule("square of a difference", Pattern("Square", Pattern("Sub", "a", "b")),
              Pattern("SquaredDifference", "a", "b"))


def rewritten(nodes, *rules, kept=("y",)):
    before = graph(*nodes)
    facts = NodeFacts(before, {}, {}, REGISTRIES.ops, lambda entry, inputs, outputs: outputs)
    return rewrite(before, PassContext(frozenset(kept), facts.resolve, facts.infer, ops=REGISTRIES.ops), rules)


def nodes_of(graph):
    return {node.name: (node.op, *map(str, node.inputs)) for node in graph if node.op not in ("Placeholder", "Const")}


def test_a_tree_of_ops_becomes_one_node_under_the_name_and_place_of_its_root():
    nodes = [X, placeholder("z", (2,)), node("d", "Sub", "x", "z", device="/CPU:0"),
             node("y", "Square", "d", device="/CPU:0").replace(controls=["x"])]
    after = rewritten(nodes, SQUARE)
    assert nodes_of(after) == {"y": ("SquaredDifference", "x", "z")}
    assert (after["y"].device, after["y"].controls, after["y"].attrs["T"]) == ("/CPU:0", ("x",), FLOAT)


@pytest.mark.parametrize("more", [
    [node("other", "Neg", "d")], [node("other", "Neg", "x").replace(controls=["d"])],
])
def test_a_node_that_something_else_needs_stays(more):
    nodes = [X, node("d", "Sub", "x", "x"), node("y", "Square", "d"), *more]
    assert rewritten(nodes, SQUARE).nodes == graph(*nodes).nodes


@pytest.mark.parametrize(("inner", "kept_names"), [
    (node("d", "Sub", "x", "x"), ("y", "d")), (node("d", "Sub", "x", "x", device="/CPU:1"), ("y",)),
    (node("d", "Sub", "x", "x").replace(controls=["x"]), ("y",)),
])
def test_a_kept_or_ordered_node_and_one_elsewhere_stay(inner, kept_names):
    assert len(rewritten([X, inner, node("y", "Square", "d")], SQUARE, kept=kept_names)) == 3


def test_the_same_hole_is_the_same_tensor():
    rule = Rule("twice", Pattern("AddV2", "a", "a"), Pattern("Mul", "a", Known("two", lambda _: np.float32(2))))
    after = rewritten([X, placeholder("z", (2,)), node("y", "AddV2", "x", "x"), node("w", "AddV2", "x", "z")], rule)
    assert nodes_of(after) == {"y": ("Mul", "x", "y/two"), "w": ("AddV2", "x", "z")}


def test_two_inputs_match_in_either_order_where_the_op_commutes():
    rule = Rule("times one", Pattern("Mul", Known("one", 1), "x", commutes=True), "x")
    nodes = [X, const("one", 1), node("m", "Mul", "x", "one"), node("n", "Mul", "one", "m"), node("y", "Neg", "n")]
    assert nodes_of(rewritten(nodes, rule)) == {"y": ("Neg", "x")}
    assert nodes_of(rewritten([X, const("one", 1), node("y", "Mul", "x", "one")], rule)) == {"y": ("Mul", "x", "one")}


def test_attributes_and_constants_decide_and_give_attributes():
    leaky = Rule("leaky", Pattern("Maximum", Pattern("Mul", "x", Known("slope", lambda s: s < 1)), "x"),
                 Pattern("LeakyRelu", "x", attrs={"alpha": lambda match: float(match.value("slope"))}))
    nodes = [X, const("s", 0.25), node("m", "Mul", "x", "s"), node("y", "Maximum", "m", "x")]
    after = rewritten(nodes, leaky)
    assert (after["y"].op, after["y"].attrs["alpha"]) == ("LeakyRelu", 0.25)
    assert rewritten([X, const("s", 2), *nodes[2:]], leaky)["y"].op == "Maximum"


def test_a_condition_reads_shapes_and_attributes_of_the_match():
    rule = Rule("product", Pattern("MatMul", "a", "b", attrs={"transpose_a": False}), Pattern("Mul", "a", "b"),
                where=lambda match: match.shape("a") == (1, 1) and not match.attrs()["transpose_b"])
    small, large = placeholder("a", (1, 1)), placeholder("a", (2, 2))
    assert rewritten([small, node("y", "MatMul", "a", "a")], rule)["y"].op == "Mul"
    assert rewritten([large, node("y", "MatMul", "a", "a")], rule)["y"].op == "MatMul"
    assert rewritten([small, node("y", "MatMul", "a", "a", transpose_a=True)], rule)["y"].op == "MatMul"


def test_a_replacement_may_be_a_tree_whose_new_nodes_have_new_names():
    rule = Rule("apart", Pattern("SquaredDifference", "a", "b"),
                Pattern("Square", Pattern("Sub", "a", "b", name="less")))
    after = rewritten([X, node("y/less", "Neg", "x"), node("y", "SquaredDifference", "x", "y/less")], rule)
    assert nodes_of(after) == {"y/less": ("Neg", "x"), "y/less_1": ("Sub", "x", "y/less"), "y": ("Square", "y/less_1")}


def test_long_chains_come_to_an_end():
    rule = Rule("twice negative", Pattern("Neg", Pattern("Neg", "x")), "x")
    nodes = [X, *(node(f"n{i}", "Neg", f"n{i - 1}" if i else "x") for i in range(301)), node("y", "Exp", "n300")]
    (negative,) = (graph_node for graph_node in rewritten(nodes, rule) if graph_node.op == "Neg")
    assert nodes_of(rewritten(nodes, rule)) == {negative.name: ("Neg", "x"), "y": ("Exp", negative.name)}


def test_rules_that_undo_each_other_are_an_error():
    rules = [Rule("down", Pattern("Neg", "x"), Pattern("Abs", "x")),
             Rule("up", Pattern("Abs", "x"), Pattern("Neg", "x"))]
    with pytest.raises(PluginError, match="the rules 'down' and 'up' do not come to an end"):
        rewritten([X, node("y", "Neg", "x")], *rules)


@pytest.mark.parametrize("others", [[], [Rule("simple", Pattern("Square", "x"), Pattern("Abs", "x"))]])
def test_a_rule_whose_replacement_has_its_own_pattern_is_named_soon(others):
    doubling = Rule("double", Pattern("Neg", "x"), Pattern("Neg", Pattern("Neg", "x")))
    with pytest.raises(PluginError, match="the rule 'double' does not come to an end: [0-9,]{5,6} replacements"):
        rewritten([X, node("s", "Square", "x"), node("y", "Neg", "s")], doubling, *others)


def test_a_replacement_that_does_not_fit_its_op_is_an_error():
    with pytest.raises(PluginError, match="the replacement of rule 'cast' does not fit op Cast"):
        rewritten([X, node("y", "Neg", "x")], Rule("cast", Pattern("Neg", "x"), Pattern("Cast", "x")))
