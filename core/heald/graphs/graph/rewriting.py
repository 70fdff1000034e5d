"""Rewriting: functions that make new nodes for a pass, and that remove idle nodes and control edges."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...runtime.contract.structural import CONST, NO_OP
from .graph import Graph, Node, TensorValue, topological_order
from .traversal import ancestors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def new_name(wanted: str, taken: set[str]) -> str:
    """The wanted name or, when it is in `taken`, that name with a number. The result is added to `taken`."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def node_name_of(name: str) -> str:
    """The name of a function as a node's: functions are called `__inference_<lambda>_3`, nodes are not."""
    return re.sub(r"^[/\-]|[^A-Za-z0-9_./\-]", "_", name) or "_"


def constant(name: str, value: Array | np.generic | TensorValue, device: str = "") -> Node:
    """A Const node. An array is not copied, but is read-only afterwards."""
    import numpy as np

    if not isinstance(value, TensorValue):
        array = np.asarray(value)  # turns NumPy's scalars into arrays
        array.flags.writeable = False  # else it would be copied
        value = TensorValue(array)
    return Node(name, CONST, device=device, attrs={"dtype": value.dtype, "value": value})


def placed_like(node: Node, like: Node) -> Node:
    """The node with the placement request of `like`: its device and its colocation."""
    attrs = {name: like.attrs[name] for name in ("_class",) if name in like.attrs}
    return node.replace(device=like.device, attrs=attrs)


def pruned(graph: Graph, kept: Iterable[str]) -> Graph:
    """The graph without the nodes that none of the nodes `kept` depends on."""
    return graph.replace(without=graph.nodes.keys() - ancestors(graph.nodes, kept))


def without_idle_controls(graph: Graph, idle: Iterable[str] = ()) -> Graph:
    """The graph without control edges from the nodes `idle`, from constants, and from NoOps that then wait for nothing.
    The graph itself when there is no such edge."""
    idle, nodes = set(idle), []
    for node in topological_order(graph) if any(node.controls for node in graph) else ():
        controls = [name for name in node.controls if name not in idle]
        if len(controls) < len(node.controls):
            nodes.append(node.replace(controls=controls))
        if node.op in (CONST, NO_OP) and not controls and not node.inputs:
            idle.add(node.name)
    return graph.replace(nodes=nodes) if nodes else graph
