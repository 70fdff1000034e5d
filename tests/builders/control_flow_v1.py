"""Graphs with the control flow of TensorFlow 1, built as tf.cond and tf.while_loop build them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.rewriting import constant
from heald.runtime.contract.op_registry import OpRegistry
from heald.runtime.contract.op_spec import OpSpec
from heald.runtime.contract.structural import OPS as STRUCTURAL
from heald.runtime.values import dtypes

INT, BOOL = dtypes.int32, dtypes.bool_

# Ops on scalars, which the interpreters in harness/dead_values.py know. Log has an effect: it returns its input.
OPS = OpRegistry(STRUCTURAL)
for _spec in (OpSpec("Add", ["x: T", "y: T"], ["z: T"], ["T: type"]),
              OpSpec("Mul", ["x: T", "y: T"], ["z: T"], ["T: type"]),
              OpSpec("Less", ["x: T", "y: T"], ["z: bool"], ["T: type"]),
              OpSpec("Log", ["x: T"], ["y: T"], ["T: type"], stateful=True),
              OpSpec("ControlTrigger")):
    OPS.add(_spec.definition(), "test")


@dataclass
class _Context:
    """A branch of a conditional, or a loop, being built. `take`: adds the nodes that bring a tensor into it."""

    outer: _Context | None = None
    take: Callable[[str], str] | None = None
    pivot: str | None = None  # nodes without inputs run after it
    is_loop: bool = False
    inner_names: dict[str, str] = field(default_factory=dict)


class ControlFlowBuilder:
    """Adds nodes to a graph of scalars. A tensor is named `node` or `node:1`; all names are unique."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.home: dict[str, _Context] = {}  # tensor -> the context in which it is
        self.context = self.root = _Context()

    def graph(self) -> Graph:
        return Graph(self.nodes.values())

    def add(self, op: str, *inputs: str, kind: dtypes.DType = INT, controls: Sequence[str] = (), name: str = "",
            **attrs: Any) -> str:
        """Add a node to the current context and return its first output. Its inputs may be of other contexts."""
        name = name or f"{op}_{len(self.nodes)}"
        attributes = {"T": kind} | attrs if op not in ("LoopCond", "NoOp", "ControlTrigger", "Placeholder") else attrs
        self.nodes[name] = Node(name, op, inputs, controls=controls, attrs=attributes)
        self.home[name] = self.home[f"{name}:1"] = self.context
        return name

    def const(self, value: int | bool) -> str:
        name = f"Const_{len(self.nodes)}"
        array = np.asarray(value, np.bool_ if isinstance(value, bool) else np.int32)
        pivot = self.context.pivot
        self.nodes[name] = constant(name, array).replace(controls=[pivot] if pivot else [])
        self.home[name] = self.context
        return name

    def here(self, tensor: str) -> str:
        """Return the tensor as the current context has it."""
        return self._in(self.context, tensor)

    def _in(self, context: _Context, tensor: str) -> str:
        if self.home[tensor] is context:
            return tensor
        if tensor not in context.inner_names:
            assert context.outer is not None
            assert context.take is not None
            outside = self._in(context.outer, tensor)
            current, self.context = self.context, context
            context.inner_names[tensor] = context.take(outside)
            self.context = current
        return context.inner_names[tensor]

    def op(self, op: str, *inputs: str, **attrs: Any) -> str:
        """Add a node whose inputs may be in contexts around the current one.

        A node that only takes constants of a loop runs after the pivot, else it would be alive in every iteration.
        """
        local_inputs = [self.here(tensor) for tensor in inputs]
        is_free = all(self.nodes[tensor.partition(":")[0]].op == "Enter" for tensor in local_inputs)
        controls = [self.context.pivot] if is_free and self.context.pivot else []
        return self.add(op, *local_inputs, controls=controls, **attrs)

    def kind(self, tensor: str) -> dtypes.DType:
        node = self.nodes[tensor.partition(":")[0]]
        return BOOL if node.op in ("Less", "LoopCond") or node.attrs.get("T") is BOOL else INT

    def cond(self, predicate: str, then: Callable[[], Sequence[str]], otherwise: Callable[[], Sequence[str]]
             ) -> list[str]:
        """Add a conditional, and return the Merges of the two functions' results."""
        predicate = self.here(predicate)
        outer = self.context
        switch = self.add("Switch", predicate, predicate, kind=BOOL)
        pivots = [self.add("Identity", f"{switch}{port}", kind=BOOL) for port in ("", ":1")]
        predicate = self.add("Identity", predicate, kind=BOOL)
        branches = []
        for side, function in enumerate((otherwise, then)):
            port = ":1" if side else ""

            def take(tensor: str, port: str = port) -> str:
                name = self.add("Switch", tensor, predicate, kind=self.kind(tensor))
                return f"{name}{port}"

            self.context = _Context(outer, take, pivots[side])
            branches.append([self.here(tensor) for tensor in function()])
            self.context = outer
        return [self.add("Merge", *pair, kind=self.kind(pair[0]), N=2) for pair in zip(*branches, strict=True)]

    def while_loop(self, condition: Callable[..., str], body: Callable[..., Sequence[str]], initial: Sequence[str]
                   ) -> list[str]:
        """Add a loop, and return its Exits."""
        outer, frame = self.context, f"frame_{len(self.nodes)}".encode()
        initial = [self.here(tensor) for tensor in initial]
        loop = self.context = _Context(outer, is_loop=True)

        def take(tensor: str) -> str:
            return self.add("Enter", tensor, kind=self.kind(tensor), frame_name=frame, is_constant=True)

        loop.take = take
        enters = [self.add("Enter", tensor, kind=self.kind(tensor), frame_name=frame) for tensor in initial]
        merges = [self.add("Merge", enter, enter, kind=self.kind(enter), N=2) for enter in enters]
        loop.pivot = merges[0]
        condition_output = self.add("LoopCond", self.here(condition(*merges)))
        switches = [self.add("Switch", merge, condition_output, kind=self.kind(merge)) for merge in merges]
        values = [self.add("Identity", f"{switch}:1", kind=self.kind(switch)) for switch in switches]
        loop.pivot = values[0]
        for merge, enter, tensor in zip(merges, enters, body(*values), strict=True):
            gated = self.op("Identity", tensor, kind=self.kind(tensor))
            following = self.add("NextIteration", gated, kind=self.kind(gated))
            self.nodes[merge] = self.nodes[merge].replace(inputs=[enter, following])
        self.context = outer
        return [self.add("Exit", switch, kind=self.kind(switch)) for switch in switches]
