"""Precision: the nodes that compute in bfloat16, their errors, and the nodes that stay in float32."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.functions import CHANNELS, GELUS, HARD_SWISHES, LAYER_NORMS
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import ALONE, AS_WRITTEN, NUMPY_ALONE, conv, numbers
from heald.graphs.graph.graph import Node, TensorValue
from heald.graphs.session.pre_placement import enabled_passes
from heald.runtime.contract.graph_pass import GRAPH
from heald.runtime.service.runtime import runtime
from heald_onednn import plugin, precision

TESTS = Path(__file__).parents[1]
BF16 = {"plugin": {"onednn": {"precision": "bf16"}}}
PLAIN = {"adj_x": False, "adj_y": False}
STEP = 2.0**-8  # of one rounding to bfloat16
INT = heald.api.dtypes.int32

fast = pytest.mark.skipif(not precision.has_fast_bfloat16(), reason="this CPU has no AVX512_BF16")


def run(nodes: list[Node], feeds: dict[str, Any], fetch: Any, config: dict[str, Any]) -> tuple[Any, list[str]]:
    """The result, and the kernels that were called."""
    metadata = heald.RunMetadata()
    with heald.Session(graph(*nodes), config) as session:
        session.run(fetch, feeds)
        got = session.run(fetch, feeds, options=heald.RunOptions(trace=True), metadata=metadata)
    assert metadata.trace is not None
    return got, [event.call.code for event in metadata.trace.events]


def compare_in_bfloat16(nodes: list[Node], feeds: dict[str, Any], fetch: str, roundings: int,
                        config: Any = AS_WRITTEN) -> list[str]:
    """The kernels that are called in bfloat16. The result is float32, not that of float32, and no further off NumPy's
    than so many roundings of it or of the standard deviation."""
    want, _ = run(nodes, feeds, fetch, NUMPY_ALONE)
    got, codes = run(nodes, feeds, fetch, config | BF16)
    assert got.dtype == np.float32
    assert got.shape == want.shape
    assert (got != want).any()
    np.testing.assert_allclose(got, want, rtol=roundings * STEP, atol=roundings * STEP * float(want.std()))
    return codes


HEADS = {
    "Conv2D": [const("w", numbers(3, 3, 8, 32) / 8), conv("y", "x", "w")],
    "strided": [const("w", numbers(5, 5, 8, 32) / 14), conv("y", "x", "w", strides=[1, 2, 2, 1], padding="VALID")],
    "grouped": [const("w", numbers(3, 3, 4, 32) / 6), conv("y", "x", "w")],
    "pixels": [const("w", numbers(1, 1, 8, 32) / 3), conv("y", "x", "w")],
    "depthwise": [const("w", numbers(3, 3, 8, 4) / 3), conv("y", "x", "w", op="DepthwiseConv2dNative")],
    "MatMul": [const("rows", [-1, 64], np.int32), node("flat", "Reshape", "x", "rows", Tshape=INT),
               const("w", numbers(64, 32) / 8), node("y", "MatMul", "flat", "w", transpose_a=False, transpose_b=False)],
    "turned": [const("rows", [-1, 64], np.int32), node("flat", "Reshape", "x", "rows", Tshape=INT),
               const("w", numbers(32, 64) / 8), node("y", "MatMul", "flat", "w", transpose_a=False, transpose_b=True)],
    "batches": [const("w", numbers(8, 32) / 3), node("y", "BatchMatMulV2", "x", "w", adj_x=False, adj_y=False)],
}


@fast
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("head", HEADS)
def test_products_in_bfloat16_run_in_onednn_and_are_close(head: str, batch: int) -> None:
    feeds = {"x": numbers(batch, 16, 16, 8)}
    for config in (AS_WRITTEN, ALONE):
        codes = compare_in_bfloat16([placeholder("x"), *HEADS[head]], feeds, "y", 5, config)
        assert any(code.startswith("onednn.") for code in codes)


@fast
@pytest.mark.parametrize("after", ["Relu", "Relu6", "Elu", "Sigmoid", "Tanh", "swish", "LeakyRelu"])
@pytest.mark.parametrize("head", ["Conv2D", "depthwise", "MatMul"])
def test_a_product_and_its_following_ops_are_one_call(head: str, after: str) -> None:
    follow = [node("z", "Sigmoid", "b"), node("r", "Mul", "b", "z")] if after == "swish" else [
        node("r", after, "b", **({"alpha": 0.3} if after == "LeakyRelu" else {}))]
    nodes = [placeholder("x"), *HEADS[head], const("v", numbers(32)),
             node("b", "BiasAdd", "y", "v", data_format="NHWC"), *follow]
    codes = compare_in_bfloat16(nodes, {"x": numbers(1, 24, 24, 8)}, "r", 8)
    assert codes[-1] == "onednn.Product"
    assert len(codes) - codes.count("heald.constant") <= 3  # with Cast of x, and its Reshape


@fast
@pytest.mark.parametrize("middle", [
    [node("r", "MaxPool", "y", ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC",
          explicit_paddings=[])],
    [node("r", "AvgPool", "y", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID", data_format="NHWC")],
    [node("r", "AddV2", "y", "y2")], [node("r", "Mul", "y", "s")], [node("r", "Sub", "y", "s")],
    [const("axis", 3, np.int32), node("r", "ConcatV2", "y", "y2", "axis", N=2, Tidx=INT)],
    [const("pads", [[0, 0], [1, 0], [2, 1], [0, 0]], np.int32), node("r", "Pad", "y", "pads", Tpaddings=INT)],
], ids=lambda nodes: nodes[-1].op)
def test_ops_between_products_compute_in_bfloat16(middle: list[Node]) -> None:
    """Two convolutions and the means of squeeze-and-excitation before it, another behind it: one Cast for all of it."""
    channels = 64 if middle[-1].op == "ConcatV2" else 32
    nodes = [placeholder("x"), const("w", numbers(3, 3, 8, 32) / 8), conv("y", "x", "w"),
             const("w2", numbers(1, 1, 8, 32)), conv("y2", "x", "w2"), const("axes", [1, 2], np.int32),
             node("m", "Mean", "y", "axes", keep_dims=True, Tidx=INT), node("s", "Sigmoid", "m"), *middle,
             const("v", numbers(1, 1, channels, 16) / 6), conv("z", "r", "v")]
    feeds = {"x": numbers(1, 40, 40, 8)}
    compare_in_bfloat16(nodes, feeds, "z", 8)
    _, codes = run(nodes, feeds, "z", AS_WRITTEN | BF16)
    assert codes.count("onednn.Cast") == 1


@fast
@pytest.mark.parametrize("activation", [*GELUS.values(), HARD_SWISHES["keras 3"], HARD_SWISHES["divided last"]])
def test_activations_between_products_are_known_though_their_constants_are_float32(activation: list[Node]) -> None:
    """The tensors before and after are bfloat16. The first product computes the ops behind it and writes bfloat16."""
    nodes = [placeholder("x"), const("w", numbers(8, 64) / 3), node("p", "BatchMatMulV2", "x", "w", **PLAIN),
             const("bias", numbers(64)), node("v", "AddV2", "p", "bias"), *activation,
             const("w2", numbers(64, 32) / 8), node("y", "BatchMatMulV2", "g", "w2", **PLAIN)]
    codes = compare_in_bfloat16(nodes, {"x": numbers(4, 64, 8)}, "y", 5)
    assert [code for code in codes if code != "heald.constant"] == ["cpu.Cast", "onednn.Product", "onednn.Product"]


@fast
@pytest.mark.parametrize("name", ["keras 3", "a division"])
def test_layer_normalisation_of_a_residual_sum_is_known(name: str) -> None:
    nodes = [placeholder("given"), const("w", numbers(CHANNELS, CHANNELS) / 5),
             node("p", "BatchMatMulV2", "given", "w", **PLAIN), node("x", "AddV2", "p", "given"),
             *LAYER_NORMS[name], const("w2", numbers(CHANNELS, 32) / 5),
             node("z", "BatchMatMulV2", "y", "w2", **PLAIN)]
    codes = compare_in_bfloat16(nodes, {"given": numbers(2, 64, CHANNELS)}, "z", 8)
    called = [code for code in codes if code != "heald.constant" and not code.endswith(".Cast")]
    assert called == ["onednn.Product", "onednn.LayerNorm", "onednn.Product"]


@fast
@pytest.mark.parametrize("product", [
    [node("y", "BatchMatMulV2", "x", "g", adj_x=False, adj_y=True)],
    [const("w", numbers(1, 1, 8, 2)), node("gate", "Mul", "x", "g"), conv("y", "gate", "w")],
    [node("y", "Einsum", "x", "g", equation="nijc,nikc->nijk", N=2)],
], ids=["BatchMatMulV2", "gated", "Einsum"])
def test_products_that_a_graph_narrows_itself_keep_their_cast(product: list[Node]) -> None:
    types = {"SrcT": heald.api.dtypes.float32, "DstT": heald.api.dtypes.bfloat16}
    nodes = [placeholder("x"), placeholder("g"), *product, Node("r", "Cast", ["y"], attrs={**types, "Truncate": False})]
    feeds = {"x": numbers(1, 40, 40, 8), "g": numbers(1, 1, 1, 8) if len(product) > 1 else numbers(1, 40, 40, 8)}
    want, _ = run(nodes, feeds, "r", NUMPY_ALONE)
    got, codes = run(nodes, feeds, "r", AS_WRITTEN | BF16 | {"passes": {"disable": ["bfloat16"]}})
    assert got.dtype == want.dtype
    assert [code for code in codes if code != "heald.constant"][-1].endswith(".Cast")
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=2 * STEP, atol=STEP)  # one unit


@fast
@pytest.mark.parametrize("is_narrow", [False, True])
def test_a_cast_of_the_graph_behind_a_product_rounds(is_narrow: bool) -> None:
    wide, narrow = heald.api.dtypes.float32, heald.api.dtypes.bfloat16

    def cast(name: str, source: str, source_type: Any, target_type: Any) -> Node:
        return Node(name, "Cast", [source], attrs={"SrcT": source_type, "DstT": target_type, "Truncate": False})

    plain = [node("y", "BatchMatMulV2", "x", "x", adj_x=False, adj_y=True)]
    product = plain if not is_narrow else [
        cast("p", "x", wide, narrow), node("q", "BatchMatMulV2", "p", "p", T=narrow, adj_x=False, adj_y=True),
        cast("y", "q", narrow, wide)]
    nodes = [placeholder("x"), *product, const("third", 1 / 3), node("t", "Mul", "y", "third"),
             cast("r", "t", wide, narrow), cast("w", "r", narrow, wide), node("z", "Neg", "w")]
    got, _ = run(nodes, {"x": numbers(1, 40, 40, 8)}, "z", AS_WRITTEN | BF16 | {"passes": {"disable": ["bfloat16"]}})
    assert (got == got.astype(narrow.numpy).astype(np.float32)).all()


@fast
def test_nodes_that_are_fetched_or_fed_stay_float32() -> None:
    nodes = [placeholder("x"), *HEADS["Conv2D"], node("r", "Relu", "y"), const("v", numbers(1, 1, 32, 16) / 6),
             conv("z", "r", "v")]
    x = numbers(1, 16, 16, 8)
    (r, z), _ = run(nodes, {"x": x}, ["r", "z"], AS_WRITTEN | BF16)
    assert (r.dtype, z.dtype) == (np.float32, np.float32)
    again, _ = run(nodes, {"r": r}, "z", AS_WRITTEN | BF16)
    np.testing.assert_allclose(again, z, rtol=STEP, atol=STEP)
    exact = np.float32(1 + 2**-20)
    (same, _), _ = run(nodes, {"x": x, "r": np.full(r.shape, exact)}, ["r", "z"], AS_WRITTEN | BF16)
    assert (same == exact).all()


@fast
def test_a_sum_with_what_is_float32_is_float32() -> None:
    nodes = [placeholder("x"), *HEADS["pixels"], placeholder("other"), node("a", "AddV2", "y", "other")]
    x, other = numbers(1, 16, 16, 8), numbers(1, 16, 16, 32)
    got, _ = run(nodes, {"x": x * 0, "other": other}, "a", AS_WRITTEN | BF16)
    assert (got == other).all()


@fast
def test_weights_that_are_not_known_stay_float32() -> None:
    nodes = [placeholder("x"), placeholder("w"), node("y", "MatMul", "x", "w", transpose_a=False, transpose_b=False)]
    feeds = {"x": numbers(64, 64), "w": numbers(64, 64)}
    assert (run(nodes, feeds, "y", AS_WRITTEN | BF16)[0] == run(nodes, feeds, "y", AS_WRITTEN)[0]).all()


@fast
def test_weights_in_parts_are_multiplied_once_where_they_become_narrow_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    multiplied: list[tuple[int, ...]] = []
    array_of = TensorValue.array

    def note_products(self: TensorValue) -> Any:
        multiplied.extend([self.shape] if self.scaling is not None else [])
        return array_of(self)

    def weights(name: str, *shape: int) -> Node:
        value = TensorValue.scaled(TensorValue(numbers(*shape)), numbers(shape[-1]))
        return Node(name, "Const", attrs={"dtype": heald.api.dtypes.float32, "value": value})

    monkeypatch.setattr(TensorValue, "array", note_products)
    product = graph(placeholder("x", (1, 8, 8, 8)), weights("w", 3, 3, 8, 16), weights("v", 1, 1, 16, 4),
                    weights("f", 3, 3, 8, 2), conv("y", "x", "w"), node("r", "Relu", "y"), conv("z", "r", "v"),
                    conv("first", "x", "f", data_format="NCHW"))
    with heald.Session(product, AS_WRITTEN | BF16) as session:
        *_, (name, after) = session.graphs_by_pass(["z", "first"], ["x"])
    assert (name, after["z/bfloat16"].inputs[1].node) == ("bfloat16", "v/bfloat16")
    assert multiplied == [(3, 3, 8, 16), (1, 1, 16, 4)]


@fast
def test_graphs_of_bfloat16_are_served_too() -> None:
    narrow = heald.api.dtypes.bfloat16
    x, w = (numbers(64, 64).astype(narrow.numpy) for _ in range(2))
    nodes = [Node("x", "Placeholder", attrs={"dtype": narrow}), Node("w", "Placeholder", attrs={"dtype": narrow}),
             node("y", "MatMul", "x", "w", T=narrow, transpose_a=False, transpose_b=False)]
    got, codes = run(nodes, {"x": x, "w": w}, "y", AS_WRITTEN | BF16)
    assert codes == ["onednn.MatMul"]
    want = x.astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_allclose(got.astype(np.float32), want, rtol=STEP, atol=STEP)


@fast
@pytest.mark.parametrize("off", [{"passes": {"disable": ["bfloat16"]}}, {"plugin": {"onednn": {"precision": "f32"}}}])
def test_the_pass_can_be_switched_off(off: dict[str, Any]) -> None:
    nodes, feeds = [placeholder("x"), *HEADS["Conv2D"], node("r", "Relu", "y")], {"x": numbers(1, 16, 16, 8)}
    want, codes = run(nodes, feeds, "r", AS_WRITTEN)
    got, same = run(nodes, feeds, "r", AS_WRITTEN | BF16 | off)
    assert (got == want).all()
    assert same == codes


def test_float32_is_the_default_and_brings_no_pass() -> None:
    assert "bfloat16" not in [entry.name for entry in enabled_passes(runtime(), GRAPH)]


def test_another_precision_is_an_error() -> None:
    with pytest.raises(ValueError, match="'f16': one of f32, bf16, auto"):
        plugin.Config(precision="f16")


SLOW = """
    import warnings
    import numpy as np, heald
    from builders.graphs import const, graph, node, placeholder
    w = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    results = []
    for precision in ("f32", "auto", "bf16"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            nodes = placeholder("x"), const("w", w), node("y", "MatMul", "x", "w", transpose_a=False, transpose_b=False)
            with heald.Session(graph(*nodes), {"plugin": {"onednn": {"precision": precision}}}) as session:
                results.append(session.run("y", {"x": w}))
                session.run("y", {"x": w[:8]})
        print(precision, [str(warning.message) for warning in told])
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()
"""


def test_a_cpu_without_it_computes_in_float32_and_says_so_once_if_it_was_asked() -> None:
    environ = os.environ | {"PYTHONPATH": str(TESTS), "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(SLOW)], env=environ, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["f32 []", "auto []", f"bf16 {[precision.SLOW]}"]


@fast
def test_a_mask_of_the_least_float32_stays_finite() -> None:
    """Softmax would turn infinities into NaN in a row that is masked as a whole."""
    nodes = [placeholder("x"), *HEADS["batches"], const("mask", np.full((1, 1, 1, 32), np.finfo(np.float32).min)),
             node("masked", "AddV2", "y", "mask"), node("s", "Softmax", "masked")]
    got, _ = run(nodes, {"x": numbers(2, 4, 4, 8)}, "s", AS_WRITTEN | BF16)
    np.testing.assert_array_equal(got, np.full((2, 4, 4, 32), np.float32(1 / 32)))
