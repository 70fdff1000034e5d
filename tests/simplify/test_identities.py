"""Identities: nodes that return their input go."""

from __future__ import annotations

import pytest
from builders.graphs import FLOAT, const, node, placeholder
from builders.rewritten_graphs import INT, op_counts, rewrite_and_compare, session_with_passes, vector
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

SAME = {
    "Identity": ([node("a", "Identity", "x")], {}),
    "StopGradient": ([node("a", "StopGradient", "x")], {}),
    "several": ([node("b", "Identity", "x"), node("c", "Snapshot", "b"), node("a", "Identity", "c")], {}),
    "Cast": ([Node("a", "Cast", ["x"], attrs={"SrcT": FLOAT, "DstT": FLOAT})], {}),
    "Cast that casts": ([Node("b", "Cast", ["x"], attrs={"SrcT": FLOAT, "DstT": dtypes.float64}),
                         Node("a", "Cast", ["b"], attrs={"SrcT": dtypes.float64, "DstT": FLOAT})], {"Cast": 2}),
    "CheckNumerics": ([node("a", "CheckNumerics", "x", message="?")], {"CheckNumerics": 1}),
    "IdentityN": ([Node("b", "IdentityN", ["x", "x"], attrs={"T": [FLOAT, FLOAT]}), node("a", "Mul", "b", "b:1")],
                  {"Mul": 1}),
    "times one": ([const("one", 1), node("b", "Mul", "one", "x"), node("a", "RealDiv", "b", "one")], {}),
    "one over it": ([const("one", 1), node("a", "RealDiv", "one", "x")], {"RealDiv": 1}),
    "times one, broadcast": ([const("one", [[[[1]]]]), node("a", "Mul", "one", "x")], {"Mul": 1}),
    "Reshape": ([vector("to", [-1, 4]), node("a", "Reshape", "x", "to", Tshape=INT)], {}),
    "Reshape to another shape": ([vector("to", [-1, 2]), node("a", "Reshape", "x", "to", Tshape=INT)],
                                 {"Reshape": 1}),
    "Reshape of Reshape": ([vector("to", [-1, 2, 2]), node("b", "Reshape", "x", "to", Tshape=INT),
                            vector("then", [2, -1]), node("a", "Reshape", "b", "then", Tshape=INT)], {"Reshape": 1}),
    "Reshape of Reshape that may fail": ([vector("to", [-1, 8]), node("b", "Reshape", "x", "to", Tshape=INT),
                                          vector("then", [4, -1]), node("a", "Reshape", "b", "then", Tshape=INT)],
                                         {"Reshape": 2}),
    "Transpose": ([vector("to", [0, 1]), node("a", "Transpose", "x", "to", Tperm=INT)], {}),
    "Transpose twice": ([vector("to", [1, 0]), node("b", "Transpose", "x", "to", Tperm=INT),
                         node("a", "Transpose", "b", "to", Tperm=INT)], {}),
    "Transpose once": ([vector("to", [1, 0]), node("a", "Transpose", "x", "to", Tperm=INT)], {"Transpose": 1}),
}


@pytest.mark.parametrize("case", SAME)
def test_nodes_that_return_their_input_are_removed(case):
    nodes, left = SAME[case]
    rewritten = rewrite_and_compare([placeholder("x", (None, 4)), *nodes, node("y", "Neg", "a")], "identities")
    assert op_counts(rewritten) == {"Neg": 1} | left


def test_an_identity_with_other_readers_stays():
    between = node("a", "Identity", "x")
    nodes = [placeholder("x", (2,)), between, node("y", "Neg", "a")]
    assert op_counts(rewrite_and_compare(nodes, "identities")) == {"Neg": 1}
    assert op_counts(rewrite_and_compare(nodes, "identities", fetches=("y", "a"))) == {"Neg": 1, "Identity": 1}
    assert session_with_passes(nodes, "identities").run("y", {"a": [1, 2]}).tolist() == [-1, -2]
    after = [nodes[0], between, node("b", "Abs", "x").replace(controls=["a"]), node("y", "AddV2", "a", "b")]
    assert op_counts(rewrite_and_compare(after, "identities"))["Identity"] == 1
    on_other_device = [nodes[0], between.replace(device="EXAMPLE:0"), nodes[2]]
    assert op_counts(rewrite_and_compare(on_other_device, "identities"))["Identity"] == 1
    with_others = [nodes[0], between.replace(attrs={"_class": [b"loc:@y"]}), nodes[2]]
    assert op_counts(rewrite_and_compare(with_others, "identities"))["Identity"] == 1
