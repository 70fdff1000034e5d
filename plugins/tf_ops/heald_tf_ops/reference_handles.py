"""The pass `reference_handles`: queues, tables, stacks and tensor arrays that TensorFlow 1.0 passes as references or
strings become resources.

Such a reference is a handle only: no op reads a value through it. Each op has a form on resources with the same
attributes and outputs, so nodes keep their names and edges, and change their op. The reference forms of control flow
pass such handles on, and become the plain forms.

Two ops on tensor arrays have no form on resources. `TensorArrayPack` becomes a gathering, `TensorArrayUnpack` a
scattering, of all indices in order, which new nodes count.

A node that takes its handle from a node outside the table, such as a placeholder, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from heald.api import Graph, Input, Node, PassContext, constant, dtypes, new_name

from .references import CONTROL_FLOW

_QUEUES = ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue")
_TABLES = ("HashTable", "MutableDenseHashTable", "MutableHashTable", "MutableHashTableOfTensors")
STACK = "Stack"
_ARRAYS = {"TensorArray": 16, "TensorArrayV2": 26}  # and the GraphDef versions from which on they are refused
MAKERS = {**{op: f"{op}V2" for op in (*_QUEUES, *_TABLES, STACK)}, **dict.fromkeys(_ARRAYS, "TensorArrayV3")}
GRADIENTS = dict.fromkeys(("TensorArrayGrad", "TensorArrayGradV2"), "TensorArrayGradV3")
_ARRAY_USERS = ("Close", "Concat", "Gather", "Read", "Scatter", "Size", "Split", "Write")
PACK, UNPACK = "TensorArrayPack", "TensorArrayUnpack"
USERS = {f"TensorArray{use}{version}": f"TensorArray{use}V3" for use in _ARRAY_USERS for version in ("", "V2")}
USERS |= {op: f"{op}V2" for op in (
    "InitializeTable", "InitializeTableFromTextFile", "LookupTableExport", "LookupTableFind", "LookupTableImport",
    "LookupTableInsert", "LookupTableSize", "QueueClose", "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo",
    "QueueEnqueue", "QueueEnqueueMany", "QueueIsClosed", "QueueSize", "StackClose", "StackPop", "StackPush",
)}
MOVES = {"RefIdentity": "Identity", **{op: form.op for op, form in CONTROL_FLOW.items()}}
MOVES |= {op: op for op in MOVES.values()}  # strings are passed on by the plain forms
MERGES = frozenset({"Merge", "RefMerge"})
UNLIMITED = -1  # the size of a stack


def rewrite_handles(graph: Graph, _: PassContext) -> Graph:
    """Return the graph with queues, tables and stacks on resources; the graph itself if it has none on references."""
    producer = graph.versions.producer
    makers = [node for node in graph if node.op in MAKERS and producer < _ARRAYS.get(node.op, producer + 1)]
    if not makers:
        return graph
    return graph.replace(nodes=_changed_nodes(graph,
                                              {*(node.name for node in makers), *_handle_carriers(graph, makers)}))


def _handle_carriers(graph: Graph, makers: list[Node]) -> set[str]:
    """Return the nodes that pass on the handles of `makers`, or make handles of gradients of them."""
    consumers: dict[str, list[str]] = {}
    for node in graph:
        if node.inputs and (node.op in MOVES or node.op in GRADIENTS):
            for name in {source.node for source in (node.inputs if node.op in MERGES else node.inputs[:1])}:
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
        elif node.name in sources and node.op in MAKERS:
            yield node.replace(op=MAKERS[node.op])
        elif node.name in sources and node.op in GRADIENTS:
            yield node.replace(op=GRADIENTS[node.op])
        elif node.name in sources:
            yield node.replace(op=MOVES[node.op], attrs={"T": dtypes.resource})
        elif node.op in USERS and node.inputs and node.inputs[0].node in sources:
            yield node.replace(op=USERS[node.op])
        elif node.op in (PACK, UNPACK) and node.inputs and node.inputs[0].node in sources:
            yield from _nodes_with_indices(node, names_in_use)


def _nodes_with_indices(node: Node, names_in_use: set[str]) -> Iterator[Node]:
    """Yield the nodes of a gathering or scattering of all indices of an array. Constants come after the array, in its
    frame."""
    def new(suffix: str, op: str, inputs: list[str | Input], **attrs: object) -> str:
        name = new_name(f"{node.name}/{suffix}", names_in_use)
        nodes.append(Node(name, op, inputs, device=node.device, attrs=attrs))
        return name

    def number(suffix: str, value: int | list[int]) -> str:
        name = new_name(f"{node.name}/{suffix}", names_in_use)
        nodes.append(constant(name, np.array(value, np.int32), node.device).replace(controls=[node.inputs[0].node]))
        return name

    nodes: list[Node] = []
    handle, flow = node.inputs[0], node.inputs[-1]
    if node.op == PACK:
        count = new("size", "TensorArraySizeV3", [handle, flow])
    else:
        shape = new("shape", "Shape", [node.inputs[1]], T=node.attrs["T"], out_type=dtypes.int32)
        count = new("count", "StridedSlice", [shape, number("begin", [0]), number("end", [1]), number("strides", [1])],
                    T=dtypes.int32, Index=dtypes.int32, shrink_axis_mask=1)
    indices = new("indices", "Range", [number("first", 0), count, number("step", 1)], Tidx=dtypes.int32)
    yield from nodes
    if node.op == PACK:
        yield node.replace(op="TensorArrayGatherV3", inputs=[handle, indices, flow])
    else:
        yield node.replace(op="TensorArrayScatterV3", inputs=[handle, indices, node.inputs[1], flow])
