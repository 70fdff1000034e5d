"""A graph as the function `_mlir_lifted_graph`, and back."""

from __future__ import annotations

import heald
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.random_foldable_graphs import random_foldable_graph
from builders.random_models import models
from heald.api import errors
from heald.graphs.graph import compare
from heald.graphs.graph.graph import Graph, Node
from hypothesis import given, settings
from hypothesis import strategies as st

X = placeholder("x", (2,))
PIECES = graph(const("d", 0, "int32"), X, node("s", "Split", "d", "x", num_split=2), node("t", "Neg", "s:1"),
               Node("u/v", "Neg", ["s"], controls=["x"], attrs={"T": X.attrs["dtype"]}),
               Node("n", "NoOp", controls=["t"]))
LIFTED = "_mlir_lifted_graph"


def same(one: Graph, other: Graph) -> bool:
    return not compare(one, other) and list(one.nodes) == list(other.nodes)


def test_each_output_of_a_fed_node_is_an_argument_and_each_of_a_fetched_node_a_result():
    lifted = heald.tfg.graph_to_function(PIECES, ["s"], ["t", "u/v"], ["n"])
    function = lifted.functions[LIFTED]
    assert not lifted.nodes
    assert [arg.name for arg in function.inputs] == ["s_0", "s_1"]
    assert [(arg.name, str(function.ret[arg.name])) for arg in function.outputs] == [
        ("t_0", "t:y:0"), ("u/v_0", "u/v:y:0")]
    assert dict(function.control_ret) == {"n": "n"}
    assert [str(function.nodes[name].inputs[0]) for name in ("t", "u/v")] == ["s_1", "s_0"]
    assert function.nodes["u/v"].controls == ("x",)
    assert [str(tensor) for tensor in function.nodes["s"].inputs] == ["d:output:0", "x:output:0"]


@pytest.mark.parametrize(("feeds", "fetches", "last"), [
    (["s"], ["t", "u/v"], ["n"]), (["x"], ["s"], []), ([], [], []), (["x", "x", "d"], ["t", "t"], ["n", "t"])])
def test_a_lifted_graph_becomes_the_same_graph_again_also_from_its_text(feeds, fetches, last):
    lifted = heald.tfg.graph_to_function(PIECES, feeds, fetches, last)
    assert same(heald.tfg.function_to_graph(lifted), PIECES)
    assert same(heald.tfg.function_to_graph(heald.tfg.loads(heald.tfg.dumps(lifted))), PIECES)


@settings(deadline=None)
@given(st.integers(0, 1 << 30))
def test_random_graphs_come_back(seed):
    nodes, fetches = random_foldable_graph(seed)
    before = graph(*nodes)
    assert same(heald.tfg.function_to_graph(heald.tfg.graph_to_function(before, ["x", "y"], fetches)), before)


@settings(deadline=None, max_examples=10)
@given(models())
def test_models_with_functions_and_calls_come_back(model):
    before, fetches = model
    assert same(heald.tfg.function_to_graph(heald.tfg.graph_to_function(before, (), fetches)), before)


def test_names_and_functions_that_do_not_fit_are_typed_errors():
    lifted = heald.tfg.graph_to_function(PIECES, ["x"], ["t"])
    with pytest.raises(errors.NotFound, match="nope"):
        heald.tfg.graph_to_function(PIECES, ["nope"])
    with pytest.raises(errors.AlreadyExists, match=LIFTED):
        heald.tfg.graph_to_function(lifted)
    with pytest.raises(errors.NotFound, match=LIFTED):
        heald.tfg.function_to_graph(PIECES)
    function = lifted.functions[LIFTED]
    for feeds in ((), ("gone:0",), 3):
        broken = lifted.replace(functions=[function.replace(attrs={"_heald.lifted_feeds": feeds})])
        with pytest.raises(errors.InvalidArgument, match="argument"):
            heald.tfg.function_to_graph(broken)
    with pytest.raises(errors.InvalidArgument, match="outputs of 'a' are not known"):
        heald.tfg.graph_to_function(graph(Node("a", "NoSuchOp")), ["a"])
