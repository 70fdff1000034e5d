"""`graph_to_function` and `function_to_graph`: a graph as the one function `_mlir_lifted_graph`, as TensorFlow has it.

Core's `lifted_graph` has the contract. A text, a GraphDef and a Graph hold the function like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heald.api import Graph


def graph_to_function(
    graph: Graph, feeds: Iterable[str] = (), fetches: Iterable[str] = (), control_returns: Iterable[str] = ()
) -> Graph:
    """The graph with its nodes as the body of a function. Raises as core's `lift_graph`."""
    from heald.graphs.compiler import lift_graph

    return lift_graph(graph, _ops(), feeds, fetches, control_returns)


def function_to_graph(graph: Graph) -> Graph:
    """The graph that `graph_to_function` was given. Raises as core's `unlift_graph`."""
    from heald.graphs.compiler import unlift_graph

    return unlift_graph(graph, _ops())


def _ops() -> Any:
    import heald

    return heald.default_host().registries.ops
