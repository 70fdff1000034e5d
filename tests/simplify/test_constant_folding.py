"""The pass `constant-folding`: names and control edges as in TensorFlow's TF Graph IR, and equal results."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.random_foldable_graphs import random_foldable_graph
from harness.shared_runtimes import shared_runtime
from heald.graphs.graph.graph import Node
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

PLAIN = {"passes": {"disable": [*runtime().host.registries.passes]}}
X, Y = placeholder("x", (2, 3)), placeholder("y", (1, 3))
A, B = const("a", [1.0, 2.0, 4.0]), const("b", [3.0, 5.0, 7.0])
FEEDS = {"x": np.float32([[1, -2, 3], [0.5, 4, -6]]), "y": np.float32([[7, -8, 9]])}
INT, FLOAT = dtypes.int32, dtypes.float32


def folded(before, *fetches, feeds=("x", "y"), kept=()):
    names = [name for name in feeds if name in before]
    *_, (_, after), (_, again) = run_requested_passes(before, ["constant-folding"] * 2, kept, runtime(), feeds=names,
                                                      fetches=fetches)
    assert again is after
    return after


def fold_and_compare(nodes, *fetches):
    """The graph after the pass; its results equal the results of the graph before it."""
    before = graph(*nodes)
    after = folded(before, *fetches)
    results = []
    for tested_graph in (before, after):
        with heald.Session(tested_graph, shared_runtime(PLAIN)) as session:
            results.append(session.run(list(fetches), {k: v for k, v in FEEDS.items() if k in tested_graph}))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
    return after


def outline(graph_after, *names):
    """The op of each node, its inputs and the nodes that it waits for."""
    return [f"{n.op}({', '.join(map(str, n.inputs))}) [{', '.join(n.controls)}]" for n in map(graph_after.__getitem__,
                                                                                              names)]


def test_a_computed_constant_keeps_its_name_and_waits_for_all_nodes_that_it_read():
    nodes = [X, A, B, node("s", "AddV2", "a", "b"), node("t", "Mul", "x", "s")]
    assert outline(fold_and_compare(nodes, "t"), "s", "t") == ["Const() [a, b]", "Mul(x, s) []"]


def test_control_edges_of_the_node_come_last():
    nodes = [X, A, B, Node("s", "AddV2", ["a", "b"], controls=["x"], attrs={"T": FLOAT}), node("t", "Mul", "x", "s")]
    assert outline(fold_and_compare(nodes, "t"), "s") == ["Const() [a, b, x]"]


def test_each_read_output_of_a_node_becomes_a_constant():
    nodes = [const("axis", 0, np.int32), A, node("s", "Split", "axis", "a", num_split=3), X,
             node("t", "Mul", "x", "s:2"), node("u", "Mul", "x", "s:0")]
    after = fold_and_compare(nodes, "t", "u")
    assert outline(after, "s/eval_2/const_folded", "t") == ["Const() [axis, a]", "Mul(x, s/eval_2/const_folded) []"]
    assert "s" not in after
    assert "s/eval_1/const_folded" not in after


def test_both_arguments_of_gradients_broadcasts_wait_for_their_node():
    nodes = [X, Y, node("s", "Shape", "x", out_type=INT), node("r", "Shape", "y", out_type=INT),
             node("g", "BroadcastGradientArgs", "s", "r", T=INT), node("m", "Sum", "x", "g", Tidx=INT, keep_dims=False),
             node("n", "Sum", "x", "g:1", Tidx=INT, keep_dims=False)]
    after = fold_and_compare(nodes, "m", "n")
    assert outline(after, "s", "g", "g/bcastargs_1") == ["Const() [x]", "BroadcastGradientArgs(s, r) []", "Const() [g]"]


CASES = {
    "a reciprocal": ([X, A, node("d", "RealDiv", "x", "a")], {
        "d": "Mul(x, d/a/_recip) []", "d/a/_recip": "Const() [a]"}),
    "a neutral factor": ([X, const("one", np.ones((2, 3))), node("d", "Mul", "x", "one")], {
        "d": "Snapshot(x) [x, one]"}),
    "zero minus x": ([X, const("zero", 0), node("d", "Sub", "zero", "x")], {"d": "Neg(x) [zero]"}),
    "a sum": ([X, A, B, const("c", np.ones((2, 3))), const("e", np.ones((2, 3))),
               node("d", "AddN", "x", "c", "e", N=3)], {
        "d": "AddN(d/_partial_split_2, x) []", "d/_partial_split_2": "Const() [c, e]"}),
    "a concatenation": ([X, const("c", np.ones((2, 3))), const("axis", 0, np.int32),
                         node("d", "ConcatV2", "x", "c", "c", "axis", N=3, Tidx=INT)], {
        "d": "ConcatV2(x, d/_partial_split_1, axis) []", "d/_partial_split_1": "Const() [c, axis]"}),
    "two sums": ([X, A, B, node("s", "AddV2", "a", "x"), node("d", "AddV2", "s", "b")], {
        "d": "AddV2(x, s) []", "s": "Const() [b, a]"}),
    "a reshape to the same shape": ([X, const("to", [2, -1], np.int32),
                                     node("d", "Reshape", "x", "to", Tshape=INT)], {
        "d": "Identity(x) [to]"}),
    "an order of axes": ([Y, const("to", [0, 1], np.int32), node("d", "Transpose", "y", "to", Tperm=INT)], {
        "d": "Identity(y) [to]"}),
    "a sum over one element": ([Y, const("to", [0], np.int32),
                                node("d", "Sum", "y", "to", Tidx=INT, keep_dims=True)], {
        "d": "Identity(y) [to]"}),
    "a pack of one": ([X, node("d", "Pack", "x", N=1, axis=1)], {
        "d": "ExpandDims(x, d/_const_axis) []", "d/_const_axis": "Const() [x]"}),
    "zeros like x": ([X, node("d", "ZerosLike", "x")], {"d": "Const() [x]"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_row_makes_a_cheaper_node_of_the_same_name(case):
    nodes, expected = CASES[case]
    assert outline(fold_and_compare(nodes, "d"), *expected) == [*expected.values()]


def test_constants_enter_a_loop_under_another_name():
    frame = {"frame_name": "f", "is_constant": True, "parallel_iterations": 10}
    nodes = [A, node("e", "Enter", "a", **frame), X,
             node("p", "Enter", "x", **frame), node("d", "Mul", "p", "e"),
             node("q", "Exit", "d")]
    assert outline(folded(graph(*nodes), "q"), "d", "e/_enter") == ["Mul(p, e/_enter) []", "Const() [e]"]


def test_a_constant_behind_a_switch_is_dead_with_its_output():
    nodes = [X, placeholder("p", (), dtypes.bool_), node("s", "Switch", "x", "p"),
             node("t", "Shape", "s:1", out_type=INT)]
    after = folded(graph(*nodes), "t")
    assert outline(after, "t", "s/ControlDependencyCtrl_1") == [
        "Const() [s/ControlDependencyCtrl_1]", "Identity(s:1) []"]


def test_a_predicate_is_known_behind_its_own_switch():
    nodes = [placeholder("p", (), dtypes.bool_), node("s", "Switch", "p", "p", T=dtypes.bool_),
             Node("t", "LogicalNot", ["s:1"]), Node("u", "LogicalNot", ["s"])]
    after = folded(graph(*nodes), "t", "u", feeds=())
    assert [bool(after[name].attrs["value"].array()) for name in ("t", "u", "s/_const_true")] == [False, True, True]


def test_a_constant_that_may_be_fed_is_not_read():
    before = graph(X, A, B, node("s", "AddV2", "a", "b"), node("t", "Neg", "s"))
    assert folded(before, "t", kept=("a",)) is before
    assert folded(before, "t", feeds=("a",)) is before


@pytest.mark.parametrize("nodes", [
    [X, const("c", np.zeros((2, 3))), node("d", "Mul", "x", "c")],
    [X, const("c", [0.0, 1.0, 2.0]), node("d", "RealDiv", "x", "c")],
    [placeholder("v", None), const("c", 1.0), node("d", "Mul", "v", "c")],
    [X, const("c", [1e-42, 1, 1]), node("d", "RealDiv", "x", "c")],
    [X, const("c", 3e38), const("e", 3e38), node("s", "AddV2", "x", "c"), node("d", "AddV2", "s", "e")],
], ids=["zero times x", "a division by zero", "an unknown shape", "an infinite reciprocal",
        "an infinite sum"])
def test_nodes_stay_whose_results_would_differ(nodes):
    before = graph(*nodes)
    assert folded(before, "d") is before


@settings(deadline=None)
@given(st.integers(0, 1 << 30))
def test_folded_graphs_compute_the_same(seed):
    nodes, fetches = random_foldable_graph(seed)
    fold_and_compare(nodes, *fetches)
