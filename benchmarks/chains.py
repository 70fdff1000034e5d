"""Chains of 2x2 additions, the smallest work worth timing: nearly all of their time is the runtime's own."""

from __future__ import annotations

from collections.abc import Callable

import heald
import numpy as np
from heald.graphs.graph.graph import Graph, Node

X, Y = np.ones((2, 2), np.float32), np.full((2, 2), 1e-3, np.float32)


def chain(length: int, behind: str | None = None) -> Graph:
    """x + y + y + ... over float32 placeholders of unknown shape; `behind` is an op that x goes through first."""
    float32 = heald.api.dtypes.float32
    nodes = [Node(name, "Placeholder", attrs={"dtype": float32}) for name in "xy"]
    if behind is not None:
        nodes.append(Node("behind", behind, ["x"], attrs={"T": float32}))
    for i in range(length):
        nodes.append(Node(f"add{i}", "AddV2", [nodes[-1].name if i or behind else "x", "y"], attrs={"T": float32}))
    return Graph(nodes)


def heald_chain(length: int, behind: str | None = None) -> Callable[[], np.ndarray]:
    """The chain, run by heald on X and Y."""
    step = heald.Session(chain(length, behind), device="CPU:0").make_callable(f"add{length - 1}", ["x", "y"])
    return lambda: step(X, Y)


def numpy_chain(length: int) -> Callable[[], np.ndarray]:
    """The chain as a bare loop."""
    def bare() -> np.ndarray:
        value = X
        for _ in range(length):
            value = np.add(value, Y)
        return value

    return bare
