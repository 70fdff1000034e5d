"""FunctionLibrary: the functions that are made of parts of a graph, and the facts about nodes that they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.contract.op import ArgDef
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import V1_CONTROL_FLOW
from ...runtime.values.dtypes import DType
from ..graph.function import Function
from ..graph.graph import Graph
from ..graph.node import Input, Node
from ..graph.rewriting import new_name
from ..graph.traversal import ancestors
from .colocation import PREFIX, colocation_partners
from .resolve import Resolved, resolve


class FunctionLibrary:
    """New functions, and new names for functions and nodes of `graph`."""

    def __init__(self, graph: Graph, ops: OpRegistry) -> None:
        self.functions: list[Function] = []
        self._resolved = resolve(graph, ops)
        self._names, self._function_names = set(graph.nodes), set(graph.functions)
        # new node: types of outputs, whether it has effects
        self._new_nodes: dict[str, tuple[Sequence[DType], bool]] = {}
        self._numbers: dict[str, int] = {}  # wanted name -> the last number that was added to it
        self._argument = "arg"
        while any(name.startswith(f"{self._argument}_") for name in graph.nodes):
            self._argument += "x"

    def node_name(self, preferred_name: str) -> str:
        """Return a name that no node of the graph has."""
        return self._unused_name(preferred_name, self._names)

    def function_name(self, preferred_name: str) -> str:
        """Return a name that no function has."""
        return self._unused_name(preferred_name, self._function_names)

    def _unused_name(self, preferred_name: str, used_names: set[str]) -> str:
        """Return a name that is not taken. Thousands of nodes may want the same name."""
        number = self._numbers.get(preferred_name)
        name = new_name(preferred_name if number is None else f"{preferred_name}_{number + 1}", used_names)
        self._numbers[preferred_name] = 0 if number is None else number + 1
        return name

    def argument_tensor(self, index: int) -> Input:
        """Return the tensor that is an argument of a new function."""
        return Input(f"{self._argument}_{index}")

    def record_node(self, name: str, types: Sequence[DType], *, has_effects: bool = False) -> None:
        """Record the types of the outputs of a new node."""
        self._new_nodes[name] = types, has_effects

    def entry(self, name: str) -> Resolved:
        """Return a resolved node of the graph. Raises the error of a node that does not fit its op."""
        entry = self._resolved[name]
        if isinstance(entry, Resolved):
            return entry
        raise entry

    def dtype(self, tensor: Input) -> DType:
        """Return the type of a tensor of the graph, or of a new node."""
        if tensor.node in self._new_nodes:
            return self._new_nodes[tensor.node][0][tensor.index]
        return self.entry(tensor.node).output_tensors[tensor.index].dtype

    def has_effects(self, name: str) -> bool:
        """True for a node that may change, or depend on, more than its inputs: a stateful one, or one on references."""
        if name in self._new_nodes:
            return self._new_nodes[name][1]
        op = self.entry(name).op
        if op.name in V1_CONTROL_FLOW:
            return False
        return op.stateful or any(arg.is_ref for arg in (*op.inputs, *op.outputs))

    def add_function(
        self, name: str, types: Sequence[DType], nodes: Sequence[Node], results: Sequence[tuple[Input, DType]],
        effects: Sequence[str],
    ) -> None:
        """Add a function of arguments of these types. Nodes that neither results nor effects need are left out."""
        needed = ancestors({node.name: node for node in nodes}, (*(tensor.node for tensor, _ in results), *effects))
        needed_nodes = without_foreign_partners([node for node in nodes if node.name in needed])
        self.functions.append(Function(
            name, [ArgDef(self.argument_tensor(index).node, dtype) for index, dtype in enumerate(types)],
            [ArgDef(f"out_{index}", dtype) for index, (_, dtype) in enumerate(results)], needed_nodes,
            {f"out_{index}": tensor for index, (tensor, _) in enumerate(results)},
            control_ret={f"effect_{index}": node for index, node in enumerate(effects)},
            stateful=any(self.has_effects(node.name) for node in needed_nodes)))


def without_foreign_partners(nodes: Sequence[Node], foreign: frozenset[str] | None = None) -> list[Node]:
    """Return the nodes without colocation with nodes that are not among them.

    With `foreign`, only colocation with the nodes of these names is removed.
    """
    here = {node.name for node in nodes}
    return [_without_foreign_partners(node, here, foreign) if "_class" in node.attrs else node for node in nodes]


def _without_foreign_partners(node: Node, here: set[str], foreign: frozenset[str] | None) -> Node:
    named = colocation_partners(node)
    remaining = [name for name in named if name in here or (foreign is not None and name not in foreign)]
    if len(remaining) == len(named):
        return node
    attrs: dict[str, Any] = {"_class": tuple(PREFIX + name.encode("utf-8", "surrogateescape") for name in remaining)}
    return node.replace(attrs=attrs) if remaining else node.replace(without_attrs=("_class",))
