"""Kernels without weights, next to NumPy's: on arrays as large as they take."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import ALONE, AS_WRITTEN, NORM, STATISTICS, compare, numbers, statistics, windows
from harness.shared_runtimes import shared_runtime
from heald.api import dtypes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

FAST = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@given(window=windows(), taps=st.tuples(st.integers(1, 4), st.integers(1, 4)),
       strides=st.tuples(st.integers(1, 3), st.integers(1, 3)), channels=st.sampled_from([1, 5, 16]))
@FAST
def test_pooling(op: str, window: Any, taps: Any, strides: Any, channels: int) -> None:
    size = window.pop("height"), window.pop("width")
    assume(window["padding"] == "SAME" or (window["padding"] == "VALID" and size[0] >= taps[0] and size[1] >= taps[1]))
    attrs = {"ksize": [1, *taps, 1], "strides": [1, *strides, 1], "data_format": "NHWC", "padding": window["padding"]}
    if op == "MaxPool":
        attrs["explicit_paddings"] = []
    done = compare([placeholder("x"), node("y", op, "x", **attrs)], {"x": numbers(2, *size, channels)}, "y")
    assert done.kernels == [f"onednn.{op}"]


AFTER_POOLS = {
    "an activation": [node("y", "Relu", "p")],
    "Swish": [node("s", "Sigmoid", "p"), node("y", "Mul", "s", "p")],
    "bias and activation": [const("c", numbers(5)), node("b", "BiasAdd", "p", "c", data_format="NHWC"),
                            node("y", "Elu", "b")],
    "factors and shifts": [const("c", numbers(5)), const("d", numbers(5)), node("m", "Mul", "p", "c"),
                           node("y", "Sub", "d", "m")],
    "another tensor": [node("y", "AddV2", "z", "p")],
}


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("case", AFTER_POOLS)
def test_pooling_and_its_following_ops_are_one_call(op: str, case: str) -> None:
    attrs = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "data_format": "NHWC", "padding": "SAME"}
    if op == "MaxPool":
        attrs["explicit_paddings"] = []
    nodes = [placeholder("x"), placeholder("z"), node("p", op, "x", **attrs), *AFTER_POOLS[case]]
    done = compare(nodes, {"x": numbers(2, 7, 8, 5), "z": numbers(2, 4, 4, 5)}, "y")
    assert done.kernels == ["onednn.Pool"]


def test_nan_never_wins_a_window() -> None:
    x = numbers(1, 4, 4, 16)
    x[0, 1, 1] = np.nan
    x[0, 2:, 2:] = -np.inf
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "data_format": "NHWC", "padding": "VALID",
             "explicit_paddings": []}
    compare([placeholder("x"), node("y", "MaxPool", "x", **attrs)], {"x": x}, "y")


@pytest.mark.parametrize("op", ["Mean", "Sum"])
@pytest.mark.parametrize("keep", [True, False])
def test_reductions_of_whole_images(op: str, keep: bool) -> None:
    nodes = [placeholder("x"), const("axes", [-2, 1], np.int32),
             node("y", op, "x", "axes", keep_dims=keep, Tidx=dtypes.int32)]
    assert compare(nodes, {"x": numbers(2, 7, 5, 24)}, "y", close=1e-5).kernels == [f"onednn.{op}"]
    nodes[1] = const("axes", [1, 3], np.int32)
    assert compare(nodes, {"x": numbers(2, 7, 5, 24)}, "y", close=1e-5).kernels == [f"cpu.{op}"]


@pytest.mark.parametrize("shape", [(1, 1000), (3, 7), (2, 3, 40), (5,)])
def test_softmax(shape: Any) -> None:
    done = compare([placeholder("x"), node("y", "Softmax", "x")], {"x": numbers(*shape) * 20}, "y", close=1e-6)
    assert done.kernels == ["onednn.Softmax"]


def test_a_row_with_nan_is_nan() -> None:
    x = numbers(4, 40)
    x[1, 3], x[2, 5], x[3, 5] = np.nan, np.inf, -np.inf
    compare([placeholder("x"), node("y", "Softmax", "x")], {"x": x}, "y")


@pytest.mark.parametrize("constant", [True, False])
def test_batch_normalisation_by_given_statistics(constant: bool) -> None:
    feeds = {} if constant else {name: np.abs(numbers(16)) + 0.1 for name in STATISTICS}
    nodes = [placeholder("x"), *(statistics(16) if constant else map(placeholder, STATISTICS)),
             node("y", "FusedBatchNormV3", "x", *STATISTICS, **NORM)]
    for output in ("y", "y:1", "y:2", "y:3", "y:4"):
        done = compare(nodes, feeds | {"x": numbers(2, 5, 5, 16)}, output, close=1e-5)
        assert done.kernels == ["onednn.FusedBatchNormV3"]


@pytest.mark.parametrize("op", ["Elu", "Sigmoid"])
def test_functions_that_take_numpy_several_passes(op: str) -> None:
    done = compare([placeholder("x"), node("y", op, "x")], {"x": numbers(1, 40, 40, 16) * 5}, "y", close=1e-6)
    assert done.kernels == [f"onednn.{op}"]
    assert compare([placeholder("x"), node("y", op, "x")], {"x": numbers(3, 5)}, "y").kernels == [f"cpu.{op}"]


@pytest.mark.parametrize("config", [{}, {"plugin": {"onednn": {"precision": "auto"}}}])
def test_softplus_is_as_near_where_it_is_small(config: Any) -> None:
    """Behind a product, and by itself."""
    x = -np.linspace(0, 80, 10000, dtype=np.float32).reshape(100, 100)
    nodes = [placeholder("x"), const("w", np.eye(100)), node("y", "Softplus", "p"),
             node("p", "MatMul", "x", "w", transpose_a=False, transpose_b=False), node("z", "Softplus", "x")]
    with heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN | config)) as session:
        behind, alone = session.run(["y", "z"], {"x": x})
    np.testing.assert_allclose(alone, np.log1p(np.exp(x.astype(np.float64))), rtol=1e-6)
    np.testing.assert_allclose(behind, alone, rtol=0.4 if config else 1e-6)


@pytest.mark.parametrize("op", ["AddV2", "Mul", "Sub", "Maximum", "Minimum"])
@pytest.mark.parametrize(("left", "right"), [
    ((1, 40, 40, 16), (16,)), ((2, 40, 40, 16), (1, 1, 1, 16)), ((1, 40, 40, 16), (1, 40, 40, 1)),
    ((16,), (1, 40, 40, 16)), ((2, 40, 40, 16), (2, 1, 1, 16)), ((40, 1), (40, 400)),
])
def test_functions_of_two_that_broadcast(op: str, left: Any, right: Any) -> None:
    x = numbers(*left)
    x.reshape(-1)[3] = np.nan
    compare([placeholder("x"), placeholder("y"), node("z", op, "x", "y")], {"x": x, "y": numbers(*right)}, "z")


def test_a_chain_of_functions_is_one_pass() -> None:
    nodes = [placeholder("x"), const("scale", numbers(16)), const("shift", numbers(16)), node("m", "Mul", "x", "scale"),
             node("a", "AddV2", "m", "shift"), node("y", "Relu", "a")]
    assert compare(nodes, {"x": numbers(1, 40, 40, 16)}, "y").kernels == ["onednn.Chain"]
    assert compare(nodes, {"x": numbers(1, 4, 4, 16)}, "y").kernels == ["cpu.Mul", "cpu.AddV2", "cpu.Relu"]
    assert "onednn.Mul" in compare(nodes, {"x": numbers(1, 40, 40, 16)}, "y", **ALONE).kernels


def test_a_result_may_be_written_over_its_source() -> None:
    nodes = [placeholder("x"), node("a", "Neg", "x"), node("b", "Sigmoid", "a"), node("c", "Neg", "b"),
             const("v", numbers(16)), node("d", "Mul", "v", "c"), node("e", "Neg", "d"), node("f", "AddV2", "e", "v"),
             node("g", "Neg", "f"), node("h", "Softmax", "g"), node("y", "Neg", "h")]
    done = compare(nodes, {"x": numbers(1, 40, 40, 16)}, "y", **ALONE)
    assert [kernel for kernel in done.kernels if kernel.startswith("onednn")] == [
        "onednn.Sigmoid", "onednn.Mul", "onednn.AddV2", "onednn.Softmax"]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("batch", [1, 2])
def test_images_of_few_channels_are_normalised_in_one_pass(channels: int, batch: int) -> None:
    nodes = [placeholder("x"), const("mean", numbers(1, 1, 1, channels)), const("factor", numbers(channels)),
             const("half", 0.5), node("a", "Sub", "x", "mean"), node("b", "Mul", "a", "factor"),
             node("c", "AddV2", "half", "b")]
    done = compare(nodes, {"x": numbers(batch, 100, 90, channels)}, "c")
    assert done.kernels == ["onednn.Chain"]


def test_a_swish_is_one_pass() -> None:
    nodes = [placeholder("x"), node("s", "Sigmoid", "x"), node("y", "Mul", "x", "s")]
    assert compare(nodes, {"x": numbers(1, 40, 40, 16)}, "y").kernels == ["onednn.Chain"]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenation(axis: int) -> None:
    nodes = [placeholder("x"), placeholder("y"), const("axis", axis, np.int32),
             node("z", "ConcatV2", "x", "y", "axis", N=2, Tidx=dtypes.int32)]
    feeds = {"x": numbers(60, 60, 64), "y": numbers(60, 60, 64)}
    assert compare(nodes, feeds, "z").kernels == ["onednn.ConcatV2"]


@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling_of_volumes(op: str, padding: str) -> None:
    attrs = {"ksize": [1, 2, 3, 1, 1], "strides": [1, 1, 2, 2, 1], "padding": padding, "data_format": "NDHWC"}
    nodes = [placeholder("x"), node("y", op, "x", **attrs)]
    assert compare(nodes, {"x": numbers(2, 5, 7, 6, 8)}, "y").kernels == [f"onednn.{op}"]


sides = st.integers(1, 9)


def resize_nodes(op: str, x: Any, size: Any, **attrs: Any) -> Any:
    centers = {"align_corners": False, "half_pixel_centers": False} | attrs
    dtype = dtypes.of_numpy(x.dtype)
    nodes = [placeholder("x", dtype=dtype), const("size", size, np.int32),
             node("y", op, "x", "size", T=dtype, **centers)]
    return compare(nodes, {"x": x}, "y")


@given(before=st.tuples(sides, sides), after=st.tuples(sides, sides), channels=st.sampled_from([1, 3, 16]),
       dtype=st.sampled_from(["f4", "i1", "u1"]))
@FAST
def test_images_are_resized_by_lines_between_centers(before: Any, after: Any, channels: int, dtype: str) -> None:
    x = (numbers(2, *before, channels) * 40 + 50).clip(-128 if dtype == "i1" else 0, 127).astype(dtype)
    done = resize_nodes("ResizeBilinear", x, after, half_pixel_centers=True)
    assert done.kernels == ["onednn.ResizeBilinear"]


@given(before=st.tuples(sides, sides), times=st.tuples(st.integers(1, 5), st.integers(1, 5)), centers=st.booleans())
@FAST
def test_pixels_become_some_whole_pixels(before: Any, times: Any, centers: bool) -> None:
    after = [n * k for n, k in zip(before, times, strict=True)]
    done = resize_nodes("ResizeNearestNeighbor", numbers(1, *before, 5), after, half_pixel_centers=centers)
    assert done.kernels == ["onednn.ResizeNearestNeighbor"]


def test_pixels_that_the_library_has_elsewhere_are_left_to_numpy() -> None:
    x = numbers(1, 4, 6, 3)
    assert resize_nodes("ResizeBilinear", x, (8, 12)).kernels == ["cpu.ResizeBilinear"]
    assert resize_nodes("ResizeBilinear", x, (8, 12), align_corners=True).kernels == ["cpu.ResizeBilinear"]
    assert resize_nodes("ResizeNearestNeighbor", x, (8, 12),
                        align_corners=True).kernels == ["cpu.ResizeNearestNeighbor"]
    assert resize_nodes("ResizeNearestNeighbor", x, (6, 9)).kernels == ["cpu.ResizeNearestNeighbor"]


@pytest.mark.parametrize(("op", "attrs"), [
    ("MaxPool", {"ksize": [1, 2**60, 2, 1], "strides": [1, 1, 1, 1]}),
    ("MaxPool", {"ksize": [1, 1, 1, 1], "strides": [1, 2**62, 1, 1]}),
    ("AvgPool", {"ksize": [1, 2**40, 2, 1], "strides": [1, 1, 2, 1]}),
    ("AvgPool", {"ksize": [1, 1, 1, 1], "strides": [1, 2**63 - 1, 1, 1]}),
    ("AvgPool3D", {"ksize": [1, 2, 1, 1, 1], "strides": [1, 2**60, 2, 1, 1]}),
    ("Conv2D", {"strides": [1, 2**32, 1, 1], "dilations": [1, 1, 1, 1]}),
])
def test_numpy_does_what_the_library_refuses(op: str, attrs: Any) -> None:
    shape = (1, 3, 4, 5, 2) if op == "AvgPool3D" else (1, 4, 5, 2)
    x = numbers(*shape)
    nodes = [placeholder("x", shape), const("f", numbers(2, 2, 2, 3))]
    nodes.append(node("y", op, *(["x", "f"] if op == "Conv2D" else ["x"]), padding="SAME", **attrs))

    def run(config: Any) -> tuple[Any, Any]:
        session = heald.Session(graph(*nodes), config)
        return session.run("y", {"x": x}), session.placement()["y"]

    ours, row = run(None)
    theirs, _ = run({"plugins": {"block": ["onednn"]}})
    assert np.array_equal(ours, theirs)
    assert any(("oneDNN" in why and "primitive_desc" in why) or "padding alone" in why for _, why in row.refused)


def test_dimensions_that_the_librarys_types_lack_are_declined() -> None:
    from heald_onednn.memory import Layout

    for dims in ([2**63], [2**70, 1], [-2], [1] * 13):
        with pytest.raises(heald.errors.Unimplemented, match="oneDNN"):
            Layout.of(dims, [1] * len(dims))
