"""All passes together, over a network and over random graphs."""

from __future__ import annotations

from math import prod

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from builders.rewritten_graphs import (
    INT,
    PASSES,
    conv,
    numbers,
    op_counts,
    optimized_graph,
    rewrite_and_compare,
    scaling_nodes,
    session_with_passes,
    vector,
)
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st


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
    rewritten = rewrite_and_compare(network(), *PASSES, fetches=("two/relu",))
    assert op_counts(rewritten) == {"Conv2D": 2, "BiasAdd": 2, "Relu": 2}
    assert [graph_node.name for graph_node in rewritten if graph_node.op == "BiasAdd"] == ["one/add_1", "two/add_1"]


def test_new_nodes_ask_for_the_place_of_those_that_they_stand_for():
    nodes = [graph_node.replace(device="CPU:0", attrs={"_class": [b"loc:@one/conv"]})
             if graph_node.op != "Placeholder" else graph_node
             for graph_node in network()]
    rewritten = rewrite_and_compare(nodes, *PASSES)
    assert op_counts(rewritten) == {"Conv2D": 2, "BiasAdd": 2, "Relu": 2, "Identity": 1}
    assert {graph_node.device for graph_node in rewritten if graph_node.op != "Placeholder"} == {"CPU:0"}
    assert all(graph_node.attrs["_class"] == (b"loc:@one/conv",) for graph_node in rewritten
               if graph_node.op == "BiasAdd")


@pytest.mark.parametrize("fallback", ["error", "warn"])
def test_a_device_without_kernels_for_new_nodes_runs_the_graph_as_it_was(fallback):
    nodes = [placeholder("x", (1, 3)), const("w", numbers(3, 4)), node("l", "MatMul", "x", "w"),
             *scaling_nodes("s", "l", "Mul", (1, 4), 1), *scaling_nodes("y", "s", "AddV2", (1, 4), 1)]
    nodes = [graph_node.replace(device="EXAMPLE:0") if graph_node.inputs else graph_node for graph_node in nodes]
    ours = heald.Session(graph(*nodes), {"placement": {"fallback": fallback}})
    assert op_counts(optimized_graph(nodes, *PASSES)) == {"MatMul": 1, "BiasAdd": 1}  # EXAMPLE has no BiasAdd
    x = numbers(1, 3)
    np.testing.assert_allclose(ours.run("y", {"x": x}), session_with_passes(nodes).run("y", {"x": x}))
    assert {row.device for row in ours.placement().values()} == {"EXAMPLE:0", ""}
    assert ours.prepare("y", ["x"]).program.requires == ("EXAMPLE:0",)


def test_placement_tells_of_the_nodes_that_the_graph_has():
    ours = session_with_passes(network(), *PASSES)
    ours.run("y", {"x": numbers(1, 8, 8, 3)})
    row = ours.placement()["one/add_1"]
    assert (row.op, row.kernel.op, len(ours.placement())) == ("AddV2", "AddV2", len(network()))


def test_errors_name_nodes_that_the_graph_has():
    nodes = network()
    names = {graph_node.name for graph_node in nodes}
    with pytest.raises(InvalidArgument) as caught:
        session_with_passes([placeholder("x"), *nodes[1:]], *PASSES).run("y", {"x": numbers(1, 8, 8, 2)})
    assert caught.value.node in names


def test_a_graph_that_cannot_be_simplified_stays_the_same_object():
    nodes = [placeholder("x", (2,)), node("y", "Neg", "x")]
    (_, before), *by_pass = session_with_passes(nodes, *PASSES).graphs_by_pass(["y"], ["x"])
    in_order = ["constants", "identities", "activations", "batch-norm", "cells", "loops", "pads", "slices", "maps",
                "scales", "sequences", "duplicates", "pools", "reshapes", "strides", "invariants", "counts"]
    assert [name for name, _ in by_pass] == in_order
    assert all(rewritten is before for _, rewritten in by_pass)

LENGTHS = [[], [1], [1, 1], [1, 2, 2], [1, 2, 2, 1, 1]]


@pytest.mark.parametrize("strides", LENGTHS, ids=len)
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool"])
def test_strides_of_a_wrong_number_are_refused_by_the_metadata_function_not_by_a_pass(op, strides):
    """All passes run, including oneDNN's."""
    taps = {"ksize": strides} if op.endswith("Pool") else {"dilations": strides}
    padded = [placeholder("x", (1, 4, 4, 2)), const("p", [[0, 0], [1, 1], [1, 1], [0, 0]], np.int32),
              node("r", "Relu", "x"), node("pad", "Pad", "r", "p", Tpaddings=INT)]
    inputs = ["pad"] if op.endswith("Pool") else ["pad", "w"]
    nodes = [*padded, const("w", numbers(1, 1, 2, 2)), node("y", op, *inputs, strides=strides, padding="VALID", **taps),
             node("z", "Conv2D", "y", "w", strides=[1, 1, 1, 1], padding="SAME")]
    with pytest.raises(InvalidArgument, match=r"strides|ksize|dilations"):
        heald.Session(graph(*nodes)).run("z", {"x": np.ones((1, 4, 4, 2), np.float32)})


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
        consumer_kind = self.draw(st.integers(0, 11))
        if consumer_kind == 0:
            self.fetches.append(name)
        elif consumer_kind == 1:
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

    def bias_add(self):
        self.add("BiasAdd", self.last, self.constant(self.channels), data_format=self.data_format)

    def batch_norm(self):
        if self.dtype == np.float64:
            return
        name = f"p{len(self.nodes)}"
        for i, parameter in enumerate("somv"):
            self.nodes.append(const(f"{name}{parameter}", np.abs(numbers(self.channels, seed=i)) / 2 + 0.5))
        self.add("FusedBatchNormV3", self.last, *(f"{name}{parameter}" for parameter in "somv"), U=FLOAT,
                 epsilon=1e-3, is_training=False, data_format=self.data_format)

    def scaling_nodes(self):
        op, position = self.draw(st.sampled_from([
            ("Mul", 0), ("Mul", 1), ("AddV2", 0), ("AddV2", 1), ("Sub", 0), ("Sub", 1), ("RealDiv", 1)]))
        per_channel = tuple(self.channels if i == self.axis else 1 for i in range(4))
        places = tuple(n if i == 2 else 1 for i, n in enumerate(self.shape))
        constant = self.constant(*self.draw(st.sampled_from([(), (1,), per_channel, per_channel[1:],
                                                             per_channel[self.axis:], places])))
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
        last = next(graph_node for graph_node in self.nodes if graph_node.name == self.last)
        if last.op != "Placeholder":
            self.add(last.op, *map(str, last.inputs), **last.attrs)
            self.add("AddV2", last.name, self.last)

BLOCKS = (Drawn.layer, Drawn.layer, Drawn.pixels, Drawn.bias_add, Drawn.batch_norm, Drawn.scaling_nodes,
          Drawn.scaling_nodes, Drawn.pad,
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
    expected = session_with_passes(drawn.nodes).run(fetches, {"x": x})
    largest = max(np.abs(result.astype(np.float64)).max() for result in expected)
    for passes in (*((name,) for name in PASSES), PASSES):
        for a, b in zip(expected, session_with_passes(drawn.nodes, *passes).run(fetches, {"x": x}), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=0,
                                       atol=TOLERANCE[np.dtype(dtype).name] * max(1.0, largest), err_msg=str(passes))
