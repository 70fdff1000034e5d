"""Variables with saved values: sessions over graphs whose variables begin with given arrays."""

from collections.abc import Mapping
from typing import Any

import heald
from heald.api import Graph, Initializer, Node, dtypes


def add_initializers(graph: Graph, values: Mapping[str, Any]) -> tuple[Graph, list[Initializer]]:
    """The graph with nodes that assign the variables called as in `values`, and their initializers."""
    nodes, state = [], []
    for name, value in values.items():
        dtype, is_handle = dtypes.of_numpy(value.dtype), graph[name].op == "VarHandleOp"
        nodes += [Node(f"{name}/fed", "Placeholder", attrs={"dtype": dtype}),
                  Node(f"{name}/assign", "AssignVariableOp" if is_handle else "Assign", [name, f"{name}/fed"],
                       attrs={"dtype" if is_handle else "T": dtype})]
        state.append(Initializer(frozenset([name]), f"{name}/assign", lambda name=name, value=value: {
            f"{name}/fed": value}))
    return graph.replace(nodes=nodes), state


def frozen(graph: Graph, values: Mapping[str, Any]) -> Graph:
    """The graph of a session over the graph, whose variables begin with these values."""
    graph, state = add_initializers(graph, values)
    with heald.Session(graph, initial_state=state) as session:
        return session.graph
