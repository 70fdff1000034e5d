"""The passes of heald-simplify: the graph computes the same with less, and what others see of it stays.

Each pass is compared with no pass at all, on CPU:0.
"""

from __future__ import annotations

from collections import Counter
from math import prod

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node, TensorValue
from heald.graphs.session.requested_passes import requested_graphs
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes, wire
from heald.runtime.values.tensor_proto import put_shape
from hypothesis import given, settings
from hypothesis import strategies as st

PASSES = ("constants", "identities", "pads", "batch-norm", "scales", "duplicates", "reshapes", "pools", "strides",
          "cells", "sequences")
INT = dtypes.int32
BATCH_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def session(nodes, *passes):
    """A session over these nodes in which no other pass of the plugin runs."""
    return heald.Session(graph(*nodes), {"passes": {"disable": [name for name in PASSES if name not in passes]},
                                        "placement": {"fallback": "allow"}})


def optimized(nodes, *passes, fetches=("y",), feeds=("x",)):
    *_, (_, found) = session(nodes, *passes).optimized(list(fetches), list(feeds))
    return found


def ops(found):
    """How many nodes there are of each op, constants and placeholders aside."""
    return Counter(each.op for each in found if each.op not in ("Const", "Placeholder"))


def compared(nodes, *passes, fetches=("y",), feed=None, tolerance=1e-5):
    """The graph after the passes, which gives what the plain one gives for `feed`, x in -2..2."""
    given = feed if feed is not None else {"x": numbers(*_shape(nodes), dtype=nodes[0].attrs["dtype"].numpy)}
    plain, ours = session(nodes), session(nodes, *passes)
    for a, b in zip(*(each.run(list(fetches), given) for each in (plain, ours)), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=0,
                                   atol=tolerance * max(1.0, np.abs(a.astype(np.float64)).max(initial=0)))
    *_, (_, found) = ours.optimized(list(fetches), tuple(given))
    kept = [name.partition(":")[0] for name in (*fetches, *given)]
    for name in passes:  # each is idempotent
        *_, (_, once), (_, again) = requested_graphs(found, [name, name], kept, runtime())
        assert again is once
    return found


def _shape(nodes):
    return tuple(2 if length is None else length for length in nodes[0].attrs["shape"])


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def conv(name, x, weights, op="Conv2D", data_format="NHWC", padding="VALID", T=FLOAT, stride=1, **more):  # noqa: N803
    return Node(name, op, [x, weights], attrs={
        "T": T, "strides": [1, stride, stride, 1] if data_format == "NHWC" else [1, 1, stride, stride],
        "padding": padding, "data_format": data_format} | more)


def back(name, sizes, weights, x, data_format="NHWC"):
    return Node(name, "Conv2DBackpropInput", [sizes, weights, x], attrs={
        "T": FLOAT, "strides": [1, 1, 1, 1], "padding": "VALID", "data_format": data_format})


def norm(name, x, channels, op="FusedBatchNormV3", data_format="NHWC", T=FLOAT, **more):  # noqa: N803
    """A batch normalisation and its parameters."""
    parameters = [const(f"{name}/{p}", np.abs(numbers(channels, seed=i)) + 0.5, np.float32)
                  for i, p in enumerate(("scale", "offset", "mean", "variance"))]
    types = {"T": T} | ({"U": FLOAT} if op != "FusedBatchNorm" else {})
    return [*parameters, Node(name, op, [x, *(p.name for p in parameters)], attrs={
        **types, "epsilon": 1e-3, "is_training": False, "data_format": data_format} | more)]


def bias(name, x, values, data_format="NHWC"):
    return [const(f"{name}/values", values), node(name, "BiasAdd", x, f"{name}/values", data_format=data_format)]


def vector(name, values):
    return const(name, values, np.int32)


# constants


def test_what_needs_constants_alone_becomes_a_constant_under_its_name():
    nodes = [placeholder("x", (2,)), const("c", [3, 4]), node("s", "Square", "c"), node("i", "Identity", "s"),
             node("r", "Rsqrt", "i"), node("y", "Mul", "x", "r")]
    found = compared(nodes, "constants")
    assert [(each.name, each.op) for each in found] == [("x", "Placeholder"), ("r", "Const"), ("y", "Mul")]
    assert found["r"].attrs["value"].array().tolist() == pytest.approx([1 / 3, 1 / 4])


def test_an_identity_of_a_constant_copies_nothing():
    nodes = [placeholder("x", (2,)), const("c", [3, 4]), node("i", "Identity", "c"), node("y", "Mul", "x", "i")]
    found = compared(nodes, "constants")
    assert (ops(found), found["y"].inputs[1].node) == ({"Mul": 1}, "c")


def test_every_output_of_a_node_that_is_used_becomes_a_constant():
    nodes = [placeholder("x", (2,)), const("c", np.arange(6)), const("axis", 0, np.int32),
             Node("s", "Split", ["axis", "c"], attrs={"T": FLOAT, "num_split": 3}),
             node("y", "AddV2", "s:1", "s:2"), node("z", "Mul", "x", "y"), node("w", "Mul", "z", "s")]
    assert ops(compared(nodes, "constants", fetches=("w",))) == {"Mul": 2}


@pytest.mark.parametrize(("length", "left"), [(128, {"Mul": 1}), (129, {"Mul": 1, "Fill": 1})])
def test_a_result_is_small_or_no_larger_than_what_it_is_made_from(length, left):
    nodes = [placeholder("x", (1,)), vector("dims", [128, length]), const("one", 1),
             node("f", "Fill", "dims", "one", index_type=INT), node("y", "Mul", "x", "f")]
    assert ops(compared(nodes, "constants")) == left
    nodes = [placeholder("x", (1,)), const("c", np.ones((128, length))), node("n", "Neg", "c"),
             node("y", "Mul", "x", "n")]
    assert ops(compared(nodes, "constants")) == {"Mul": 1}


def test_a_constant_of_one_value_all_over_is_small_itself():
    raw = wire.put_integer(1, 1) + wire.put_bytes(2, put_shape((1 << 8, 1 << 8))) + wire.put_float(5, 7.0)
    filled = Node("c", "Const", attrs={"dtype": FLOAT, "value": TensorValue.read(raw, 0, len(raw))})
    nodes = [placeholder("x", (1,)), filled, node("n", "Neg", "c"), node("y", "Mul", "x", "n")]
    assert ops(compared(nodes, "constants")) == {"Mul": 1, "Neg": 1}


def test_what_cannot_be_computed_stays_and_fails_when_it_is_run():
    nodes = [placeholder("x", (1,), INT), vector("zero", [0]), vector("c", [6]),
             node("d", "FloorDiv", "c", "zero", T=INT), node("n", "Neg", "c", T=INT),
             node("z", "AddV2", "x", "n", T=INT), node("y", "AddV2", "z", "d", T=INT)]
    assert ops(optimized(nodes, "constants")) == {"AddV2": 2, "FloorDiv": 1}
    with pytest.raises(InvalidArgument, match="division by zero") as caught:
        session(nodes, "constants").run("y", {"x": [1]})
    assert caught.value.node == "d"
    assert session(nodes, "constants").run("z", {"x": [1]}).tolist() == [-5]


def test_random_numbers_are_drawn_with_every_run():
    nodes = [placeholder("x", (1,)), vector("dims", [4]),
             Node("r", "RandomUniform", ["dims"], attrs={"T": INT, "dtype": FLOAT}), node("y", "Mul", "x", "r")]
    assert ops(optimized(nodes, *PASSES)) == {"Mul": 1, "RandomUniform": 1}


def test_a_constant_that_is_fed_is_none():
    nodes = [const("c", [1, 2]), node("n", "Neg", "c"), node("y", "Neg", "n")]
    assert session(nodes, *PASSES).run("y", {"c": [5, 6]}).tolist() == [5, 6]
    assert session(nodes, *PASSES).run("y", {"n": [5, 6]}).tolist() == [-5, -6]
    assert session(nodes, *PASSES).run(["y", "c", "n"])[0].tolist() == [1, 2]


def test_who_waits_for_constants_waits_for_nothing():
    nodes = [placeholder("x", (1,)), const("c", 1), node("i", "Identity", "c"), node("s", "Neg", "c"),
             Node("n", "NoOp", controls=["i", "s"]), node("m", "Neg", "x").replace(controls=["s"]),
             node("y", "Identity", "m").replace(controls=["n"])]
    found = compared(nodes, "constants")
    assert (ops(found), found["y"].controls, found["m"].controls) == ({"Identity": 1, "Neg": 1}, (), ())


def test_who_waits_for_what_may_fail_still_does():
    nodes = [placeholder("x", (), dtypes.bool_), const("c", 1), const("message", b"no", np.object_),
             Node("a", "Assert", ["x", "message"], attrs={"T": [dtypes.string]}),
             node("i", "Identity", "c").replace(controls=["a"]), node("n", "Neg", "i"), node("y", "Neg", "n")]
    assert ops(optimized(nodes, *PASSES)) == {"Assert": 1, "Identity": 1, "Neg": 2}
    with pytest.raises(InvalidArgument, match="no"):
        session(nodes, *PASSES).run("y", {"x": False})


# identities

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
def test_nodes_that_give_what_they_take_go(case):
    nodes, left = SAME[case]
    found = compared([placeholder("x", (None, 4)), *nodes, node("y", "Neg", "a")], "identities")
    assert ops(found) == {"Neg": 1} | left


def test_an_identity_that_somebody_knows_stays():
    between = node("a", "Identity", "x")
    nodes = [placeholder("x", (2,)), between, node("y", "Neg", "a")]
    assert ops(compared(nodes, "identities")) == {"Neg": 1}
    assert ops(compared(nodes, "identities", fetches=("y", "a"))) == {"Neg": 1, "Identity": 1}
    assert session(nodes, "identities").run("y", {"a": [1, 2]}).tolist() == [-1, -2]
    after = [nodes[0], between, node("b", "Abs", "x").replace(controls=["a"]), node("y", "AddV2", "a", "b")]
    assert ops(compared(after, "identities"))["Identity"] == 1
    elsewhere = [nodes[0], between.replace(device="EXAMPLE:0"), nodes[2]]
    assert ops(compared(elsewhere, "identities"))["Identity"] == 1
    with_others = [nodes[0], between.replace(attrs={"_class": [b"loc:@y"]}), nodes[2]]
    assert ops(compared(with_others, "identities"))["Identity"] == 1


# pads


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize(("paddings", "is_taken"), [
    ([[0, 0], [1, 0], [2, 1], [0, 0]], {"NHWC"}), ([[0, 0], [0, 0], [2, 1], [1, 3]], {"NCHW"}),
    ([[1, 0], [1, 1], [1, 1], [0, 0]], set()),
])
def test_zeros_around_images_are_the_convolution_s_own_padding(data_format, op, paddings, is_taken):
    nodes = [placeholder("x", (2, 5, 5, 5)), vector("p", paddings), node("pad", "Pad", "x", "p", Tpaddings=INT)]
    depth = 5 + sum(paddings[data_format.index("C")])
    nodes += [const("w", numbers(2, 3, depth, 2)), conv("y", "pad", "w", op, data_format, stride=2)]
    assert ops(compared(nodes, "pads")) == {op: 1} | ({} if data_format in is_taken else {"Pad": 1})


@pytest.mark.parametrize(("change", "is_taken"), [
    ({"op": "PadV2", "value": 0.0}, True), ({"op": "PadV2", "value": 1.0}, False), ({"padding": "SAME"}, False),
    ({"fetches": ("y", "pad")}, False), ({"device": "EXAMPLE:0"}, False), ({"controls": ["before"]}, False),
])
def test_a_pad_that_does_something_else_stays(change, is_taken):
    value = [const("value", change["value"])] if "value" in change else []
    nodes = [placeholder("x", (1, 5, 5, 1)), vector("p", [[0, 0], [1, 1], [1, 1], [0, 0]]), *value,
             node("before", "CheckNumerics", "x", message=""),
             Node("pad", change.get("op", "Pad"), ["x", "p", *(each.name for each in value)],
                  controls=change.get("controls", []), device=change.get("device", ""),
                  attrs={"T": FLOAT, "Tpaddings": INT}),
             const("w", numbers(3, 3, 1, 2)), conv("y", "pad", "w", padding=change.get("padding", "VALID"))]
    found = compared(nodes, "pads", fetches=change.get("fetches", ("y",)))
    assert ("pad" not in found) == is_taken


@pytest.mark.parametrize(("op", "paddings", "taps", "is_taken"), [
    ("Relu", [[1, 1], [2, 1]], 3, True), ("Relu6", [[0, 1], [0, 0]], 2, True), ("Neg", [[1, 1], [1, 1]], 3, False),
    ("Relu", [[2, 0], [0, 0]], 2, False),
])
def test_zeros_around_what_is_not_negative_are_the_padding_of_its_largest(op, paddings, taps, is_taken):
    window = [1, taps, taps, 1]
    nodes = [placeholder("x", (2, 6, 5, 3)), node("image", op, "x"), vector("p", [[0, 0], *paddings, [0, 0]]),
             node("pad", "Pad", "image", "p", Tpaddings=INT),
             node("y", "MaxPool", "pad", ksize=window, strides=window, padding="VALID")]
    assert ops(compared(nodes, "pads")) == {op: 1, "MaxPool": 1} | ({} if is_taken else {"Pad": 1})


# batch-norm and scales: what follows a layer

LAYERS = {
    "Conv2D": lambda f, p: [const("w", numbers(2, 2, 3, 4)), conv("l", "x", "w", data_format=f, padding=p)],
    "groups": lambda f, p: [const("w", numbers(2, 2, 1, 6)), conv("l", "x", "w", data_format=f, padding=p)],
    "DepthwiseConv2dNative": lambda f, p: [
        const("w", numbers(2, 2, 3, 2)), conv("l", "x", "w", "DepthwiseConv2dNative", f, p)],
    "Conv2DBackpropInput": lambda f, _: [
        const("w", numbers(2, 2, 5, 3)), vector("sizes", [2, 7, 6, 5] if f == "NHWC" else [2, 5, 7, 6]),
        back("l", "sizes", "w", "x", f)],
}
CHANNELS = {"Conv2D": 4, "groups": 6, "DepthwiseConv2dNative": 6, "Conv2DBackpropInput": 5}
SHAPES = {"NHWC": (2, 6, 5, 3), "NCHW": (2, 3, 6, 5)}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("data_format", SHAPES)
@pytest.mark.parametrize("op", BATCH_NORMS)
@pytest.mark.parametrize("biased", [False, True])
def test_batch_normalisation_behind_a_layer_goes_into_its_weights(layer, data_format, op, biased):
    channels = CHANNELS[layer]
    between = bias("b", "l", numbers(channels, seed=9), data_format) if biased else []
    nodes = [placeholder("x", SHAPES[data_format]), *LAYERS[layer](data_format, "SAME"), *between,
             *norm("n", "b" if biased else "l", channels, op, data_format), node("y", "Relu", "n")]
    found = compared(nodes, "batch-norm")
    assert ops(found) == {found["l"].op: 1, "BiasAdd": 1, "Relu": 1}
    assert (found["n"].op, found["n"].inputs[0].node) == ("BiasAdd", "l")


def steps(data_format, channels):
    """Each kind of scaling, for each channel, and for all."""
    wide = (channels,) if data_format == "NHWC" else (1, channels, 1, 1)
    return [("Mul", wide, 0), ("AddV2", (), 1), ("Sub", wide, 0), ("RealDiv", (1, 1, 1), 1), ("Sub", (1,), 1),
            ("Div", wide, 1), ("Add", wide, 0), ("Mul", (), 1)]


def scaling(name, x, op, shape, position, dtype=np.float32, seed=3):
    """`op` of x and a constant of this shape, which is its input number `position`."""
    constant = const(f"{name}/c", numbers(*shape, seed=seed) ** 2 + 0.5, dtype)
    inputs = [x, constant.name] if position else [constant.name, x]
    return [constant, node(name, op, *inputs, T=dtypes.of_numpy(np.dtype(dtype)))]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("data_format", SHAPES)
def test_what_scales_a_layer_s_output_goes_into_its_weights(layer, data_format):
    channels = CHANNELS[layer]
    nodes = [placeholder("x", SHAPES[data_format]), *LAYERS[layer](data_format, "VALID"),
             *bias("s0", "l", numbers(channels, seed=9), data_format)]
    for i, step in enumerate(steps(data_format, channels)):
        nodes += scaling(f"s{i + 1}", f"s{i}", *step)
    found = compared([*nodes, node("y", "Relu", "s8")], "scales")
    assert ops(found) == {found["l"].op: 1, "BiasAdd": 1, "Relu": 1}


@pytest.mark.parametrize("transposed", [False, True])
def test_what_scales_a_product_goes_into_its_matrix(transposed):
    weights = numbers(3, 4)
    nodes = [placeholder("x", (None, 3)), const("w", weights.T if transposed else weights),
             node("l", "MatMul", "x", "w", transpose_b=transposed), *bias("b", "l", [1, 2, 3, 4]),
             *scaling("y", "b", "Mul", (4,), 1)]
    assert ops(compared(nodes, "scales")) == {"MatMul": 1, "BiasAdd": 1}


def test_a_layer_that_is_only_multiplied_gets_the_name_of_what_multiplies_it():
    nodes = [placeholder("x", (1, 3)), const("w", numbers(3, 4)), node("l", "MatMul", "x", "w"),
             *scaling("s", "l", "Mul", (4,), 1), node("y", "Relu", "s")]
    found = compared(nodes, "scales")
    assert [(each.name, each.op) for each in found] == [
        ("x", "Placeholder"), ("w", "Const"), ("s", "MatMul"), ("y", "Relu")]


KEPT = {
    "the layer is fetched": {"fetches": ("y", "l")},
    "the layer has another user": {"more": [node("z", "Neg", "l")], "fetches": ("y", "z")},
    "the weights have another user": {"more": [node("z", "Neg", "w")], "fetches": ("y", "z")},
    "the weights are fetched": {"fetches": ("y", "w")},
    "something waits for the layer": {"more": [node("z", "Neg", "x").replace(controls=["l"])], "fetches": ("y", "z")},
    "the scaling waits for something": {"last": {"controls": ["before"]}},
    "the scaling is to be elsewhere": {"last": {"device": "EXAMPLE:0"}},
    "the scaling is to be with others": {"last": {"attrs": {"_class": [b"loc:@x"]}}},
}


@pytest.mark.parametrize("name", ["batch-norm", "scales"])
@pytest.mark.parametrize("case", KEPT)
def test_a_layer_that_somebody_knows_keeps_what_it_gives(name, case):
    how = KEPT[case]
    last = norm("y", "l", 4) if name == "batch-norm" else scaling("y", "l", "Mul", (4,), 1)
    last[-1] = last[-1].replace(**how.get("last", {}))
    nodes = [placeholder("x", (1, 4, 4, 3)), node("before", "CheckNumerics", "x", message=""),
             *LAYERS["Conv2D"]("NHWC", "VALID"), *how.get("more", []), *last]
    found = compared(nodes, name, fetches=how.get("fetches", ("y",)))
    assert found["l"].op == "Conv2D"
    assert "BiasAdd" not in ops(found)
    assert np.array_equal(found["w"].attrs["value"].array(), numbers(2, 2, 3, 4))


@pytest.mark.parametrize("fetches", [("y",), ("y", "n")])
def test_the_last_of_a_chain_may_be_known(fetches):
    nodes = [placeholder("x", (1, 4, 4, 3)), *LAYERS["Conv2D"]("NHWC", "VALID"), *scaling("s", "l", "Mul", (4,), 1),
             *scaling("n", "s", "AddV2", (4,), 1), node("before", "Abs", "x").replace(controls=["n"]),
             node("y", "Relu", "n"), node("z", "Relu", "n")]
    assert ops(compared(nodes, "scales", fetches=(*fetches, "z", "before")))["BiasAdd"] == 1


@pytest.mark.parametrize("values", [np.float32([[[1, 2, 3, 4]]] * 3), np.float32([[[[[2]]]]]), np.ones((2, 1, 1, 1))])
def test_factors_that_differ_from_place_to_place_stay(values):
    nodes = [placeholder("x", (1, 4, 4, 3)), *LAYERS["Conv2D"]("NHWC", "VALID"), const("c", values),
             node("y", "Mul", "l", "c")]
    assert ops(compared(nodes, "scales")) == {"Conv2D": 1, "Mul": 1}


def test_a_transposed_convolution_with_groups_stays():
    nodes = [placeholder("x", (1, 4, 4, 4)), const("w", numbers(2, 2, 1, 4)), vector("sizes", [1, 5, 5, 2]),
             back("l", "sizes", "w", "x"), *scaling("s", "l", "AddV2", (), 1), *scaling("y", "s", "Mul", (), 1)]
    assert ops(compared(nodes, "scales")) == {"Conv2DBackpropInput": 1, "AddV2": 1, "Mul": 1}


def test_one_channel_that_is_broadcast_to_several_stays():
    nodes = [placeholder("x", (1, 4, 4, 3)), const("w", numbers(1, 1, 3, 1)), conv("l", "x", "w"),
             *scaling("y", "l", "Mul", (4,), 1)]
    assert ops(compared(nodes, "scales")) == {"Conv2D": 1, "Mul": 1}


@pytest.mark.parametrize("factor", [np.inf, np.nan, 3e38])
def test_weights_that_would_overflow_stay(factor):
    nodes = [placeholder("x", (1, 4, 4, 3)), *LAYERS["Conv2D"]("NHWC", "VALID"), const("c", factor),
             node("y", "Mul", "l", "c")]
    assert ops(optimized(nodes, "scales")) == {"Conv2D": 1, "Mul": 1}


@pytest.mark.parametrize(("weights", "factor", "left"), [
    ((2.5, -1.5, 0.1), 100.0, 0), ((1e-40, -2.0, 1e30), 1e8, 0), ((1e-3, -1e31, 1e-9), 1e8, 1),
    ((0.0, np.nan, 1.0), 0.5, 1),
])
def test_it_is_the_largest_weight_that_tells_whether_any_would_overflow(weights, factor, left):
    nodes = [placeholder("x", (1, 4, 4, 3)), const("w", np.reshape(weights, (1, 1, 3, 1))), conv("l", "x", "w"),
             const("c", factor), node("y", "Mul", "l", "c")]
    assert ops(optimized(nodes, "scales")) == {"Conv2D": 1, **({"Mul": 1} if left else {})}


def test_halves_that_would_lose_digits_stay():
    half, few = dtypes.float16, []
    for factor in (0.5, 1e-4):
        nodes = [placeholder("x", (1, 4, 4, 3), half), const("w", numbers(1, 1, 3, 2), np.float16),
                 conv("l", "x", "w", T=half), const("c", factor, np.float16), node("y", "Mul", "l", "c", T=half)]
        few.append(ops(compared(nodes, "scales", tolerance=2e-3)))
    assert few == [{"Conv2D": 1}, {"Conv2D": 1, "Mul": 1}]


# batch-norm elsewhere

NORMS = {  # what is left, and what is different
    "images": ({"Mul": 1, "AddV2": 1}, {}),
    "channels first": ({"Mul": 1, "AddV2": 1}, {"shape": (2, 3, 4, 5), "data_format": "NCHW"}),
    "volumes": ({"Mul": 1, "AddV2": 1}, {"shape": (2, 2, 4, 5, 3), "data_format": "NDHWC"}),
    "volumes, channels first": ({"Mul": 1, "AddV2": 1}, {"shape": (2, 3, 2, 4, 5), "data_format": "NCDHW"}),
    "training": ({"FusedBatchNormV3": 1}, {"is_training": True}),
    "channels that are not known": ({"FusedBatchNormV3": 1}, {"shape": None}),
    "the mean is used too": ({"FusedBatchNormV3": 1}, {"fetches": ("y", "n:1")}),
    "the mean is used by another node": ({"FusedBatchNormV3": 1, "Neg": 1}, {"fetches": ("y", "mean")}),
    "halves": ({"FusedBatchNormV3": 1}, {"T": dtypes.float16}),
}


@pytest.mark.parametrize("case", NORMS)
def test_batch_normalisation_elsewhere_is_a_factor_and_a_shift(case):
    left, how = NORMS[case]
    shape, dtype = how.pop("shape", (2, 4, 5, 3)), how.get("T", FLOAT)
    fetches = how.pop("fetches", ("y",))
    nodes = [placeholder("x", shape, dtype), *norm("n", "x", 3, **how), node("y", "Relu", "n", T=dtype),
             node("mean", "Neg", "n:1")]
    feed = {"x": numbers(*(shape or (2, 4, 5, 3)), dtype=dtype.numpy)}
    assert ops(compared(nodes, "batch-norm", fetches=fetches, feed=feed, tolerance=1e-5)) == left | {"Relu": 1}


def test_what_batch_normalisation_refuses_is_still_refused():
    nodes = [placeholder("x", (2, 4, 5, 1)), *norm("n", "x", 3), node("y", "Relu", "n")]
    with pytest.raises(InvalidArgument, match="channels") as caught:
        session(nodes, *PASSES).run("y", {"x": numbers(2, 4, 5, 1)})
    assert caught.value.node == "n"


# scales elsewhere


def test_scalings_that_follow_each_other_become_one_factor_and_one_shift():
    nodes = [placeholder("x", (2, 4, 5, 3))]
    for i, step in enumerate(steps("NHWC", 3)):
        nodes += scaling(f"s{i + 1}", f"s{i}" if i else "x", *step)
    found = compared([*nodes, node("y", "Relu", "s8")], "scales")
    assert ops(found) == {"Mul": 1, "AddV2": 1, "Relu": 1}
    assert (found["s1"].op, found["s8"].op) == ("Mul", "AddV2")


@pytest.mark.parametrize("chain", [
    [("Mul", (3,), 1), ("AddV2", (3,), 1)],
    [("Mul", (4, 1), 1), ("Mul", (1, 3), 1)],  # the product is larger than either
    [("Mul", (2,), 1), ("Mul", (3,), 1)],  # that cannot be
])
def test_scalings_that_gain_nothing_stay(chain):
    nodes = [placeholder("x", (4, 1))]
    for i, step in enumerate(chain):
        nodes += scaling(f"s{i + 1}", f"s{i}" if i else "x", *step)
    found = optimized([*nodes, node("y", "Relu", "s2")], "scales")
    assert [each.name for each in found if each.op != "Const"] == ["x", "s1", "s2", "y"]


def test_a_scaling_within_a_chain_that_somebody_knows_keeps_what_it_gives():
    nodes = [placeholder("x", (4, 3)), *scaling("a", "x", "Mul", (3,), 1), *scaling("b", "a", "Mul", (3,), 0),
             *scaling("c", "b", "Mul", (), 1), node("y", "Relu", "c"), node("z", "Neg", "a")]
    assert ops(compared(nodes, "scales", fetches=("y", "z")))["Mul"] == 2
    assert ops(compared(nodes, "scales", fetches=("y", "b")))["Mul"] == 2
    assert ops(compared(nodes, "scales"))["Mul"] == 1
    assert session(nodes, *PASSES).run("y", {"b": [[1, 2, 3]]}).shape == (1, 3)


@pytest.mark.parametrize("data_format", SHAPES)
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize(("padding", "biased", "left"), [
    ("VALID", True, {}), ("VALID", False, {"Sub": 1}), ("SAME", True, {"Sub": 1}), ("SAME", False, {"Sub": 1}),
])
def test_what_scales_the_images_goes_into_the_first_weights(data_format, op, padding, biased, left):
    wide = (3,) if data_format == "NHWC" else (3, 1, 1)
    behind = bias("b", "l", numbers(CHANNELS[op], seed=9), data_format) if biased else []
    nodes = [placeholder("x", SHAPES[data_format]), *scaling("mean", "x", "Sub", wide, 1),
             *scaling("by", "mean", "RealDiv", wide, 1), *LAYERS[op](data_format, padding)]
    nodes = [each.replace(inputs=["by", "w"]) if each.name == "l" else each for each in nodes]
    found = compared([*nodes, *behind, node("y", "Relu", "b" if biased else "l")], "scales")
    assert ops(found) == {op: 1, "Relu": 1} | ({"BiasAdd": 1} if biased else {}) | left


@pytest.mark.parametrize(("shape", "constant"), [
    ((2, 4, 4, 1), (3,)), ((4, 4, 3), (1, 1, 1, 3)), ((2, 4, 4, 3), (2, 1, 1, 1)), (None, (3,)),
    ((2, 4, 4, None), (3,)),
])
def test_images_that_get_their_shape_by_scaling_are_scaled(shape, constant):
    nodes = [placeholder("x", shape), *scaling("s", "x", "Mul", constant, 1), const("w", numbers(2, 2, 3, 4)),
             conv("y", "s", "w")]
    feed = {"x": numbers(*(3 if length is None else length for length in shape or (2, 4, 4, 3)))}
    assert ops(compared(nodes, "scales", feed=feed)) == {"Conv2D": 1, "Mul": 1}


def test_one_factor_for_all_images_suits_groups_and_shapes_that_are_not_known():
    nodes = [placeholder("x", None), *scaling("s", "x", "Mul", (), 0), const("w", numbers(2, 2, 1, 6)),
             conv("y", "s", "w")]
    assert ops(compared(nodes, "scales", feed={"x": numbers(2, 4, 4, 3)})) == {"Conv2D": 1}


# all of them


# pools


def branch(padding="SAME", stride=1, filters=2, taps=1, op="BiasAdd", values=None, turned=False, x=(2, 5, 6, 4)):
    """The mean of images before a convolution."""
    shift = [const("v", numbers(filters) if values is None else values)]
    inputs = ("v", "c") if turned else ("c", "v")
    return [placeholder("x", x), node("p", "AvgPool", "x", ksize=[1, 3, 3, 1], strides=[1, stride, stride, 1],
                                      padding=padding, data_format="NHWC"),
            const("w", numbers(taps, taps, x[-1], filters)), conv("c", "p", "w"), *shift, node("s", op, *inputs),
            node("y", "Relu", "s")]


@pytest.mark.parametrize("change", [
    {}, {"padding": "VALID"}, {"op": "AddV2", "turned": True}, {"op": "AddV2", "values": 2.0},
])
def test_the_mean_of_windows_is_taken_of_fewer_channels(change):
    found = compared(branch(**change), "pools", fetches=("y", "s"))
    assert (found["s"].op, found["c"].inputs[0].node) == ("AvgPool", "x")


@pytest.mark.parametrize("change", [
    {"stride": 2}, {"filters": 4}, {"taps": 2}, {"op": "Mul"}, {"op": "AddV2", "values": np.ones((3, 2))},
])
def test_the_mean_of_windows_stays_where_nothing_is_gained(change):
    if "values" in change:
        change = change | {"x": (2, 5, 3, 4)}
    assert compared(branch(**change), "pools")["s"].op != "AvgPool"


@pytest.mark.parametrize("fetches", [("y", "p"), ("y", "c")])
def test_the_mean_of_windows_stays_where_somebody_knows_it(fetches):
    assert compared(branch(), "pools", fetches=fetches)["s"].op == "BiasAdd"


# strides


def residual(ends=2, stride=2, taps=1, last="Relu", size=9):
    """Two convolutions whose sum with the images is read by convolutions that step over some of it."""
    nodes = [placeholder("x", (2, size, size, 3)), const("wa", numbers(3, 3, 3, 4)), const("wb", numbers(1, 1, 4, 3)),
             node("in", "Relu6", "x"), conv("a", "in", "wa", padding="SAME"), *bias("ab", "a", numbers(4)),
             node("ar", "Relu", "ab"), conv("b", "ar", "wb"), *bias("bb", "b", numbers(3)),
             node("sum", "AddV2", "bb", "in"), node("r", last, "sum"), const("we", numbers(taps, taps, 3, 5))]
    nodes += [conv(f"e{i}", "r", "we", stride=stride) for i in range(ends)]
    return [*nodes, node("y", "AddN", *(f"e{i}" for i in range(ends)), N=ends)]


@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize("stride", [2, 3])
def test_what_is_stepped_over_is_not_computed(size, ends, stride):
    found = compared(residual(ends, stride, size=size), "strides")
    assert {name: found[name].attrs["strides"] for name in ("a", "b", "e0")} == {
        "a": (1, stride, stride, 1), "b": (1, 1, 1, 1), "e0": (1, 1, 1, 1)}
    assert ops(found)["AvgPool"] == 1  # of `in`, which the first convolution needs whole


@pytest.mark.parametrize("change", [
    {"taps": 2}, {"stride": 1}, {"last": "Softmax"},
])
def test_images_that_are_needed_whole_stay(change):
    found = compared(residual(**change), "strides")
    assert "AvgPool" not in ops(found)
    assert found["a"].attrs["strides"] == (1, 1, 1, 1)


@pytest.mark.parametrize("others", [
    [node("other", "Neg", "r")], [conv("other", "r", "we", stride=3)], [conv("other", "r", "we")],
])
def test_images_that_somebody_else_reads_otherwise_stay(others):
    found = compared(residual() + others, "strides", fetches=("y", "other"))
    assert found["a"].attrs["strides"] == (1, 1, 1, 1)


def test_images_that_are_fetched_stay():
    found = compared(residual(), "strides", fetches=("y", "r"))
    assert found["a"].attrs["strides"] == (1, 1, 1, 1)


@pytest.mark.parametrize(("padding", "taps", "dilation", "op"), [
    ("VALID", (3, 3), 1, "Conv2D"), ("SAME", (2, 3), 1, "Conv2D"), ("SAME", (3, 2), 2, "Conv2D"),
    ("SAME", (2, 2), 1, "DepthwiseConv2dNative"), ("EXPLICIT", (3, 3), 1, "Conv2D"),
])
def test_a_convolution_gets_the_strides_and_keeps_its_windows(padding, taps, dilation, op):
    explicit = {"explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]} if padding == "EXPLICIT" else {}
    nodes = [placeholder("x", (1, 11, 10, 3)), const("w", numbers(*taps, 3, 2)),
             conv("a", "x", "w", op, padding=padding, dilations=[1, dilation, dilation, 1], **explicit),
             node("r", "Relu", "a"), const("v", numbers(1, 1, 2 if op == "Conv2D" else 6, 4)),
             conv("y", "r", "v", stride=2)]
    assert compared(nodes, "strides")["a"].attrs["strides"] == (1, 2, 2, 1)


def test_strides_that_follow_each_other_are_multiplied():
    nodes = [placeholder("x", (1, 13, 13, 2)), const("w", numbers(3, 3, 2, 2)), const("v", numbers(1, 1, 2, 2)),
             conv("a", "x", "w", stride=2), conv("b", "a", "v", stride=2), conv("y", "b", "v", stride=2)]
    found = compared(nodes, "strides")
    assert [found[name].attrs["strides"][1] for name in ("a", "b", "y")] == [8, 1, 1]


def test_a_convolution_whose_padding_goes_with_its_strides_stays():
    nodes = [placeholder("x", (1, 13, 13, 2)), const("w", numbers(3, 3, 2, 2)), const("v", numbers(1, 1, 2, 2)),
             conv("a", "x", "w", stride=2, padding="SAME"), conv("y", "a", "v", stride=2)]
    assert compared(nodes, "strides")["a"].attrs["strides"] == (1, 2, 2, 1)


def keras_block(x, name, channels, filters):
    """A convolution and its batch normalisation as Keras 3 writes them."""
    values = {p: np.abs(numbers(filters, seed=i)) + 0.5 for i, p in enumerate(("variance", "mean", "gamma", "beta"))}
    return [
        const(f"{name}/w", numbers(3, 3, channels, filters)), node(f"{name}/read", "Identity", f"{name}/w"),
        conv(f"{name}/conv", x, f"{name}/read", padding="SAME"),
        *(const(f"{name}/{p}", value) for p, value in values.items()), const(f"{name}/epsilon", 1e-3),
        node(f"{name}/add", "AddV2", f"{name}/variance", f"{name}/epsilon"),
        node(f"{name}/rsqrt", "Rsqrt", f"{name}/add"), node(f"{name}/mul", "Mul", f"{name}/rsqrt", f"{name}/gamma"),
        node(f"{name}/mul_1", "Mul", f"{name}/conv", f"{name}/mul"),
        node(f"{name}/mul_2", "Mul", f"{name}/mean", f"{name}/mul"),
        node(f"{name}/sub", "Sub", f"{name}/beta", f"{name}/mul_2"),
        node(f"{name}/add_1", "AddV2", f"{name}/mul_1", f"{name}/sub"), node(f"{name}/relu", "Relu", f"{name}/add_1"),
    ]


def network():
    return [placeholder("x", (None, 8, 8, 3)), *keras_block("x", "one", 3, 5), *keras_block("one/relu", "two", 5, 4),
            node("y", "Identity", "two/relu")]


def test_a_network_of_keras_is_convolutions_with_biases():
    found = compared(network(), *PASSES, fetches=("two/relu",))
    assert ops(found) == {"Conv2D": 2, "BiasAdd": 2, "Relu": 2}
    assert [each.name for each in found if each.op == "BiasAdd"] == ["one/add_1", "two/add_1"]


def test_new_nodes_ask_for_the_place_of_those_that_they_stand_for():
    nodes = [each.replace(device="CPU:0", attrs={"_class": [b"loc:@one/conv"]}) if each.op != "Placeholder" else each
             for each in network()]
    found = compared(nodes, *PASSES)
    assert ops(found) == {"Conv2D": 2, "BiasAdd": 2, "Relu": 2, "Identity": 1}
    assert {each.device for each in found if each.op != "Placeholder"} == {"CPU:0"}
    assert all(each.attrs["_class"] == (b"loc:@one/conv",) for each in found if each.op == "BiasAdd")


@pytest.mark.parametrize("fallback", ["error", "warn"])
def test_a_device_without_kernels_for_new_nodes_runs_the_graph_as_it_was(fallback):
    nodes = [placeholder("x", (1, 3)), const("w", numbers(3, 4)), node("l", "MatMul", "x", "w"),
             *scaling("s", "l", "Mul", (1, 4), 1), *scaling("y", "s", "AddV2", (1, 4), 1)]
    nodes = [each.replace(device="EXAMPLE:0") if each.inputs else each for each in nodes]
    ours = heald.Session(graph(*nodes), {"placement": {"fallback": fallback}})
    assert ops(optimized(nodes, *PASSES)) == {"MatMul": 1, "BiasAdd": 1}  # EXAMPLE has no BiasAdd
    np.testing.assert_allclose(ours.run("y", {"x": numbers(1, 3)}), session(nodes).run("y", {"x": numbers(1, 3)}))
    assert {row.device for row in ours.placement().values()} == {"EXAMPLE:0", ""}
    assert ours.prepare("y", ["x"]).program.requires == ("EXAMPLE:0",)


def test_placement_tells_of_the_nodes_that_the_graph_has():
    ours = session(network(), *PASSES)
    ours.run("y", {"x": numbers(1, 8, 8, 3)})
    row = ours.placement()["one/add_1"]
    assert (row.op, row.kernel.op, len(ours.placement())) == ("AddV2", "AddV2", len(network()))


def test_errors_name_nodes_that_the_graph_has():
    nodes = network()
    names = {each.name for each in nodes}
    with pytest.raises(InvalidArgument) as caught:
        session([placeholder("x"), *nodes[1:]], *PASSES).run("y", {"x": numbers(1, 8, 8, 2)})
    assert caught.value.node in names


def test_a_graph_that_cannot_be_simplified_stays_the_same_object():
    nodes = [placeholder("x", (2,)), node("y", "Neg", "x")]
    (_, before), *rest = session(nodes, *PASSES).optimized(["y"], ["x"])
    in_order = ["constants", "identities", "activations", "batch-norm", "cells", "pads", "scales", "sequences",
                "duplicates", "pools", "reshapes", "strides"]
    assert [name for name, _ in rest] == in_order
    assert all(found is before for _, found in rest)


# duplicates


def twins():
    """Two chains of two nodes over x, and what adds them up."""
    return [placeholder("x", (1, 4, 4, 2)), node("a", "Relu", "x"), node("b", "Relu", "x"), pool("c", "a"),
            pool("d", "b"), node("y", "AddV2", "c", "d")]


def pool(name, x):
    return node(name, "MaxPool", x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")


def test_of_nodes_that_do_the_same_to_the_same_tensors_one_stays():
    found = compared(twins(), "duplicates")
    assert ops(found) == {"Relu": 1, "MaxPool": 1, "AddV2": 1}
    assert [str(source) for source in found["y"].inputs] == ["c", "c"]


@pytest.mark.parametrize(("known", "relus"), [("a", 1), ("b", 2)])
def test_a_duplicate_that_somebody_knows_stays(known, relus):
    assert ops(compared(twins(), "duplicates", fetches=("y", known)))["Relu"] == relus


DIFFERENT = {
    "op": [node("a", "Relu", "x"), node("b", "Elu", "x")],
    "attributes": [node("a", "LeakyRelu", "x", alpha=0.5), node("b", "LeakyRelu", "x", alpha=0.25)],
    "inputs": [node("z", "Neg", "x"), node("a", "Relu", "x"), node("b", "Relu", "z")],
    "order of inputs": [const("c", 3), node("a", "Sub", "x", "c"), node("b", "Sub", "c", "x")],
    "place": [node("a", "Relu", "x"), node("b", "Relu", "x", device="EXAMPLE:0")],
    "what is waited for": [node("a", "Relu", "x"), Node("w", "Assert", ["yes", "x"], attrs={"T": [FLOAT]}),
                           const("yes", True, np.bool_), node("b", "Relu", "x").replace(controls=["w"])],
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_nodes_that_differ_are_no_duplicates(case):
    nodes = [placeholder("x", (3, 2)), *DIFFERENT[case], node("y", "AddV2", "a", "b")]
    found = compared(nodes, "duplicates")
    assert {"a", "b"} <= found.nodes.keys()


def test_many_nodes_that_differ_are_not_compared_with_each_other(monkeypatch):
    compared_pairs, equal = [], TensorValue.__eq__
    nodes = [node(f"n{i}", "Exp", "x", _number=np.array(i)) for i in range(200)]
    whole = graph(placeholder("x", (2,)), *nodes, node("y", "AddN", *(each.name for each in nodes), N=len(nodes)))
    with heald.Session(whole, {"placement": {"fallback": "allow"}}) as running:
        monkeypatch.setattr(TensorValue, "__eq__", lambda a, b: compared_pairs.append((a, b)) or equal(a, b))
        *_, (_, found) = running.optimized(["y"], ["x"])
    assert ops(found)["Exp"] == len(nodes)
    assert len(compared_pairs) <= len(nodes)


def test_random_numbers_are_drawn_by_each_for_itself():
    nodes = [vector("shape", [64]), *(Node(name, "RandomUniform", ["shape"], attrs={"T": INT, "dtype": FLOAT})
                                      for name in ("a", "b")), node("y", "Sub", "a", "b")]
    assert session(nodes, *PASSES).run("y").any()


def test_what_is_read_of_a_variable_before_and_after_it_is_written_differs():
    nodes = [Node("v", "VariableV2", attrs={"dtype": FLOAT, "shape": ShapeAttr(())}), const("one", 1),
             node("begin", "Assign", "v", "one"), node("a", "Neg", "v"),
             node("write", "AssignAdd", "v", "one").replace(controls=["a"]),
             node("b", "Neg", "v").replace(controls=["write"]), node("y", "Sub", "a", "b")]
    found = optimized(nodes, *PASSES, feeds=())
    assert ops(found)["Neg"] == 2


# any graph


class Drawn:
    """A graph being drawn: nodes one behind the other, some of which others know too."""

    def __init__(self, draw, dtype, data_format):
        self.draw, self.dtype, self.data_format = draw, np.dtype(dtype), data_format
        self.type = dtypes.of_numpy(self.dtype)
        self.shape = (1, 4, 3, 2) if data_format == "NHWC" else (1, 2, 4, 3)
        self.nodes = [placeholder("x", (None, *self.shape[1:]), self.type)]
        self.last, self.fetches, self.feeds = "x", [], ["x"]

    @property
    def axis(self):
        return self.data_format.index("C")

    @property
    def channels(self):
        return self.shape[self.axis]

    def constant(self, *shape):
        """A constant, or nodes that make one."""
        name = f"c{len(self.nodes)}"
        values = np.random.default_rng(len(self.nodes)).uniform(0.5, 1.5, shape) * self.draw(st.sampled_from([1, -1]))
        if self.draw(st.booleans()):
            self.nodes.append(const(name, values, self.dtype))
            return name
        self.nodes += [const(f"{name}/of", -values, self.dtype), node(name, "Neg", f"{name}/of", T=self.type)]
        return name

    def add(self, op, *inputs, shape=None, **attrs):
        name = f"n{len(self.nodes)}"
        controls = [self.nodes[0].name] if self.draw(st.integers(0, 19)) == 0 else []
        device = "CPU:0" if self.draw(st.integers(0, 9)) == 0 else ""
        attrs = {"T": self.type} | attrs if op != "Cast" else attrs
        self.nodes.append(Node(name, op, inputs, controls=controls, device=device, attrs=attrs))
        self.last, self.shape = name, self.shape if shape is None else shape
        known = self.draw(st.integers(0, 11))
        if known == 0:
            self.fetches.append(name)
        elif known == 1:
            self.nodes.append(node(f"{name}/aside", "Neg", name, T=self.type))
            self.fetches.append(f"{name}/aside")

    def layer(self):
        op = self.draw(st.sampled_from(["Conv2D", "DepthwiseConv2dNative"]))
        high, wide = (self.shape[i] for i in range(4) if i not in (0, self.axis))
        taps, many = (min(2, high), min(2, wide)), self.draw(st.integers(1, 3))
        weights = self.constant(*taps, self.channels, many)
        padding = self.draw(st.sampled_from(["VALID", "SAME"]))
        sides = (high, wide) if padding == "SAME" else (high - taps[0] + 1, wide - taps[1] + 1)
        channels = many if op == "Conv2D" else many * self.channels
        shape = (1, *sides, channels) if self.data_format == "NHWC" else (1, channels, *sides)
        self.add(op, self.last, weights, shape=shape, strides=[1] * 4, padding=padding, data_format=self.data_format)

    def pixels(self):
        """A convolution of single pixels that goes two of them at a time, where there are any to step over."""
        high, wide = (self.shape[i] for i in range(4) if i not in (0, self.axis))
        many, step = self.draw(st.integers(1, 3)), [1, 2, 2, 1] if self.data_format == "NHWC" else [1, 1, 2, 2]
        sides = (high + 1) // 2, (wide + 1) // 2
        shape = (1, *sides, many) if self.data_format == "NHWC" else (1, many, *sides)
        self.add("Conv2D", self.last, self.constant(1, 1, self.channels, many), shape=shape, strides=step,
                 padding=self.draw(st.sampled_from(["VALID", "SAME"])), data_format=self.data_format)

    def bias(self):
        self.add("BiasAdd", self.last, self.constant(self.channels), data_format=self.data_format)

    def norm(self):
        if self.dtype == np.float64:
            return
        name = f"p{len(self.nodes)}"
        for i, parameter in enumerate("somv"):
            self.nodes.append(const(f"{name}{parameter}", np.abs(numbers(self.channels, seed=i)) / 2 + 0.5))
        self.add("FusedBatchNormV3", self.last, *(f"{name}{parameter}" for parameter in "somv"), U=FLOAT,
                 epsilon=1e-3, is_training=False, data_format=self.data_format)

    def scaling(self):
        op, position = self.draw(st.sampled_from([
            ("Mul", 0), ("Mul", 1), ("AddV2", 0), ("AddV2", 1), ("Sub", 0), ("Sub", 1), ("RealDiv", 1)]))
        each = tuple(self.channels if i == self.axis else 1 for i in range(4))
        places = tuple(n if i == 2 else 1 for i, n in enumerate(self.shape))
        constant = self.constant(*self.draw(st.sampled_from([(), (1,), each, each[1:], each[self.axis:], places])))
        self.add(op, *([self.last, constant] if position else [constant, self.last]))

    def pad(self):
        rows = [[0, 0] if i in (0, self.axis) else [self.draw(st.integers(0, 1)), 1] for i in range(4)]
        self.nodes.append(vector(f"pads{len(self.nodes)}", rows))
        shape = tuple(n + sum(row) for n, row in zip(self.shape, rows, strict=True))
        self.add("Pad", self.last, self.nodes[-1].name, shape=shape, Tpaddings=INT)

    def same(self):
        op = self.draw(st.sampled_from(["Identity", "StopGradient", "Relu", "Cast", "Reshape", "Transpose"]))
        if op in ("Identity", "StopGradient", "Relu"):
            self.add(op, self.last)
        elif op == "Cast":
            self.add(op, self.last, SrcT=self.type, DstT=self.type)
        else:
            flat, order = [-1, prod(self.shape[1:])], [0, 2, 1, 3]
            there, again = (flat, [-1, *self.shape[1:]]) if op == "Reshape" else (order, order)
            for values in (there, again):
                self.nodes.append(vector(f"to{len(self.nodes)}", values))
                self.add(op, self.last, self.nodes[-1].name, **{"Tshape" if op == "Reshape" else "Tperm": INT})

    def twice(self):
        """The last node once more, and the sum of both."""
        last = next(each for each in self.nodes if each.name == self.last)
        if last.op != "Placeholder":
            self.add(last.op, *map(str, last.inputs), **last.attrs)
            self.add("AddV2", last.name, self.last)


BLOCKS = (Drawn.layer, Drawn.layer, Drawn.pixels, Drawn.bias, Drawn.norm, Drawn.scaling, Drawn.scaling, Drawn.pad,
          Drawn.same, Drawn.twice)
TOLERANCE = {"float16": 3e-2, "float32": 2e-5, "float64": 1e-13}


@settings(max_examples=25)
@given(st.data())
def test_any_graph_computes_the_same_with_each_pass_and_with_all(data):
    dtype = data.draw(st.sampled_from([np.float32, np.float32, np.float64, np.float16]))
    drawn = Drawn(data.draw, dtype, data.draw(st.sampled_from(["NHWC", "NCHW"])))
    for block in data.draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=7)):
        block(drawn)
    drawn.add("Neg", drawn.last)
    fetches = [*dict.fromkeys([*drawn.fetches, drawn.last])]
    x = numbers(*drawn.nodes[0].attrs["shape"][1:], dtype=dtype)[None]
    wanted = session(drawn.nodes).run(fetches, {"x": x})
    largest = max(np.abs(each.astype(np.float64)).max() for each in wanted)
    for passes in (*((name,) for name in PASSES), PASSES):
        for a, b in zip(wanted, session(drawn.nodes, *passes).run(fetches, {"x": x}), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=0,
                                       atol=TOLERANCE[np.dtype(dtype).name] * max(1.0, largest), err_msg=str(passes))


# reshapes


def gather(name, source, places):
    return Node(name, "GatherV2", [source, places, "zero"], attrs={"Tparams": INT, "Tindices": INT, "Taxis": INT})


def dense(x):
    """Keras' Dense and tf.tensordot: rows of all axes but the last, times weights, with those axes back again."""
    return [
        vector("free", [0, 1]), vector("axes", [2]), vector("first", [0]), const("zero", 0, np.int32),
        vector("units", [5]), const("w", numbers(4, 5, seed=1)),
        node("shape", "Shape", x, out_type=INT), gather("lengths", "shape", "free"), gather("depth", "shape", "axes"),
        node("rows", "Prod", "lengths", "first", T=INT), node("columns", "Prod", "depth", "first", T=INT),
        node("stack", "Pack", "rows", "columns", axis=0, N=2, T=INT),
        node("flat", "Reshape", x, "stack"),
        node("product", "MatMul", "flat", "w", transpose_a=False, transpose_b=False),
        node("dims", "ConcatV2", "lengths", "units", "zero", N=2, T=INT), node("y", "Reshape", "product", "dims")]


@pytest.mark.parametrize("shape", [(None, 3, 4), (2, 3, 4), (2, None, 4)])
def test_rows_that_are_put_together_and_taken_apart_again_are_one_product(shape):
    found = compared([placeholder("x", shape), *dense("x")], "constants", "reshapes")
    assert ops(found) == {"BatchMatMulV2": 1}
    assert found["y"].op == "BatchMatMulV2"


def test_a_product_of_rows_with_turned_weights_and_shapes_that_are_constants():
    nodes = [placeholder("x", (None, 3, 4)), vector("rows", [-1, 4]), vector("apart", [-1, 3, 5]),
             const("w", numbers(5, 4)), node("flat", "Reshape", "x", "rows"),
             node("product", "MatMul", "flat", "w", transpose_a=False, transpose_b=True),
             node("y", "Reshape", "product", "apart")]
    assert ops(compared(nodes, "reshapes")) == {"BatchMatMulV2": 1}


@pytest.mark.parametrize("changed", [
    {"free": vector("free", [1, 0])}, {"flat": node("flat", "Reshape", "x", "given")},
    {"units": vector("units", [-1])}, {"y": node("y", "Reshape", "product", "given")},
    {"product": node("product", "MatMul", "flat", "w", transpose_a=True, transpose_b=False)},
], ids=str)
def test_rows_of_something_else_are_left_as_they_are(changed):
    given = placeholder("given", (None,), INT)
    nodes = [changed.get(each.name, each) for each in [placeholder("x", (None, 3, 4)), given, *dense("x")]]
    *_, (_, found) = session(nodes, "constants", "reshapes").optimized(["y"], ["x", "given"])
    assert "BatchMatMulV2" not in ops(found)


def test_rows_that_are_fetched_stay():
    nodes = [placeholder("x", (None, 3, 4)), *dense("x")]
    found = compared(nodes, "constants", "reshapes", fetches=("product", "y"))
    assert ops(found)["MatMul"] == 1


def test_products_of_no_rows_have_none():
    nodes = [placeholder("x", (None, 3, 4)), *dense("x")]
    assert session(nodes, "constants", "reshapes").run("y", {"x": numbers(0, 3, 4)}).shape == (0, 3, 5)


@pytest.mark.parametrize(("op", "number", "shape"), [
    ("AddV2", 1, (2, 3)), ("AddV2", 0, (1, 2, 3)), ("Mul", 1, (2, 3)), ("Sub", 0, (2, 3)), ("RealDiv", 1, (2, 3))])
def test_what_is_done_with_a_constant_for_each_channel_goes_before_they_are_taken_apart(op, number, shape):
    inputs = ["apart", "c"] if number else ["c", "apart"]
    nodes = [placeholder("x", (None, 5, 6)), vector("shape", [-1, 5, 2, 3]), node("apart", "Reshape", "x", "shape"),
             const("c", numbers(*shape) + 3), node("y", op, *inputs)]
    found = compared(nodes, "reshapes")
    assert (found["y"].op, ops(found)) == ("Reshape", {op: 1, "Reshape": 1})


@pytest.mark.parametrize(("shape", "values", "more"), [
    ([-1, 5, 2, 3], (3,), ()), ([-1, 5, 2, 3], (5, 2, 3), ()), ([-1, 2, 3], (5, 2, 3), ()),
    ([-1, 5, 2, 3], (1, 1, 1, 2, 3), ()), ([-1, 5, 2, 3], (2, 3), ("apart",)), ([-1, 3, 2, 5], (2, 5), ()),
], ids=str)
def test_what_is_done_with_other_constants_stays_behind_a_reshape(shape, values, more):
    nodes = [placeholder("x", (None, 5, 6)), vector("shape", shape), node("apart", "Reshape", "x", "shape"),
             const("c", numbers(*values)), node("y", "AddV2", "apart", "c")]
    assert compared(nodes, "reshapes", fetches=("y", *more), feed={"x": numbers(1, 5, 6)})["y"].op == "AddV2"


LENGTHS = [[], [1], [1, 1], [1, 2, 2], [1, 2, 2, 1, 1]]


@pytest.mark.parametrize("strides", LENGTHS, ids=len)
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool"])
def test_strides_of_a_wrong_number_are_refused_by_the_metadata_function_not_by_a_pass(op, strides):
    """With every pass, those of the pack for oneDNN included."""
    taps = {"ksize": strides} if op.endswith("Pool") else {"dilations": strides}
    padded = [placeholder("x", (1, 4, 4, 2)), const("p", [[0, 0], [1, 1], [1, 1], [0, 0]], np.int32),
              node("r", "Relu", "x"), node("pad", "Pad", "r", "p", Tpaddings=INT)]
    inputs = ["pad"] if op.endswith("Pool") else ["pad", "w"]
    nodes = [*padded, const("w", numbers(1, 1, 2, 2)), node("y", op, *inputs, strides=strides, padding="VALID", **taps),
             node("z", "Conv2D", "y", "w", strides=[1, 1, 1, 1], padding="SAME")]
    with pytest.raises(InvalidArgument, match=r"strides|ksize|dilations"):
        heald.Session(graph(*nodes)).run("z", {"x": np.ones((1, 4, 4, 2), np.float32)})


SIX, ZERO, PART, UNIT = const("six", 6), const("zero", 0), const("part", 0.25), const("one", 1)
ACTIVATIONS = {
    "Relu6 of a clip": ("Relu6", [SIX, ZERO, node("a", "Maximum", "x", "zero"), node("y", "Minimum", "a", "six")]),
    "Relu6, top first": ("Relu6", [SIX, ZERO, node("a", "Minimum", "six", "x"), node("y", "Maximum", "a", "zero")]),
    "Relu6 of a Relu": ("Relu6", [SIX, node("a", "Relu", "x"), node("y", "Minimum", "a", "six")]),
    "Relu": ("Relu", [ZERO, node("y", "Maximum", "zero", "x")]),
    "LeakyRelu": ("LeakyRelu", [PART, node("a", "Mul", "part", "x"), node("y", "Maximum", "x", "a")]),
    "SquaredDifference": ("SquaredDifference", [node("r", "Relu", "x"), node("a", "Sub", "x", "r"),
                                                node("y", "Square", "a")]),
    "Rsqrt": ("Rsqrt", [UNIT, node("e", "Exp", "x"), node("a", "Sqrt", "e"), node("y", "RealDiv", "one", "a")]),
}


@pytest.mark.parametrize("case", sorted(ACTIVATIONS))
def test_the_nodes_of_an_activation_become_one(case):
    op, nodes = ACTIVATIONS[case]
    found = compared([placeholder("x", (3, 5)), *nodes], "activations")
    assert found["y"].op == op
    assert "a" not in found


def test_a_clip_of_integers_and_one_whose_middle_is_fetched_stay():
    nodes = [placeholder("x", (3,)), SIX, ZERO, node("a", "Maximum", "x", "zero"), node("y", "Minimum", "a", "six")]
    assert ops(optimized(nodes, "activations", fetches=("y", "a"))) == {"Relu": 1, "Relu6": 1} or ops(
        optimized(nodes, "activations", fetches=("y", "a"))) == {"Relu": 1, "Minimum": 1}
    whole = [placeholder("x", (3,), INT), const("six", 6, np.int32), node("y", "Minimum", "x", "six", T=INT)]
    assert ops(optimized(whole, "activations")) == {"Minimum": 1}
