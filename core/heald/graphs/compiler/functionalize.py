"""Functionalize: control flow of TensorFlow 1 becomes functional, where nodes call functions.

Loops become nodes from inside to outside (`loops`), then conditionals become nodes (`conditionals`). Switches and
Merges that do not have the structure of a conditional stay: the executor passes their dead values on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...errors import InvalidArgument
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import ENTERS, IDENTITY, NO_OP, V1_CONTROL_FLOW
from ..graph.graph import Graph
from ..graph.node import Input, Node
from ..graph.traversal import DisjointSets, ancestors, consumers, topological_order
from . import loops
from .conditionals import Writer
from .frames import LoopFrame, Membership
from .function_library import FunctionLibrary, colocated_within
from .liveness import Liveness, LoopFacts, Region
from .prune import Tensor


def functionalize(graph: Graph, keep: Collection[Tensor | str], ops: OpRegistry) -> Graph:
    """Return the graph without Enter, Exit and NextIteration, and with Switch and Merge only where values may be dead.

    `graph` has the nodes that a step needs. `keep` are tensors, (node, output index), and names of nodes; they stay
    available. A graph without control flow is returned as it is.

    Raises InvalidArgument for frames that are not well formed and for kept tensors inside loops, Unimplemented for
    loops that cannot be run, ResourceExhausted for too many nested loops, and the error of a node that does not fit its
    op.
    """
    if not any(node.op in V1_CONTROL_FLOW for node in graph):
        return graph
    return _Functionalizing(graph, keep, ops).graph()


class _Functionalizing:
    def __init__(self, graph: Graph, keep: Collection[Tensor | str], ops: OpRegistry) -> None:
        self.before = graph
        self.tensors = [Input(item[0], None, item[1]) for item in keep if not isinstance(item, str)]
        self.kept = {item if isinstance(item, str) else item[0]: None for item in keep}  # names, in order
        self.library = FunctionLibrary(graph, ops)
        order = topological_order(graph)
        for node in order:
            if node.op in V1_CONTROL_FLOW:
                self.library.entry(node.name)  # raises the error of a node that does not fit its op
        self.members = Membership(order)
        self.levels: dict[LoopFrame, dict[str, Node]] = {self.members.root: {}}
        self.loops: dict[str, LoopFacts] = {}
        self.exits: dict[Input, Input] = {}  # output of an Exit -> output of the loop
        self.loop_of: dict[str, str] = {}  # node -> the loop that it is in
        self.read = {name for node in order for name in node.controls}.union(self.kept)  # nodes whose names are used
        for node in order:
            frame = self.members.gives[node.name] if node.op in ENTERS else self.members.runs[node.name]
            self.levels.setdefault(frame, {})[node.name] = node
        self._check_kept()

    def _check_kept(self) -> None:
        for name in self.kept:
            _ = self.before[name]  # raises NotFound
        for tensor in self.tensors:
            frame = self.members.gives[tensor.node]
            if frame is not self.members.root:
                raise InvalidArgument(f"'{tensor}' is in {frame}, where it has a value in every iteration",
                                      node=tensor.node, op=self.before[tensor.node].op,
                                      hint="fetch the output of an Exit")

    def graph(self) -> Graph:
        for frame in sorted(self.levels, key=lambda frame: -frame.depth):
            if frame.parent is not None:
                self._replace_loops(frame, frame.parent)
        nodes = self._level(self.members.root) | {node.name: node for node in self._stand_ins()}
        nodes = {node.name: node for node in topological_order(nodes)}
        live = Liveness(nodes, {}, Region(), self.loops)
        live.keep(self.tensors, self.kept)
        made = Writer(nodes, live, self.library).graph([*nodes], self.kept)
        return self._result(made)

    def _replace_loops(self, frame: LoopFrame, parent: LoopFrame) -> None:
        for nodes in _connected(self._level(frame)):
            names = [*nodes]
            found = loops.functional(nodes, self.library, self.loops)
            new = [*found.before, found.node, *self._readers(found)]
            self.levels[parent] |= {node.name: node for node in new}
            self.loops[found.node.name] = found.facts
            self.exits.update(found.exits)
            readers = {node.name for node in new}
            self.loop_of.update((name, found.node.name) for name in names if name not in readers)

    def _readers(self, loop: loops.LoopNode) -> Iterator[Node]:
        """Yield an Identity under the name of each Exit that is kept, or that control edges come from."""
        for end, value in loop.exits.items():
            if end.node in self.read:
                dtype = self.library.dtype(end)
                yield Node(end.node, IDENTITY, [value], attrs={"T": dtype}, device=self.before[end.node].device)

    def _level(self, frame: LoopFrame) -> dict[str, Node]:
        """Return the nodes of a frame in topological order, with loops instead of their Exits.

        Raises InvalidArgument for a loop that needs its own results.
        """
        nodes = self.levels[frame]
        if self.loops:
            nodes = {name: self._behind_loops(node) for name, node in nodes.items()}
        return {node.name: node for node in topological_order(nodes)}

    def _behind_loops(self, node: Node) -> Node:
        """Return a node that takes the results of loops instead of the outputs of Exits."""
        inputs = [self.exits.get(tensor, tensor) for tensor in node.inputs]
        return node if inputs == list(node.inputs) else node.replace(inputs=inputs)

    def _stand_ins(self) -> Iterator[Node]:
        """Yield nodes under the names of kept nodes inside loops, which run when the loop does."""
        for name in self.kept:
            around = name
            while around in self.loop_of:
                around = self.loop_of[around]
            if around != name:
                yield Node(name, NO_OP, controls=[around])

    def _result(self, made: list[Node]) -> Graph:
        """Return the graph of the nodes that are still needed, and of the new functions."""
        users = consumers(self.before.nodes)
        roots = {name for name, found in users.items() if not found}.union(self.kept)
        roots.update(node.name for node in made if self.library.has_effects(node.name))
        needed = ancestors({node.name: node for node in made}, roots)
        nodes = colocated_within([node for node in made if node.name in needed], frozenset(self.before.nodes))
        changed = [node for node in nodes if node is not self.before.nodes.get(node.name)]
        gone = self.before.nodes.keys() - {node.name for node in nodes}
        return self.before.replace(nodes=changed, without=gone, functions=self.library.functions)


def _connected(nodes: Mapping[str, Node]) -> list[dict[str, Node]]:
    """Return the nodes in sets that no edge connects."""
    sets = DisjointSets()
    for name, node in nodes.items():
        for source in (*(tensor.node for tensor in node.inputs), *node.controls):
            if source in nodes:
                sets.join(name, source)
    found: dict[str, dict[str, Node]] = {}
    for name, node in nodes.items():
        found.setdefault(sets.root(name), {})[name] = node
    return [*found.values()]
