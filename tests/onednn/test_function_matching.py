"""Layer normalisations and activations, however they are written, and einsums, next to NumPy's kernels."""

from __future__ import annotations

import math
from typing import Any

import heald
import numpy as np
import pytest
from builders.functions import CHANNELS, GAMMA, GELUS, HALF, HARD_SWISHES, KEEP, LAYER_NORMS
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import ALONE, AS_WRITTEN, FUSES_ALL, compare, numbers
from heald.graphs.graph.graph import Node
from heald_onednn import activations
from hypothesis import assume, given, settings
from hypothesis import strategies as st

ROWS = 40
NAN, INF = np.nan, np.inf


def of(nodes: list[Node], feeds: dict[str, Any], close: float = 2e-6, **config: Any) -> list[str]:
    return compare([placeholder("x"), *nodes], feeds, "y", close=close, **config).kernels


@pytest.mark.parametrize("name", LAYER_NORMS)
def test_layer_normalisations(name: str) -> None:
    for scale in (1.0, 1e-2, 1e2):  # of the input: the first makes epsilon matter
        x = numbers(2, ROWS, CHANNELS) * np.float32(scale) + np.float32(scale)
        assert of(LAYER_NORMS[name], {"x": x}, 2e-5) == ["onednn.LayerNorm"]


def with_nodes(name: str, **nodes: Node) -> list[Node]:
    return [nodes.get(old.name, old) for old in LAYER_NORMS[name]]


@pytest.mark.parametrize("nodes", [
    with_nodes("keras 3", axis=const("axis", [1], np.int32)),
    with_nodes("keras 3", shifted=node("shifted", "AddV2", "mean", "beta")),
    with_nodes("keras 3", variance=node("variance", "Mean", "x", "axis", **KEEP),
               more=node("more", "Square", "variance")),
    with_nodes("keras 3", scaled=node("scaled", "Mul", "x", "root")),
    with_nodes("as in the paper", more=node("more", "Mul", "variance", "epsilon")),
    with_nodes("squares of what is centred", normal=node("normal", "Mul", "root", "x")),
], ids=str)
def test_a_near_miss_of_layer_normalisation_runs_as_it_is_written(nodes: list[Node]) -> None:
    assert "onednn.LayerNorm" not in of(nodes, {"x": numbers(2, ROWS, CHANNELS) + 3}, 1e-4)


@pytest.mark.parametrize(("shape", "axes"), [
    ((4, 5, CHANNELS), [0, 2]), ((4, 5, CHANNELS), [1, 2]), ((2, 6, 7, CHANNELS), [1, 3]),
    ((2, 6, 7, CHANNELS), [1, 2, 3]), ((2, 3, 4, 5, CHANNELS), [1, 2, 4]), ((5, CHANNELS), [0, 1]),
])
@pytest.mark.parametrize("name", ["keras 3", "no scale"])
def test_a_normalisation_over_more_than_the_last_axis_is_none_of_layers(name: str, shape: Any, axes: Any) -> None:
    """A Mean may reduce further axes beside the last: groups of channels, whole images."""
    nodes = with_nodes(name, axis=const("axis", axes, np.int32))
    assert "onednn.LayerNorm" not in of(nodes, {"x": numbers(*shape) + 1}, 2e-5)


@pytest.mark.parametrize(("shape", "axes"), [
    ((1, 5, CHANNELS), [0, 2]), ((4, 5, CHANNELS), [2]), ((1, 1, CHANNELS), [-1]), ((2, 3, 4, 5, CHANNELS), [4]),
])
def test_a_layer_normalisation_has_any_rank_and_may_count_axes_of_one(shape: Any, axes: Any) -> None:
    nodes = with_nodes("keras 3", axis=const("axis", axes, np.int32))
    assert of(nodes, {"x": numbers(*shape) + 1}, 2e-5) == ["onednn.LayerNorm"]


@pytest.mark.parametrize("shape", [(0, CHANNELS), (2, 0, CHANNELS), (5, 0)])
def test_an_array_without_elements_is_left_to_numpy(shape: Any) -> None:
    vectors = {name: const(name, numbers(shape[-1])) for name in ("gamma", "beta")}
    assert "onednn.LayerNorm" not in of(with_nodes("keras 3", **vectors), {"x": numbers(*shape)})


def test_numbers_that_are_none_spread_over_their_row_alone() -> None:
    x = numbers(2, ROWS, CHANNELS)
    x[0, 1, 2], x[1, 2, 3] = np.nan, np.inf
    assert of(LAYER_NORMS["keras 3"], {"x": x}, 2e-5) == ["onednn.LayerNorm"]


def test_a_layer_normalisation_by_fed_values_runs_as_it_is_written() -> None:
    nodes = [placeholder("gamma") if old is GAMMA else old for old in LAYER_NORMS["keras 3"]]
    done = of(nodes, {"x": numbers(2, ROWS, CHANNELS), "gamma": numbers(CHANNELS)}, 2e-5)
    assert "onednn.LayerNorm" not in done


def test_layer_normalisations_are_switched_off_with_fusion() -> None:
    done = of(LAYER_NORMS["keras 3"], {"x": numbers(2, ROWS, CHANNELS)}, 2e-5, **ALONE)
    assert len(done) == 11


PRODUCT = [const("w", numbers(70, CHANNELS)), node("p", "MatMul", "x", "w", transpose_a=False, transpose_b=False),
           const("bias", numbers(CHANNELS)), node("v", "BiasAdd", "p", "bias", data_format="NHWC")]


ACTIVATIONS = {f"gelu: {name}": nodes for name, nodes in GELUS.items()} | {
    f"hard swish: {name}": nodes for name, nodes in HARD_SWISHES.items()}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_after_a_product(name: str) -> None:
    nodes = [*PRODUCT, *ACTIVATIONS[name], node("y", "AddV2", "g", "bias")]
    assert of(nodes, {"x": numbers(60, 70)}, 1e-5) == ["onednn.Product"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_by_themselves(name: str) -> None:
    x = numbers(100, 100) * np.float32(4)
    x[0, :5] = np.nan, 0, 30, -30, 300
    assert compare([placeholder("v"), *ACTIVATIONS[name]], {"v": x}, "g").kernels == ["onednn.Chain"]


@pytest.mark.parametrize("name", ["keras 3", "by a factor"])
def test_hard_swish_of_large_numbers_and_nan_equals_that_of_its_nodes(name: str) -> None:
    v = numbers(100, 100)
    v[0, :8] = np.nan, np.inf, -np.inf, 3e38, -3e38, -3, 3, -0.0
    assert compare([placeholder("v"), *HARD_SWISHES[name]], {"v": v}, "g").kernels == ["onednn.Chain"]


FUSED = {  # what _FusedMatMul of TensorFlow 2.21 gives for a BiasAdd and the Gelu that it finds, by oneDNN
    "erf": {NAN: NAN, INF: NAN, -INF: NAN, 3e38: INF, -3e38: 0, 1e20: 1e20, -8: 0, -5: -1.1920929e-6},
    "tanh": {NAN: NAN, INF: INF, -INF: NAN, 3e38: 3e38, -3e38: 0, 1e20: 1e20, -8: 0, -5: -2.9802322e-7},
}


@pytest.mark.skipif(not FUSES_ALL, reason="without AVX-512 it is done apart from the product")
@pytest.mark.parametrize("name", FUSED)
def test_gelu_of_large_numbers_and_nan_behind_a_product_equals_tensorflows(name: str) -> None:
    expected = np.zeros((60, CHANNELS), np.float32)
    expected[:, : len(FUSED[name])] = [*FUSED[name]]
    nodes = [*PRODUCT[:2], placeholder("x"), placeholder("given"), node("v", "AddV2", "p", "given"), *GELUS[name]]
    with heald.Session(graph(*nodes), AS_WRITTEN) as session:
        got = session.run("g", {"x": np.zeros((60, 70), np.float32), "given": expected})
        assert {row["fused"] for row in session.placement().table() if row["op"] == "Mul"} == {"with g"}
    np.testing.assert_allclose(got[:, : len(FUSED[name])], [[*FUSED[name].values()]] * 60, rtol=1e-6, atol=3e-7)


def test_constants_of_more_than_one_element_are_no_part_of_gelu() -> None:
    """As many as there are numbers to try, and right for those."""
    halves = np.where(activations.SAMPLE_INPUTS < -7, 3, 0.5)
    nodes = [const("half", halves), *GELUS["erf"][1:]]
    v = numbers(60, len(halves))
    assert compare([placeholder("v"), *nodes], {"v": v}, "g", close=1e-5).kernels != ["onednn.Chain"]


@pytest.mark.parametrize("nodes", [
    [const("half", 0.4), *GELUS["erf"][1:]], [HALF, const("one", 0.5), *GELUS["erf"][2:]],
    [HALF, const("root", 0.7), *GELUS["keras 3"][2:]],
    [old if old.name != "inner" else node("inner", "Mul", "v", "bias") for old in GELUS["keras 3"]],
    [const("three", 2.9), *HARD_SWISHES["keras 3"][1:]],
    [old if old.name != "six" else const("six", 5.0) for old in HARD_SWISHES["keras 3"]],
], ids=str)
def test_a_near_miss_of_an_activation_leaves_a_fused_product_and_bias(nodes: list[Node]) -> None:
    done = of([*PRODUCT, *nodes, node("y", "Neg", "g")], {"x": numbers(60, 70)}, 1e-5)
    assert done[0] == "onednn.Product"
    assert len(done) > 3


@pytest.mark.parametrize(("op", "turned"), [("RealDiv", False), ("RealDiv", True), ("Neg", False), ("Square", False)])
def test_other_functions_after_a_product(op: str, turned: bool) -> None:
    divided = ["two", "v"] if turned else ["v", "two"]
    last = node("y", op, *(divided if op == "RealDiv" else ["v"]))
    close = 1e-2 if turned else 1e-4  # a quotient by numbers near 0
    assert of([*PRODUCT, const("two", 3.0), last], {"x": numbers(60, 70)}, close)[0] == "onednn.Product"


EINSUMS = {
    "BTNH,BSNH->BNTS": "scores of attention", "BNTS,BSNH->BTNH": "what attention sees",
    "BTNH,BSNH->BNST": "turned", "abc,cde->abde": "into heads", "abcd,cde->abe": "out of heads",
    "abc,dc->abd": "by rows", "ab,ac->bc": "over the first axis", "ab,bc->ac": "of matrices",
    "...ab,...bc->...ac": "of batches",
}


def einsum(equation: str, lengths: dict[str, int], *more: Node, constant: bool = False) -> Any:
    terms = equation.partition("->")[0].replace("...", "z").split(",")
    arrays = [numbers(*(lengths[label] for label in term)) for term in terms]
    second = const("other", arrays[1]) if constant else placeholder("other")
    nodes = [placeholder("x"), second, Node("e", "Einsum", ["x", "other"], attrs={
        "equation": equation, "N": 2, "T": second.attrs["dtype"]}), *more]
    return compare(nodes, {"x": arrays[0]} | ({} if constant else {"other": arrays[1]}), more[-1].name if more else "e",
                   close=1e-5)


@pytest.mark.parametrize("equation", EINSUMS, ids=EINSUMS.get)
@pytest.mark.parametrize("constant", [True, False])
def test_einsums_that_are_products(equation: str, constant: bool) -> None:
    lengths = {"B": 2, "T": 40, "N": 4, "H": 24, "S": 36, "a": 64, "b": 40, "c": 32, "d": 24, "e": 36, "z": 3}
    assert einsum(equation, lengths, constant=constant).kernels == ["onednn.Einsum"]


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True),
       st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True), st.data())
@settings(max_examples=60, deadline=None)
def test_einsums_of_any_kind_agree(first: list[str], second: list[str], data: Any) -> None:
    labels = sorted({*first, *second})
    output = data.draw(st.permutations([label for label in labels if data.draw(st.booleans())]))
    lengths = {label: data.draw(st.sampled_from([1, 7, 16])) for label in labels}
    assume(math.prod(lengths.values()) > 1 << 8)
    einsum(f"{''.join(first)},{''.join(second)}->{''.join(output)}", lengths)


@pytest.mark.parametrize("equation", ["BTNH,BSNH->BNTS", "acdf,cfa->acd", "aebf,bf->ae", "aecb,ceab->cab"])
def test_einsums_with_matrices_of_one_row_or_column_agree(equation: str) -> None:
    lengths = dict.fromkeys("abcdef", 16) | {"B": 4, "T": 1, "N": 8, "H": 64, "S": 40}
    einsum(equation, lengths)


def test_an_einsum_that_gives_one_number_is_left_to_numpy() -> None:
    lengths = dict.fromkeys("abcd", 16)
    for after in ([], [node("y", "Relu", "e")]):
        assert not [kernel for kernel in einsum("abcd,abcd->", lengths, *after).kernels if "onednn" in kernel]


def test_an_einsum_and_its_following_ops_are_one_call() -> None:
    after = [const("scale", 0.125), const("mask", numbers(2, 4, 40, 36)), node("m", "Mul", "e", "scale"),
             node("a", "AddV2", "m", "mask"), node("y", "Relu", "a")]
    lengths = {"B": 2, "T": 40, "N": 4, "H": 24, "S": 36}
    for equation, shape in (("BTNH,BSNH->BNTS", (2, 4, 40, 36)), ("BTNH,BSNH->BSNT", (2, 36, 4, 40))):
        after[1] = const("mask", numbers(*shape))
        assert einsum(equation, lengths, *after).kernels == ["onednn.Product"] or not FUSES_ALL


@pytest.mark.parametrize("shape", [(36,), (2, 1, 1, 36), (2, 1, 40, 36), (40, 1), (4, 1, 1), (1, 4, 40, 1)])
def test_masks_of_the_result_of_an_einsum_may_broadcast(shape: Any) -> None:
    after = [const("scale", 0.125), const("mask", numbers(*shape)), node("m", "Mul", "e", "scale"),
             node("y", "AddV2", "m", "mask")]
    lengths = {"B": 2, "T": 40, "N": 4, "H": 24, "S": 36}
    assert einsum("BTNH,BSNH->BNTS", lengths, *after).kernels[0] == "onednn.Product"
