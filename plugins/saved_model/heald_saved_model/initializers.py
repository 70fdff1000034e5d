"""Initializers: nodes that assign variables and tables their saved values, fed when a step first needs them."""

from __future__ import annotations

from collections.abc import Mapping

from heald.api import DType, Graph, Initializer, Node, new_name

from .freeze import ASSIGN_OPS
from .saved_model import SavedModel, SavedTensors


def with_initializers(
    graph: Graph, saved: SavedModel, variables: SavedTensors, state: Mapping[str, frozenset[str]]
) -> tuple[Graph, tuple[Initializer, ...]]:
    """Add the initializers' nodes to the graph, for these variables and for saved tables.

    Return the graph and the initializers. `state` is of `state_names`.
    """
    used_names = set(graph.nodes)
    additions = [_variable_initializer(graph[name], variables, used_names, state[name]) for name in variables
                 if name in graph and graph[name].op in ASSIGN_OPS]
    additions += [_table_initializer(graph[name], table, used_names)
                  for name, table in saved.tables(graph.nodes).items()]
    return (graph.replace(nodes=[node for nodes, _ in additions for node in nodes]),
            tuple(initializer for _, initializer in additions))


def _variable_initializer(
    variable: Node, values: SavedTensors, used_names: set[str], state: frozenset[str]
) -> tuple[list[Node], Initializer]:
    """Return the nodes and the initializer that assign a variable its saved value."""
    placeholder = _placeholder(f"{variable.name}/restored", values.dtype(variable.name), variable, used_names)
    op = ASSIGN_OPS[variable.op]
    assign = Node(new_name(f"{placeholder.name}/assign", used_names), op, (variable.name, placeholder.name),
                  device=variable.device, attrs={"T" if op == "Assign" else "dtype": placeholder.attrs["dtype"]})
    return [placeholder, assign], Initializer(state, assign.name, lambda: {placeholder.name: values[variable.name]})


def _table_initializer(table: Node, saved: SavedTensors, used_names: set[str]) -> tuple[list[Node], Initializer]:
    """Return the nodes and the initializer that import the saved keys and values into a table."""
    keys, values = (_placeholder(f"{table.name}/restored/{side}", saved.dtype(side), table, used_names)
                    for side in ("keys", "values"))
    types = {"Tin": keys.attrs["dtype"], "Tout": values.attrs["dtype"]}
    node = Node(new_name(f"{table.name}/restored", used_names), "LookupTableImportV2",
                (table.name, keys.name, values.name), device=table.device, attrs=types)
    return [keys, values, node], Initializer(frozenset((table.name,)), node.name,
                                             lambda: {keys.name: saved["keys"], values.name: saved["values"]})


def _placeholder(name: str, dtype: DType, holder: Node, used_names: set[str]) -> Node:
    return Node(new_name(name, used_names), "Placeholder", device=holder.device, attrs={"dtype": dtype})
