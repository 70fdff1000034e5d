"""Initializers: nodes that assign variables and tables their saved values, fed when a step first needs them."""

from __future__ import annotations

from collections.abc import Mapping

from heald.api import DType, Graph, Initializer, Node, new_name

from .freeze import ASSIGNS
from .saved_model import SavedModel, SavedTensors


def with_initializers(
    graph: Graph, saved: SavedModel, variables: SavedTensors, state: Mapping[str, frozenset[str]]
) -> tuple[Graph, tuple[Initializer, ...]]:
    """Add the initializers' nodes to the graph, for these variables and for saved tables.

    Return the graph and the initializers. `state` is of `state_names`.
    """
    taken = set(graph.nodes)
    made = [_assigning(graph[name], variables, taken, state[name]) for name in variables
            if name in graph and graph[name].op in ASSIGNS]
    made += [_importing(graph[name], table, taken) for name, table in saved.tables(graph.nodes).items()]
    return (graph.replace(nodes=[node for nodes, _ in made for node in nodes]),
            tuple(initializer for _, initializer in made))


def _assigning(
    variable: Node, values: SavedTensors, taken: set[str], state: frozenset[str]
) -> tuple[list[Node], Initializer]:
    """Return the nodes and the initializer that assign a variable its saved value."""
    fed = _placeholder(f"{variable.name}/restored", values.dtype(variable.name), variable, taken)
    op = ASSIGNS[variable.op]
    assign = Node(new_name(f"{fed.name}/assign", taken), op, (variable.name, fed.name), device=variable.device,
                  attrs={"T" if op == "Assign" else "dtype": fed.attrs["dtype"]})
    return [fed, assign], Initializer(state, assign.name, lambda: {fed.name: values[variable.name]})


def _importing(table: Node, saved: SavedTensors, taken: set[str]) -> tuple[list[Node], Initializer]:
    """Return the nodes and the initializer that import the saved keys and values into a table."""
    keys, values = (_placeholder(f"{table.name}/restored/{side}", saved.dtype(side), table, taken)
                    for side in ("keys", "values"))
    types = {"Tin": keys.attrs["dtype"], "Tout": values.attrs["dtype"]}
    node = Node(new_name(f"{table.name}/restored", taken), "LookupTableImportV2", (table.name, keys.name, values.name),
                device=table.device, attrs=types)
    return [keys, values, node], Initializer(frozenset((table.name,)), node.name,
                                             lambda: {keys.name: saved["keys"], values.name: saved["values"]})


def _placeholder(name: str, dtype: DType, holder: Node, taken: set[str]) -> Node:
    return Node(new_name(name, taken), "Placeholder", device=holder.device, attrs={"dtype": dtype})
