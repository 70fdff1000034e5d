"""The comparison of two graphs names exactly the edits between them."""

import numpy as np
from builders.graphs import const, graph, node, placeholder
from heald.graphs.graph.comparison import Change, compare
from heald.graphs.graph.graph import Function, Graph, TensorValue, Versions
from heald.graphs.graph.graphdef import dumps, loads
from heald.runtime.values import dtypes
from hypothesis import given
from hypothesis import strategies as st

CHAIN = graph(placeholder("x", (2,)), const("one", [1, 2]), node("sum", "AddV2", "x", "one"), node("y", "Neg", "sum"))
LISTED = b"\x08\x01\x12\x04\x12\x02\x08\x02*\x08" + np.float32([1, 2]).tobytes()  # float_val instead of tensor_content


def test_equal_graphs_have_no_difference():
    assert not compare(CHAIN, CHAIN)
    assert not compare(CHAIN, loads(dumps(CHAIN)))


@given(st.sets(st.sampled_from(["y", "z", "one", "sum"])))
def test_the_difference_names_exactly_the_edits(edits):
    edited = CHAIN
    if "one" in edits:
        edited = edited.set_constant("one", [1, 3])
    if "sum" in edits:
        edited = edited.set_input("sum", 0, "one")
    if "z" in edits:
        edited = edited.replace(nodes=[node("z", "Exp", "x")])
    if "y" in edits:
        edited = edited.remove("y")
    difference = compare(CHAIN, edited)
    assert (difference.added, difference.removed) == (("z",) * ("z" in edits), ("y",) * ("y" in edits))
    assert {name: [c.field for c in changes] for name, changes in difference.changed.items()} == {
        name: [field] for name, field in (("one", "attrs.value"), ("sum", "inputs")) if name in edits}
    assert bool(difference) == bool(edits)


def test_constants_are_compared_by_value_and_not_by_encoding():
    listed = TensorValue.read(LISTED, 0, len(LISTED))
    other = CHAIN.set_constant("one", listed)
    assert other["one"].raw != CHAIN["one"].raw
    assert not compare(CHAIN, other)
    assert compare(CHAIN.set_constant("one", [0.0, 1]), CHAIN.set_constant("one", [-0.0, 1]))
    assert not compare(CHAIN.set_constant("one", [np.nan, 1]), loads(dumps(CHAIN.set_constant("one", [np.nan, 1]))))


def test_types_of_attributes_devices_versions_functions_and_order_count():
    y = CHAIN["y"].replace(device="/cpu:0", attrs={"T": dtypes.int32})
    other = Graph([y, *(n for n in CHAIN if n.name != "y")], [Function("f")], Versions(21))
    difference = compare(CHAIN, other)
    assert difference.changed["y"] == (Change("device", "", "/cpu:0"), Change("attrs.T", dtypes.float32, dtypes.int32))
    assert difference.functions_added == ("f",)
    assert difference.versions
    assert difference.reordered


def test_a_changed_node_of_a_function_is_named():
    before, after = (Graph([], [Function("f", nodes=[node("n", op)])]) for op in ("Neg", "Abs"))
    assert compare(before, after).functions_changed == {"f": (Change("nodes.n.op", "Neg", "Abs"),)}
