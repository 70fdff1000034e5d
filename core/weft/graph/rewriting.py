"""Rewriting: what whoever changes a graph makes its new nodes with, and how the idle ones go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .graph import Graph, Node, TensorValue, topological_order
from .traversal import ancestors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def new_name(wanted: str, taken: set[str]) -> str:
    """The name itself or, where it is taken, that with a number. It is taken then."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def constant(name: str, value: Array | TensorValue, device: str = "") -> Node:
    """A Const. An array is not copied, but read-only from then on."""
    import numpy as np

    if not isinstance(value, TensorValue):
        array = np.asarray(value)  # of NumPy's scalars
        array.flags.writeable = False  # else it would be copied
        value = TensorValue(array)
    return Node(name, "Const", device=device, attrs={"dtype": value.dtype, "value": value})


def placed_like(node: Node, like: Node) -> Node:
    """The node, asking to be where the other one asks to be: its device, and what it is colocated with."""
    attrs = {name: like.attrs[name] for name in ("_class",) if name in like.attrs}
    return node.replace(device=like.device, attrs=attrs)


def pruned(graph: Graph, kept: Iterable[str]) -> Graph:
    """The graph without what none of these nodes needs."""
    return graph.replace(without=graph.nodes.keys() - ancestors(graph.nodes, kept))


def without_idle_controls(graph: Graph, idle: Iterable[str] = ()) -> Graph:
    """The graph without control edges from these nodes, from constants, and from NoOps that wait for nothing then; the
    graph itself where there are none."""
    idle, nodes = set(idle), []
    for node in topological_order(graph) if any(node.controls for node in graph) else ():
        controls = [name for name in node.controls if name not in idle]
        if len(controls) < len(node.controls):
            nodes.append(node.replace(controls=controls))
        if node.op in ("Const", "NoOp") and not controls and not node.inputs:
            idle.add(node.name)
    return graph.replace(nodes=nodes) if nodes else graph
