"""Pass `constant-folding`, on request: constant folding with the names and control edges of TensorFlow's TF Graph IR.

The pass `constants` of sessions drops the order of the nodes that it computes. This pass keeps it: a constant waits for
all nodes that its node read, and for those that its node waited for. So a node that runs before the pass runs after it.

Steps repeat until none changes the graph; the second round usually finds nothing. They come in the order in which
TensorFlow's greedy driver reaches the nodes, consumers first, since the names follow from it.
1. The rows of `folding_rows`, consumers first: a node that a row fits becomes a cheaper one of the same name.
2. Push-down, consumers first: `(x + a) + b` becomes `x + (b + a)`; the inner node's name goes to the constant.
3. Evaluation, producers first: nodes with constant inputs, and shapes that are known, become constants. A node with one
   output keeps its name; further outputs are `x/eval_1/const_folded`.
4. The rows again, producers first, for the nodes that read constants now.

Each step visits each node once. A kept node may be fed later, so its value is read only where it is fetched and not
fed. A constant that waits for an output of a Switch waits for an Identity of that output, which is dead with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from heald.api import Graph, Input, Node, PassContext, dtypes, topological_order

from ..folding_rows import ROWS, Folder
from ..graph_view import GraphView
from .constants import CONTROL_FLOW_OPS

SHAPE_OPS = frozenset({"Rank", "Shape", "ShapeN", "Size"})  # their values follow from the shapes of their inputs
KEPT_NODES = {"ShapeN": "matshapes", "BroadcastGradientArgs": "bcastargs"}  # nodes that stay beside their constants
_PUSHED = {"Add": np.add, "AddV2": np.add, "Mul": np.multiply}


def fold_constants_in_order(graph: Graph, context: PassContext) -> Graph:
    while True:
        after = graph
        for step in (_apply_rows_to_consumers_first, _push_constants_down, _evaluate_nodes, _apply_rows):
            after = step(after, context)
        if after is graph:
            return graph
        graph = after


def _evaluate_nodes(graph: Graph, context: PassContext) -> Graph:
    folder = Folder(GraphView(graph, context), context)
    for node in topological_order(graph):
        if node.inputs and _is_known(folder, node):
            _evaluate(folder, node)
    return folder.graph()


def _is_known(folder: Folder, node: Node) -> bool:
    entry = folder.view.resolve(node)
    if entry is None or entry.op.stateful or node.op in CONTROL_FLOW_OPS or not folder.view.is_known(node):
        return False
    if node.op not in SHAPE_OPS and not all(map(folder.is_constant, node.inputs)):
        return False
    values = [folder.view.value(Input(node.name, None, index)) for index in range(len(entry.output_tensors))]
    return bool(values) and all(dtypes.of_numpy(value.dtype) is not dtypes.string for value in values)


def _evaluate(folder: Folder, node: Node) -> None:
    used = sorted({consumer.inputs[number].index for consumer, number in folder.view.consumers[node.name]})
    entry = folder.view.resolve(node)
    assert entry is not None
    suffix = KEPT_NODES.get(node.op)
    if len(entry.output_tensors) == 1:
        folder.put(folder.constant(node.name, folder.view.value(Input(node.name)), node, folder.anchors(node)))
        return
    if not used:
        return
    stays = folder.view.is_kept(node) or not folder.view.is_replaceable(node)
    controls = folder.anchors(node)
    if node.op == "ShapeN" or (suffix is not None and len(used) > 1):
        stays, controls = True, (node.name,)
    else:
        suffix = None
    for index in used:
        name = folder.view.new_name(f"{node.name}/{suffix}_{index}" if suffix else
                                    f"{node.name}/eval_{index}/const_folded")
        tensor = Input(node.name, None, index)
        folder.put(folder.constant(name, folder.view.value(tensor), node, controls))
        folder.redirect(tensor, Input(name))
    if not stays:
        folder.remove(node.name)


def _apply_rows_to_consumers_first(graph: Graph, context: PassContext) -> Graph:
    return _apply_rows_in(reversed([*topological_order(graph)]), graph, context)


def _apply_rows(graph: Graph, context: PassContext) -> Graph:
    return _apply_rows_in(topological_order(graph), graph, context)


def _apply_rows_in(nodes: Iterable[Node], graph: Graph, context: PassContext) -> Graph:
    folder = Folder(GraphView(graph, context), context)
    for node in nodes:
        for row in ROWS.get(node.op, ()):
            if row(folder, folder.current(node.name)):
                break
    return folder.graph()


def _push_constants_down(graph: Graph, context: PassContext) -> Graph:
    folder = Folder(GraphView(graph, context), context)
    gone: set[str] = set()
    for node in reversed([*topological_order(graph)]):
        while node.name not in gone and (after := _pushed(folder, folder.current(node.name), gone)):
            folder.put(after)
    return folder.graph()


def _pushed(folder: Folder, node: Node, gone: set[str]) -> Node | None:
    """The node that reads one constant and the tensor below its child. The child becomes that constant."""
    parts = _constant_and_other(folder, node)
    child = folder.current(parts[1].node) if parts is not None else None
    if parts is None or child is None or child.op != node.op or child.device != node.device or (
            child.name in gone or not _is_private(folder, child) or child.attrs.get("T") != node.attrs.get("T")):
        return None
    inner = _constant_and_other(folder, child)
    value = None if inner is None else folder.combine(_PUSHED[node.op], [parts[0], inner[0]])
    if inner is None or value is None:
        return None
    controls = (*folder.waits([parts[0], inner[0]]), *child.controls)
    folder.put(folder.constant(child.name, value, child, controls))
    gone.add(child.name)
    return node.replace(inputs=[inner[1], Input(child.name)])


def _constant_and_other(folder: Folder, node: Node) -> tuple[Input, Input] | None:
    if node.op not in _PUSHED:
        return None
    first, second = node.inputs
    is_first = folder.is_constant(first)
    if is_first == folder.is_constant(second):
        return None
    return (first, second) if is_first else (second, first)


def _is_private(folder: Folder, node: Node) -> bool:
    return folder.view.is_replaceable(node) and folder.view.only_consumer(folder.view.graph[node.name]) is not None
