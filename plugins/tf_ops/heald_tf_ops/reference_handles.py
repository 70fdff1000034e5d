"""The pass `reference_handles`: queues, tables and stacks that TensorFlow 1.0 passes as references become resources.

Such a reference is a handle only: no op reads a value through it. Each op has a form on resources with the same
attributes and outputs, so nodes keep their names and edges, and change their op. The reference forms of control flow
pass such handles on, and become the plain forms.

A node that takes its handle from a node outside the table, such as a placeholder, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from heald.api import Graph, Node, PassContext, constant, dtypes, new_name

from .references import CONTROL_FLOW

_QUEUES = ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue")
_TABLES = ("HashTable", "MutableDenseHashTable", "MutableHashTable", "MutableHashTableOfTensors")
STACK = "Stack"
MAKERS = {op: f"{op}V2" for op in (*_QUEUES, *_TABLES, STACK)}
USERS = {op: f"{op}V2" for op in (
    "InitializeTable", "InitializeTableFromTextFile", "LookupTableExport", "LookupTableFind", "LookupTableImport",
    "LookupTableInsert", "LookupTableSize", "QueueClose", "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo",
    "QueueEnqueue", "QueueEnqueueMany", "QueueIsClosed", "QueueSize", "StackClose", "StackPop", "StackPush",
)}
MOVES = {"RefIdentity": "Identity", **{op: form.op for op, form in CONTROL_FLOW.items()}}
UNLIMITED = -1  # the size of a stack


def rewrite_handles(graph: Graph, _: PassContext) -> Graph:
    """Return the graph with queues, tables and stacks on resources; the graph itself if it has none on references."""
    makers = [node for node in graph if node.op in MAKERS]
    if not makers:
        return graph
    return graph.replace(nodes=_changed_nodes(graph,
                                              {*(node.name for node in makers), *_handle_carriers(graph, makers)}))


def _handle_carriers(graph: Graph, makers: list[Node]) -> set[str]:
    """Return the nodes of control flow that pass on the handles of `makers`."""
    consumers: dict[str, list[str]] = {}
    for node in graph:
        if node.op in MOVES and node.inputs:
            for name in {source.node for source in (node.inputs if node.op == "RefMerge" else node.inputs[:1])}:
                consumers.setdefault(name, []).append(node.name)
    carriers: set[str] = set()
    stack = [node.name for node in makers]
    while stack:
        new = [name for name in consumers.get(stack.pop(), ()) if name not in carriers]
        carriers.update(new)
        stack += new
    return carriers


def _changed_nodes(graph: Graph, sources: set[str]) -> Iterator[Node]:
    """Yield the nodes that change, and the new ones. `sources`: the nodes whose outputs become resources."""
    names_in_use = set(graph.nodes)
    for node in graph:
        if node.op == STACK and not node.inputs:
            size = constant(new_name(f"{node.name}/max_size", names_in_use), np.array(UNLIMITED, np.int32), node.device)
            yield size
            yield node.replace(op=MAKERS[STACK], inputs=[size.name])
        elif node.op in MAKERS:
            yield node.replace(op=MAKERS[node.op])
        elif node.name in sources:
            yield node.replace(op=MOVES[node.op], attrs={"T": dtypes.resource})
        elif node.op in USERS and node.inputs and node.inputs[0].node in sources:
            yield node.replace(op=USERS[node.op])
