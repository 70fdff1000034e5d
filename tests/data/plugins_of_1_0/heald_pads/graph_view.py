"""A graph with the properties that passes read: consumers, constants, inferred shapes, permission to change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from heald.api import Graph, Input, Node, PassContext, Resolved, TensorValue, errors, new_name, pruned

Array = np.ndarray[Any, Any]


class GraphView:
    """Properties of one immutable graph. Each change makes a new graph, which gets a new view."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph = graph
        self._context = context
        self.consumers: dict[str, list[tuple[Node, int]]] = {name: [] for name in graph.nodes}  # and the input's index
        ordering: set[str] = set()
        for node in graph:
            for number, source in enumerate(node.inputs):
                self.consumers[source.node].append((node, number))
            ordering.update(node.controls)
        self._outside = ordering | context.kept
        self._named = set(graph.nodes)

    def resolve(self, node: Node) -> Resolved | None:
        found: Resolved | None = self._context.resolve(node)
        return found

    def is_kept(self, node: Node) -> bool:
        return node.name in self._context.kept

    def is_free(self, node: Node) -> bool:
        """True where only the consumers' needs limit a change of the node: it is not kept, and on no control edge."""
        return node.name not in self._outside and not node.controls

    def only_consumer(self, node: Node) -> Node | None:
        """The consumer of the node's first output if no other input in the graph reads the node."""
        consumers = self.consumers[node.name]
        if len(consumers) != 1:
            return None
        consumer, number = consumers[0]
        return consumer if consumer.inputs[number].index == 0 else None

    def is_reference(self, source: Input) -> bool:
        """True where a tensor may be a variable's own memory, which is written in the middle of a run."""
        entry = self.resolve(self.graph[source.node])
        return entry is None or any(arg.is_ref for arg in entry.op.outputs)

    def constant(self, source: Input) -> TensorValue | None:
        """The value of a Const's output, None for any other tensor."""
        node = self.graph[source.node]
        if node.op != "Const" or node.controls or self.is_kept(node):
            return None
        entry = self.resolve(node)
        return None if entry is None else entry.attrs["value"]

    def array(self, source: Input) -> Array | None:
        """The elements of `constant`. None where a short list fills them: the array would take memory."""
        value = self.constant(source)
        try:
            return None if value is None or value.is_filled else value.array()
        except errors.WeftError:  # a malformed value: running the node raises the error
            return None

    def shape(self, source: Input) -> tuple[int | None, ...] | None:
        """The shape of a tensor as far as it is known before the run."""
        outputs = self._inferred.get(source.node, ())
        return outputs[source.index].shape if source.index < len(outputs) else None

    def value(self, source: Input) -> Array:
        """The elements of a tensor, which must be known before the run."""
        found: Array | None = self._inferred[source.node][source.index].value
        assert found is not None
        return found

    def is_known(self, node: Node) -> bool:
        """True where the elements of all outputs are known before the run."""
        outputs = self._inferred.get(node.name, ())
        return len(outputs) > 0 and all(output.is_known for output in outputs)

    @cached_property
    def _inferred(self) -> Any:
        return self._context.infer(self.graph)

    def new_name(self, wanted: str) -> str:
        """A name that no node has. Each call returns another name."""
        return new_name(wanted, self._named)

    def edited(self, nodes: Iterable[Node], without: Iterable[str] = ()) -> Graph:
        """The graph with `nodes` added or replaced and `without` removed, pruned to the kept nodes."""
        nodes, without = tuple(nodes), tuple(without)
        if not nodes and not without:
            return self.graph
        return pruned(self.graph.replace(nodes=nodes, without=without), self._context.kept)


def asks_for_same_place(a: Node, b: Node) -> bool:
    return a.device == b.device and a.attrs.get("_class") == b.attrs.get("_class")
