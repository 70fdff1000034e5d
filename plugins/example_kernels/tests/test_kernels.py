"""The pack's kernels are chosen, and agree with heald-cpu's."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from heald.api import Graph, Node, constant

RNG = np.random.default_rng(0)
X, WEIGHTS = RNG.normal(size=(3, 5)).astype(np.float32), RNG.normal(size=(5, 4)).astype(np.float32)
FLOAT = {"T": "float32"}
FED = Node("x", "Placeholder", attrs={"dtype": "float32"})


def session(pack: str, *nodes: Node) -> Any:
    ops = {node.op for node in nodes} - {"Placeholder", "Const"}
    return heald.Session(Graph(nodes), {"kernels": dict.fromkeys(ops, pack)})


@pytest.mark.parametrize("nodes", [
    [FED, Node("y", "Softplus", ["x"], attrs=FLOAT)],
    [FED, Node("y", "Softmax", ["x"], attrs=FLOAT)],
    [FED, constant("w", WEIGHTS), Node("y", "MatMul", ["x", "w"], attrs=FLOAT)],
    [FED, constant("w", WEIGHTS.T), Node("y", "MatMul", ["x", "w"], attrs=FLOAT | {"transpose_b": True})],
], ids=["Softplus", "Softmax", "MatMul", "MatMul of columns"])
def test_a_kernel_of_the_pack_returns_what_the_reference_returns(nodes: list[Node]) -> None:
    ours = session("example_kernels", *nodes)
    results = [ours.run("y", {"x": x}) for x in (X, X + 1, X)]
    expected = [session("cpu", *nodes).run("y", {"x": x}) for x in (X, X + 1, X)]
    np.testing.assert_allclose(results, expected, rtol=1e-5, atol=1e-6)
    kernel = {row["node"]: row["kernel"] for row in ours.placement().table()}["y"]
    assert kernel == f"example_kernels.{nodes[-1].op}"


def test_a_matrix_that_is_not_constant_is_left_to_the_next_pack() -> None:
    nodes = [FED, Node("w", "Placeholder", attrs={"dtype": "float32"}), Node("y", "MatMul", ["x", "w"], attrs=FLOAT)]
    results = session("example_kernels", *nodes).run("y", {"x": X, "w": WEIGHTS})
    np.testing.assert_allclose(results, X @ WEIGHTS, rtol=1e-5, atol=1e-6)
