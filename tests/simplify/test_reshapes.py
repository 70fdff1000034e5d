"""Reshapes: rows that are put together and taken apart again, and arithmetic behind a reshape."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from builders.rewritten_graphs import INT, numbers, op_counts, rewrite_and_compare, session_with_passes, vector
from heald.graphs.graph.graph import Node


def gather_rows(name, source, places):
    return Node(name, "GatherV2", [source, places, "zero"], attrs={"Tparams": INT, "Tindices": INT, "Taxis": INT})


def dense_layer(x):
    """Keras' Dense and tf.tensordot: rows of all axes but the last, times weights, with those axes back again."""
    return [
        vector("free", [0, 1]), vector("axes", [2]), vector("first", [0]), const("zero", 0, np.int32),
        vector("units", [5]), const("w", numbers(4, 5, seed=1)),
        node("shape", "Shape", x, out_type=INT),
        gather_rows("lengths", "shape", "free"), gather_rows("depth", "shape", "axes"),
        node("rows", "Prod", "lengths", "first", T=INT), node("columns", "Prod", "depth", "first", T=INT),
        node("stack", "Pack", "rows", "columns", axis=0, N=2, T=INT),
        node("flat", "Reshape", x, "stack"),
        node("product", "MatMul", "flat", "w", transpose_a=False, transpose_b=False),
        node("dims", "ConcatV2", "lengths", "units", "zero", N=2, T=INT), node("y", "Reshape", "product", "dims")]


@pytest.mark.parametrize("shape", [(None, 3, 4), (2, 3, 4), (2, None, 4)])
def test_rows_that_are_put_together_and_taken_apart_again_are_one_product(shape):
    rewritten = rewrite_and_compare([placeholder("x", shape), *dense_layer("x")], "constants", "reshapes")
    assert op_counts(rewritten) == {"BatchMatMulV2": 1}
    assert rewritten["y"].op == "BatchMatMulV2"


def test_a_product_of_rows_with_turned_weights_and_shapes_that_are_constants():
    nodes = [placeholder("x", (None, 3, 4)), vector("rows", [-1, 4]), vector("apart", [-1, 3, 5]),
             const("w", numbers(5, 4)), node("flat", "Reshape", "x", "rows"),
             node("product", "MatMul", "flat", "w", transpose_a=False, transpose_b=True),
             node("y", "Reshape", "product", "apart")]
    assert op_counts(rewrite_and_compare(nodes, "reshapes")) == {"BatchMatMulV2": 1}


@pytest.mark.parametrize("changed", [
    {"free": vector("free", [1, 0])}, {"flat": node("flat", "Reshape", "x", "given")},
    {"units": vector("units", [-1])}, {"y": node("y", "Reshape", "product", "given")},
    {"product": node("product", "MatMul", "flat", "w", transpose_a=True, transpose_b=False)},
], ids=str)
def test_rows_of_something_else_are_left_as_they_are(changed):
    fed_shape = placeholder("given", (None,), INT)
    nodes = [changed.get(graph_node.name, graph_node)
             for graph_node in [placeholder("x", (None, 3, 4)), fed_shape, *dense_layer("x")]]
    *_, (_, rewritten) = session_with_passes(nodes, "constants", "reshapes").graphs_by_pass(["y"], ["x", "given"])
    assert "BatchMatMulV2" not in op_counts(rewritten)


def test_rows_that_are_fetched_stay():
    nodes = [placeholder("x", (None, 3, 4)), *dense_layer("x")]
    rewritten = rewrite_and_compare(nodes, "constants", "reshapes", fetches=("product", "y"))
    assert op_counts(rewritten)["MatMul"] == 1


def test_products_of_no_rows_have_none():
    nodes = [placeholder("x", (None, 3, 4)), *dense_layer("x")]
    assert session_with_passes(nodes, "constants", "reshapes").run("y", {"x": numbers(0, 3, 4)}).shape == (0, 3, 5)


@pytest.mark.parametrize(("op", "number", "shape"), [
    ("AddV2", 1, (2, 3)), ("AddV2", 0, (1, 2, 3)), ("Mul", 1, (2, 3)), ("Sub", 0, (2, 3)), ("RealDiv", 1, (2, 3))])
def test_arithmetic_by_channel_moves_in_front_of_a_reshape_that_splits_channels(op, number, shape):
    inputs = ["apart", "c"] if number else ["c", "apart"]
    nodes = [placeholder("x", (None, 5, 6)), vector("shape", [-1, 5, 2, 3]), node("apart", "Reshape", "x", "shape"),
             const("c", numbers(*shape) + 3), node("y", op, *inputs)]
    rewritten = rewrite_and_compare(nodes, "reshapes")
    assert (rewritten["y"].op, op_counts(rewritten)) == ("Reshape", {op: 1, "Reshape": 1})


@pytest.mark.parametrize(("shape", "values", "more"), [
    ([-1, 5, 2, 3], (3,), ()), ([-1, 5, 2, 3], (5, 2, 3), ()), ([-1, 2, 3], (5, 2, 3), ()),
    ([-1, 5, 2, 3], (1, 1, 1, 2, 3), ()), ([-1, 5, 2, 3], (2, 3), ("apart",)), ([-1, 3, 2, 5], (2, 5), ()),
], ids=str)
def test_arithmetic_with_other_constants_stays_behind_a_reshape(shape, values, more):
    nodes = [placeholder("x", (None, 5, 6)), vector("shape", shape), node("apart", "Reshape", "x", "shape"),
             const("c", numbers(*values)), node("y", "AddV2", "apart", "c")]
    assert rewrite_and_compare(nodes, "reshapes", fetches=("y", *more), feed={"x": numbers(1, 5, 6)})["y"].op == "AddV2"
