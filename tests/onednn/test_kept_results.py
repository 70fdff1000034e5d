"""Small feeds and results of primitives are copied into and out of fixed arrays. The results are the user's own."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop, program
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import AS_WRITTEN, NUMPY_ALONE, numbers

WEIGHTS, BIAS = numbers(4, 4) * 0.5, numbers(4)
CONFIGS = [AS_WRITTEN, AS_WRITTEN | {"debug": {"poison": True}}, AS_WRITTEN | {"passes": {"disable": ["fusion"]}}]


def dense(name: str, source: str, kind: str = "") -> list[Any]:
    """Relu(source * weights + bias); `kind`: the suffix of a tensor's name in a function."""
    return [node(f"{name}/product", "MatMul", source, f"w{kind and ':output:0'}", transpose_a=False, transpose_b=False),
            node(f"{name}/sum", "BiasAdd", f"{name}/product{kind and ':product:0'}", f"b{kind and ':output:0'}",
                 data_format="NHWC"),
            node(name, "Relu", f"{name}/sum{kind and ':output:0'}")]


def layers() -> heald.Graph:
    return graph(placeholder("x", (2, 4)), const("w", WEIGHTS), const("b", BIAS), *dense("first", "x"),
                 *dense("second", "first"), node("shown", "Identity", "second"), *dense("third", "second"))


def expected(x: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    for _ in range(count):
        x = np.maximum(x @ WEIGHTS + BIAS, 0)
    return x


@pytest.mark.parametrize("config", CONFIGS)
def test_results_stay_as_they_are_when_the_next_run_begins(config: dict[str, Any]) -> None:
    feeds = [numbers(2, 4) for _ in range(6)]
    with heald.Session(layers(), config=config) as session:
        results = [session.run(["third", "second", "shown", "second"], {"x": x}) for x in feeds]
    for x, (third, *seconds) in zip(feeds, results, strict=True):
        np.testing.assert_allclose(third, expected(x, 3), rtol=1e-4, atol=1e-5)
        for second in seconds:
            np.testing.assert_allclose(second, expected(x, 2), rtol=1e-4, atol=1e-5)
        assert not np.may_share_memory(seconds[0], seconds[2])
        assert all(array.flags.writeable and array.flags.owndata for array in (third, *seconds))


def test_a_fed_array_is_not_written_and_may_change_between_runs() -> None:
    x = numbers(2, 4)
    with heald.Session(layers(), config=AS_WRITTEN) as session:
        for _ in range(3):
            before = x.copy()
            np.testing.assert_allclose(session.run("first", {"x": x}), expected(x, 1), rtol=1e-4, atol=1e-5)
            assert np.array_equal(x, before)
            x += 1


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_turns_of_a_loop_do_not_overwrite_their_arguments(turns: int) -> None:
    below = function("below", "i x", [const("end", np.float32(turns)), node("test", "Less", "i", "end:output:0")],
                     {"go": "test:z:0"}, results="go:bool_")
    body = function("body", "i x", [
        const("one", np.float32(1)), node("next", "AddV2", "i", "one:output:0"), const("w", WEIGHTS),
        const("b", BIAS), *dense("layer", "x", ":")], {"i": "next:z:0", "x": "layer:activations:0"})
    nodes = [placeholder("i", ()), placeholder("x", (2, 4)), loop("y", "below", "body", "i", "x")]
    x = numbers(2, 4)
    results = {}
    for name, config in (("ours", AS_WRITTEN), ("numpy", NUMPY_ALONE)):
        with heald.Session(program(nodes, below, body), config=config) as session:
            results[name] = [session.run("y:1", {"i": np.float32(0), "x": x}) for _ in range(3)]
    for result in (*results["ours"], *results["numpy"]):
        np.testing.assert_allclose(result, expected(x, turns), rtol=1e-4, atol=1e-5)


def packs(model: heald.Graph, fetch: str) -> set[str]:
    """The plugins whose kernels compute a value."""
    with heald.Session(model, config=AS_WRITTEN) as session:
        calls = session.prepare([fetch], ["x"]).executable(((2, 4),)).layout.calls
        return {bound.kernel.pack for bound in calls if bound.kernel is not None}


def test_a_small_layer_is_one_primitive_and_a_small_product_alone_is_numpys() -> None:
    assert packs(layers(), "third") == {"onednn"}
    assert packs(graph(placeholder("x", (2, 4)), const("w", WEIGHTS), dense("y", "x")[0]), "y/product") == {"cpu"}
