"""A graph with its placement in the file, for viewers of graphs such as Netron and TensorBoard.

Each node has its assigned device in `device`, which TensorBoard colours. Two attributes state the rest, which Netron
shows: `_heald_kernel` and `_heald_reason`. An attribute that begins with `_` has no effect on a run. A node that the
runtime itself serves, or that no device can run, keeps the device that it requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph
    from ...runtime.contract.placement import Assignment, Placement

KERNEL, REASON = "_heald_kernel", "_heald_reason"
TASK = "/job:localhost/replica:0/task:0/device:"


def read_placed_graph(path: str) -> Graph:
    """Return the graph of a model as it is placed, with devices and reasons. Raises as `open_graph`."""
    from argparse import Namespace

    from ...graphs.session.session import Session
    from .arguments import open_graph

    opened = open_graph(Namespace(model=path, format=None, signature=None, tags=None, mmap=True))
    session = Session(opened.needed, target="local")
    return placed_graph(session.graph, session.placement())


def placed_graph(graph: Graph, placement: Placement) -> Graph:
    reasons = placement.reasons()
    return graph.replace(nodes=[
        node.replace(device=_device(row, node.device), attrs={KERNEL: _kernel(row), REASON: reasons[row.node]})
        for node in graph.nodes.values() if (row := placement.get(node.name)) is not None])


def _device(row: Assignment, requested: str) -> str:
    return f"{TASK}{row.device}" if row.device else requested


def _kernel(row: Assignment) -> str:
    return "" if row.kernel is None else f"{row.kernel.pack}.{row.op}"
