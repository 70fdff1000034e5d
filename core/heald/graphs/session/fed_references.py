"""Feeds in the place of references: a value is no variable, so nothing that changes the variable may take it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...errors import InvalidArgument
from ...runtime.contract.op_registry import OpRegistry
from ..compiler.prune import Tensor
from ..graph.graph import Graph
from ..graph.node import Node


def check_fed_references(graph: Graph, ops: OpRegistry, fed: Collection[Tensor], ends: Iterable[str]) -> None:
    """Raises InvalidArgument for a node that a step needs and that takes a fed tensor as a reference, such as Assign.

    `graph`: the graph before passes, which still has its references.
    `ends`: the nodes that the step fetches or runs.
    """
    references = {tensor for tensor in fed if _is_reference(tensor, graph, ops)}
    if not references:
        return
    for node in _needed_nodes(graph, set(fed), ends):
        for index in _reference_inputs(node, ops):
            source = node.inputs[index]
            if (source.node, source.index) in references:
                raise InvalidArgument(f"input {index} is a reference to a variable, and '{source.node}:{source.index}' "
                                      "is fed, which gives a value", node=node.name, op=node.op,
                                      hint="feed the value that is assigned, or what is read from the variable")


def _is_reference(tensor: Tensor, graph: Graph, ops: OpRegistry) -> bool:
    node = graph.nodes.get(tensor[0])
    return node is not None and node.op in ops and any(output.is_ref for output in ops.get(node.op).outputs)


def _needed_nodes(graph: Graph, fed: Collection[Tensor], ends: Iterable[str]) -> Iterator[Node]:
    """Yield the nodes behind `ends`, up to the feeds."""
    stack, visited = [*ends], set[str]()
    while stack:
        name = stack.pop()
        if name in visited or name not in graph.nodes:
            continue
        visited.add(name)
        node = graph.nodes[name]
        yield node
        stack += [source.node for source in node.inputs if (source.node, source.index) not in fed]
        stack += node.controls


def _reference_inputs(node: Node, ops: OpRegistry) -> Iterator[int]:
    """Yield the indices of the inputs that a node takes as references."""
    start = 0
    for arg in ops.get(node.op).inputs if node.op in ops else ():
        count = node.attrs.get(arg.number_attr, 1) if arg.number_attr else 1
        end = start + (count if isinstance(count, int) else 1)
        if arg.is_ref:
            yield from range(start, min(end, len(node.inputs)))
        start = end
