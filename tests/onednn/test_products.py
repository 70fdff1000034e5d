"""Convolutions and matrix products, alone and with their following ops, next to NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import ALONE, FUSES_ALL, NORM, STATISTICS, compare, conv, numbers, statistics, windows
from heald.api import dtypes
from heald.graphs.graph.graph import Node
from heald_onednn import primitives, single_thread
from hypothesis import assume, given, settings
from hypothesis import strategies as st

FAST = settings(max_examples=40, deadline=None)
few = st.integers(1, 4)


@pytest.fixture(autouse=True, scope="module")
def by_all_threads() -> Iterator[None]:
    """As large products are done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_thread, "LARGEST_WORK_ELEMENTS", 0)
        yield


@given(windows(), st.tuples(few, few), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 2),
       st.integers(1, 2), st.sampled_from([1, 3, 8]), st.sampled_from([1, 5, 16]), st.sampled_from([1, 1, 2]))
@FAST
def test_convolutions(window: Any, taps: Any, strides: Any, dilation: int, batch: int, depth: int, filters: int,
                      groups: int) -> None:
    size = window.pop("height"), window.pop("width")
    attrs = window | {"strides": [1, *strides, 1], "dilations": [1, dilation, dilation, 1]}
    assume(attrs["padding"] != "VALID" or all(n > (t - 1) * dilation for n, t in zip(size, taps, strict=True)))
    assume(attrs["padding"] != "EXPLICIT" or all(
        n + sum(attrs["explicit_paddings"][2 + 2 * i : 4 + 2 * i]) > (t - 1) * dilation
        for i, (n, t) in enumerate(zip(size, taps, strict=True))))
    weights = const("w", numbers(*taps, depth, filters * groups))
    done = compare([placeholder("x"), weights, conv("y", "x", "w", **attrs)],
                   {"x": numbers(batch, *size, depth * groups)}, "y")
    assert done.kernels == ["onednn.Conv2D"]


@given(windows(), st.tuples(few, few), st.integers(1, 3), st.integers(1, 2), st.sampled_from([1, 3, 16]),
       st.integers(1, 3))
@FAST
def test_depthwise_convolutions(window: Any, taps: Any, stride: int, dilation: int, channels: int,
                                multiplier: int) -> None:
    size = window.pop("height"), window.pop("width")
    attrs = window | {"strides": [1, stride, stride, 1], "dilations": [1, dilation, dilation, 1]}
    assume(attrs["padding"] != "VALID" or all(n > (t - 1) * dilation for n, t in zip(size, taps, strict=True)))
    assume(attrs["padding"] != "EXPLICIT" or all(
        n + sum(attrs["explicit_paddings"][2 + 2 * i : 4 + 2 * i]) > (t - 1) * dilation
        for i, (n, t) in enumerate(zip(size, taps, strict=True))))
    done = compare([placeholder("x"), const("w", numbers(*taps, channels, multiplier)),
                    conv("y", "x", "w", op="DepthwiseConv2dNative", **attrs)],
                   {"x": numbers(1, *size, channels)}, "y")
    assert done.kernels == ["onednn.DepthwiseConv2dNative"]


@given(windows(), st.tuples(few, few), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 2),
       st.sampled_from([1, 3, 8]), st.sampled_from([1, 5, 16]), st.sampled_from([1, 1, 2]))
@FAST
def test_transposed_convolutions(window: Any, taps: Any, strides: Any, dilation: int, depth: int, channels: int,
                                 groups: int) -> None:
    size = window.pop("height"), window.pop("width")
    attrs = window | {"strides": [1, *strides, 1], "dilations": [1, dilation, dilation, 1]}
    pads = attrs["explicit_paddings"][2:6] or [0] * 4
    reach = [(t - 1) * dilation + 1 for t in taps]
    room = [n + a + b - r for n, a, b, r in zip(size, pads[::2], pads[1::2], reach, strict=True)]
    assume(attrs["padding"] == "SAME" or min(room) >= 0)
    places = ([-(-n // s) for n, s in zip(size, strides, strict=True)] if attrs["padding"] == "SAME" else
              [n // s + 1 for n, s in zip(room, strides, strict=True)])
    nodes = [placeholder("x"), const("sizes", [2, *size, depth * groups], np.int32),
             const("w", numbers(*taps, depth, channels * groups)),
             conv("y", "sizes", "w", "x", op="Conv2DBackpropInput", use_cudnn_on_gpu=True, **attrs)]
    done = compare(nodes, {"x": numbers(2, *places, channels * groups)}, "y")
    assert done.kernels == [f"{'onednn' if groups == 1 else 'cpu'}.Conv2DBackpropInput"]


@pytest.mark.parametrize("batch", [1, 3])
def test_a_transposed_convolution_of_any_batch_is_fused_with_its_following_ops(batch: int) -> None:
    nodes = [placeholder("x"), node("shape", "Shape", "x", out_type=dtypes.int32),
             *(const(name, [i], np.int32) for i, name in enumerate(("from", "to"))),
             node("batch", "StridedSlice", "shape", "from", "to", "to", T=dtypes.int32, Index=dtypes.int32,
                  begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=1),
             *(const(name, n, np.int32) for name, n in (("side", 14), ("filters", 8))),
             node("sizes", "Pack", "batch", "side", "side", "filters", N=4, axis=0, T=dtypes.int32),
             const("w", numbers(3, 3, 8, 16)), const("b", numbers(8)),
             conv("up", "sizes", "w", "x", op="Conv2DBackpropInput", use_cudnn_on_gpu=True, strides=[1, 2, 2, 1]),
             node("a", "BiasAdd", "up", "b", data_format="NHWC"), node("y", "Relu", "a")]
    assert "onednn.Product" in compare(nodes, {"x": numbers(batch, 7, 7, 16)}, "y").kernels


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (1, 2)])  # strides and dilations
def test_convolutions_of_volumes(padding: str, steps: tuple[int, int]) -> None:
    stride, dilation = ([1, n, n, n, 1] for n in steps)
    attrs = {"strides": stride, "dilations": dilation, "padding": padding, "data_format": "NDHWC"}
    nodes = [placeholder("x"), const("w", numbers(2, 3, 3, 4, 8)), const("b", numbers(8)),
             node("c", "Conv3D", "x", "w", **attrs), node("a", "BiasAdd", "c", "b", data_format="NHWC"),
             node("y", "Relu", "a")]
    assert compare(nodes, {"x": numbers(2, 6, 9, 8, 4)}, "y").kernels == ["onednn.Product"]
    nodes[3:] = [const("sizes", [2, 6, 9, 8, 4], np.int32),
                 node("y", "Conv3DBackpropInputV2", "sizes", "w", "x", Tshape=dtypes.int32, **attrs)]
    lengths = {"SAME": lambda n, taps: -(-n // steps[0]),
               "VALID": lambda n, taps: (n - (taps - 1) * steps[1] - 1) // steps[0] + 1}[padding]
    x = numbers(2, *(lengths(n, taps) for n, taps in zip((6, 9, 8), (2, 3, 3), strict=True)), 8)
    assert compare(nodes, {"x": x}, "y").kernels == ["onednn.Conv3DBackpropInputV2"]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("transpose_a", [True, False])
@pytest.mark.parametrize("transpose_b", [True, False])
def test_matrix_products(constant: bool, transpose_a: bool, transpose_b: bool) -> None:
    x = numbers(70, 45) if transpose_a else numbers(45, 70)
    y = numbers(33, 70) if transpose_b else numbers(70, 33)
    second = const("y", y) if constant else placeholder("y")
    done = compare([placeholder("x"), second, node("z", "MatMul", "x", "y", transpose_a=transpose_a,
                                                   transpose_b=transpose_b)],
                   {"x": x} | ({} if constant else {"y": y}), "z", close=1e-5)
    assert done.kernels == ["onednn.MatMul"]


@pytest.mark.parametrize(("left", "right", "adjoint"), [
    ((3, 40, 50), (3, 50, 20), False), ((2, 3, 40, 50), (3, 20, 50), True), ((40, 50), (4, 50, 20), False),
    ((4, 40, 50), (50, 20), False),
])
def test_batches_of_matrix_products(left: Any, right: Any, adjoint: bool) -> None:
    nodes = [placeholder("x"), placeholder("y"), node("z", "BatchMatMulV2", "x", "y", adj_x=False, adj_y=adjoint)]
    done = compare(nodes, {"x": numbers(*left), "y": numbers(*right)}, "z", close=1e-5)
    assert done.kernels == ["onednn.BatchMatMulV2"]
    nodes[1] = const("y", numbers(*right))
    assert compare(nodes, {"x": numbers(*left)}, "z", close=1e-5).kernels == ["onednn.BatchMatMulV2"]


def of_one_matrix(matrix: tuple[int, ...], beside: tuple[int, ...], adjoint: bool = False) -> list[str]:
    nodes = [placeholder("x"), const("w", numbers(*matrix)), placeholder("a"),
             node("p", "BatchMatMulV2", "x", "w", adj_x=False, adj_y=adjoint), node("s", "AddV2", "p", "a"),
             node("r", "Relu", "s"), node("z", "AddV2", "r", "x")]
    return compare(nodes, {"x": numbers(2, 6, 9, 32), "a": numbers(*beside)}, "z", close=1e-5).kernels


@pytest.mark.parametrize("beside", [(2, 6, 9, 32), (32,), (), (1, 1, 1, 32), (2, 1, 1, 32)])
@pytest.mark.parametrize("matrix", [(32, 32), (1, 1, 32, 32)])
@pytest.mark.parametrize("adjoint", [False, True])
def test_rows_that_meet_one_matrix_and_their_summands_are_one_call(matrix: Any, beside: Any, adjoint: bool) -> None:
    assert of_one_matrix(matrix, beside, adjoint) == ["onednn.Product"]


@pytest.mark.parametrize("beside", [(6, 9, 32), (9, 32), (1, 6, 1, 32), (2, 6, 9, 1), (1, 1, 9, 1)])
def test_a_summand_for_some_rows_is_added_apart(beside: Any) -> None:
    assert of_one_matrix((32, 32), beside)[0] == "onednn.BatchMatMulV2"


@pytest.mark.parametrize("adj_x", [False, True])
def test_matrices_turned_round_meet_one_matrix_each(adj_x: bool) -> None:
    nodes = [placeholder("x"), placeholder("w"), node("z", "BatchMatMulV2", "x", "w", adj_x=adj_x, adj_y=False)]
    feeds = {"x": numbers(3, 5, 24, 24), "w": numbers(24, 40)}
    assert compare(nodes, feeds, "z", close=1e-5).kernels == ["onednn.BatchMatMulV2"]


def test_a_batch_of_matrix_products_is_fused_with_its_following_ops() -> None:
    nodes = [placeholder("x"), placeholder("y"), node("z", "BatchMatMulV2", "x", "y", adj_x=False, adj_y=False),
             placeholder("other"), const("vector", numbers(20)), node("a", "AddV2", "z", "vector"),
             node("b", "Mul", "a", "other"), node("c", "Mul", "b", "vector"), node("d", "Relu", "c")]
    feeds = {"x": numbers(2, 3, 40, 50), "y": numbers(2, 3, 50, 20), "other": numbers(2, 3, 40, 20)}
    assert compare(nodes, feeds, "d", close=1e-5).kernels == ["onednn.Product"]
    nodes[1] = const("y", numbers(50, 20))
    del feeds["y"]
    assert compare(nodes, feeds, "d", close=1e-5).kernels == ["onednn.Product"]


def test_small_products_are_left_to_numpy() -> None:
    done = compare([placeholder("x"), const("y", numbers(4, 4)),
                    node("z", "MatMul", "x", "y", transpose_a=False, transpose_b=False)], {"x": numbers(2, 4)}, "z")
    assert done.kernels == ["cpu.MatMul"]


HEADS = {  # the head, its weights, its input
    "Conv2D": (conv("y", "x", "w"), (3, 3, 5, 16), (2, 6, 6, 5)),
    "DepthwiseConv2dNative": (conv("y", "x", "w", op="DepthwiseConv2dNative"), (3, 3, 16, 1), (1, 6, 6, 16)),
    "MatMul": (node("y", "MatMul", "x", "w", transpose_a=False, transpose_b=False), (70, 16), (60, 70)),
}
AFTER = {  # the nodes after a product: they read {v} and give {n}
    "bias": [("BiasAdd", "{v}", "vector")], "add": [("AddV2", "{v}", "vector")], "mul": [("Mul", "vector", "{v}")],
    "sub": [("Sub", "{v}", "vector")], "turned": [("Sub", "vector", "{v}")], "number": [("Mul", "{v}", "number")],
    "residual": [("AddV2", "other", "{v}")], "product": [("Mul", "{v}", "other")],
    "less": [("Sub", "other", "{v}")], "relu": [("Relu", "{v}")], "relu6": [("Relu6", "{v}")], "elu": [("Elu", "{v}")],
    "leaky": [("LeakyRelu", "{v}")], "sigmoid": [("Sigmoid", "{v}")], "tanh": [("Tanh", "{v}")],
    "swish": [("Sigmoid", "{v}"), ("Mul", "{v}", "{v}s0")],
    "scaled swish": [("Mul", "{v}", "number"), ("Sigmoid", "{v}s0"), ("Mul", "{v}s1", "{v}")],
}


@given(st.sampled_from(sorted(HEADS)), st.lists(st.sampled_from(sorted(AFTER)), min_size=1, max_size=5))
@settings(max_examples=80, deadline=None)
def test_a_product_and_its_following_ops_are_one_call(head: str, after: list[str]) -> None:
    product, weights, shape = HEADS[head]
    nodes = [placeholder("x"), const("w", numbers(*weights)), product, placeholder("other"), const("number", 0.5),
             const("vector", numbers(16))]
    value = "y"
    for name in after:
        for i, (op, *inputs) in enumerate(AFTER[name]):
            last = i == len(AFTER[name]) - 1
            nodes.append(node(f"{value}n" if last else f"{value}s{i}", op, *(text.format(v=value) for text in inputs),
                              **({"alpha": 0.3} if op == "LeakyRelu" else {}),
                              **({"data_format": "NHWC"} if op == "BiasAdd" else {})))
        value += "n"
    x = numbers(*shape)
    other = numbers(*shape[:-1], 16)
    done = compare(nodes, {"x": x, "other": other}, value, close=1e-5)
    assert done.kernels == ["onednn.Product"] or (head == "MatMul" and not FUSES_ALL)


@pytest.mark.parametrize("op", ["Maximum", "Minimum"])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("first", ["MatMul", "AddV2"])
def test_nan_wins_over_every_number(op: str, turned: bool, first: str) -> None:
    """NaN from the first product, and NaN from the other operand of the comparison."""
    attrs = {"transpose_a": False, "transpose_b": False} if first == "MatMul" else {}
    nodes = [placeholder("x"), placeholder("other"), const("w", numbers(128, 128)), node("v", first, "x", "w", **attrs),
             node("y", op, *(("other", "v") if turned else ("v", "other")))]
    x, other = numbers(128, 128), numbers(128, 128)
    x[0], other[1] = np.nan, np.nan
    done = compare(nodes, {"x": x, "other": other}, "y", close=1e-5)
    assert np.isnan(done.result[:2]).all()


def test_a_gate_on_the_channels_of_one_image() -> None:
    nodes = [placeholder("x"), const("w", numbers(1, 1, 8, 16)), conv("y", "x", "w"), placeholder("gate"),
             node("z", "Mul", "y", "gate"), node("r", "Relu", "z")]
    feeds = {"x": numbers(1, 5, 5, 8), "gate": numbers(1, 1, 1, 16)}
    assert compare(nodes, feeds, "r").kernels == ["onednn.Product"]
    feeds = {"x": numbers(3, 5, 5, 8), "gate": numbers(3, 1, 1, 16)}
    assert "onednn.Conv2D" in compare(nodes, feeds, "r").kernels


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("turned", [True, False])
def test_a_gate_before_a_convolution_of_pixels_goes_into_the_filters(batch: int, turned: bool) -> None:
    nodes = [placeholder("x"), placeholder("gate"), placeholder("other"), node("s", "Sigmoid", "gate"),
             node("g", "Mul", *(("s", "x") if turned else ("x", "s"))), const("w", numbers(1, 1, 8, 4)),
             conv("y", "g", "w"), const("v", numbers(4)), node("m", "Mul", "y", "v"), node("b", "AddV2", "m", "v"),
             node("a", "AddV2", "b", "other"), node("r", "Relu", "a")]
    feeds = {"x": numbers(batch, 8, 8, 8), "gate": numbers(batch, 1, 1, 8), "other": numbers(batch, 8, 8, 4)}
    assert compare(nodes, feeds, "r", close=1e-5).kernels == ["cpu.Sigmoid", "onednn.Product"]


@pytest.mark.parametrize(("gate", "taps", "attrs"), [
    ((2, 1, 8, 8), 1, {}), ((1, 1, 1, 8), 1, {}), ((2, 8, 8, 8), 1, {}), ((2, 1, 1, 8), 3, {}),
    ((2, 1, 1, 8), 1, {"strides": [1, 2, 2, 1]}), ((8,), 1, {}),
])
def test_another_factor_before_a_convolution_stays(gate: Any, taps: int, attrs: Any) -> None:
    nodes = [placeholder("x"), placeholder("gate"), node("g", "Mul", "x", "gate"),
             const("w", numbers(taps, taps, 8, 4)),
             conv("y", "g", "w", **attrs), node("r", "Relu", "y")]
    done = compare(nodes, {"x": numbers(2, 8, 8, 8), "gate": numbers(*gate)}, "r", close=1e-5)
    assert done.kernels == ["cpu.Mul", "onednn.Product"]


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_padding_goes_into_the_convolution(op: str) -> None:
    pads = const("pads", [[0, 0], [0, 1], [2, 0], [0, 0]], np.int32)
    nodes = [placeholder("x"), const("w", numbers(3, 3, 8, 1)), pads,
             node("p", "Pad", "x", "pads", Tpaddings=heald.api.dtypes.int32),
             conv("y", "p", "w", op=op, padding="VALID", strides=[1, 2, 2, 1]), node("z", "Relu6", "y")]
    assert compare(nodes, {"x": numbers(1, 8, 8, 8)}, "z", close=1e-5).kernels == ["onednn.Product"]
    nodes[4] = conv("y", "p", "w", op=op, padding="SAME")
    assert compare(nodes, {"x": numbers(1, 8, 8, 8)}, "z", close=1e-5).kernels == ["cpu.Pad", "onednn.Product"]
    nodes[5] = node("z", "AddV2", "p", "y")
    assert "cpu.Pad" in compare(nodes, {"x": numbers(1, 8, 8, 8)}, "z", close=1e-5).kernels


def block(name: str, x: str, added: str) -> list[Node]:
    return [conv(f"{name}c", x, "w"), node(f"{name}b", "AddV2", f"{name}c", "v"),
            node(f"{name}a", "AddV2", added, f"{name}b"), node(name, "Relu", f"{name}a")]


@pytest.mark.parametrize(("sources", "is_over"), [
    (["mn"], [True]),  # n has no other consumer
    (["nn"], []),  # n is the input of the convolution, too
    (["mn", "yn"], [False, True]),  # n is needed again
])
def test_a_sum_is_written_over_its_dead_summand(
    sources: list[str], is_over: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    overlaps: list[bool] = []
    attach = primitives.Accumulating.attach

    def note_overlap(self: primitives.Accumulating, inputs: Any, outputs: Any) -> Any:
        overlaps.append(any(np.shares_memory(outputs[0], array) for array in inputs))
        return attach(self, inputs, outputs)

    monkeypatch.setattr(primitives.Accumulating, "attach", note_overlap)
    nodes = [placeholder("x"), const("w", numbers(3, 3, 8, 8)), const("v", numbers(8)), conv("nc", "x", "w"),
             node("n", "Relu", "nc"), conv("mc", "n", "w"), node("m", "Relu", "mc")]
    for name, (x, added) in zip("yz", sources, strict=False):
        nodes += block(name, x, added)
    last = nodes[-1].name
    nodes += [conv("oc", last, "w"), node("o", "Relu", "oc")]  # so that no result is the user's
    compare(nodes, {"x": numbers(1, 9, 9, 8)}, "o", close=1e-5)
    assert (overlaps[: len(is_over)], bool(overlaps)) == (is_over, bool(is_over))


def test_batch_normalisation_goes_into_the_weights() -> None:
    nodes = [placeholder("x"), const("w", numbers(3, 3, 8, 16)), *statistics(16), conv("y", "x", "w"),
             node("n", "FusedBatchNormV3", "y", *STATISTICS, **NORM), node("z", "Relu6", "n")]
    assert compare(nodes, {"x": numbers(2, 6, 6, 8)}, "z", close=1e-5).kernels == ["onednn.Product"]


def test_two_branches_that_meet_are_a_primitive_each() -> None:
    nodes = [placeholder("x"), *(const(f"w{i}", numbers(1, 1, 8, 16)) for i in (0, 1)), const("v", numbers(16)),
             *(conv(f"y{i}", "x", f"w{i}") for i in (0, 1)), *(node(f"a{i}", "AddV2", f"y{i}", "v") for i in (0, 1)),
             node("m", "Mul", "a1", "v"), node("s", "AddV2", "a0", "m"), node("r", "Relu", "s")]
    assert compare(nodes, {"x": numbers(1, 6, 6, 8)}, "r", close=1e-5).kernels == ["onednn.Product"] * 2


def test_packed_weights_are_shared_by_links_for_several_batches() -> None:
    session = heald.Session(graph(placeholder("x", (None, 6, 6, 8)), const("w", numbers(3, 3, 8, 16)),
                                  conv("y", "x", "w")), ALONE)
    call = session.make_callable("y", ["x"])
    results = [call(np.ones((batch, 6, 6, 8), np.float32)) for batch in (1, 2, 3, 1)]
    assert all(np.allclose(r[0], results[0][0], atol=1e-5) for r in results)
