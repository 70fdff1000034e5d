"""Functionalize: control flow of TensorFlow 1 becomes functional, where nodes call functions.

Loops become nodes from inside to outside (`loops`), then conditionals become nodes (`conditionals`). Switches and
Merges that do not have the structure of a conditional stay: the executor passes their dead values on. This happens
before the step's passes, so that passes and the placement of functions see functional control flow.
"""

# The order of the work, and why it is right
#
#   1. `frames` finds the loop around each node.
#   2. Loops become While or _Frame nodes, the innermost first. So a loop that is handled contains nodes without
#      frames only: its inner loops are single nodes with known facts (`LoopFacts`).
#   3. `liveness` finds the condition of life of each node outside loops, `conditionals` replaces structured Switches
#      and Merges. The bodies of loops went through both when their loop was handled.
#
# A loop in the general form, `_Frame`, runs one iteration of all its nodes as a function. Its variables may be dead:
# the executor ends the frame when none of them is alive.
#
# Values and effects stay those of TensorFlow's executor: tests compare both forms in an interpreter of frames, for
# random programs and for graphs of TensorFlow.

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...errors import InvalidArgument
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import ENTERS, IDENTITY, NO_OP, V1_CONTROL_FLOW
from ..graph.graph import Graph
from ..graph.node import Input, Node
from ..graph.traversal import DisjointSets, ancestors, consumers, topological_order
from . import loops
from .conditionals import FunctionWriter
from .frames import FrameMembership, LoopFrame
from .function_library import FunctionLibrary, without_foreign_partners
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
    return _Functionalizer(graph, keep, ops).functional_graph()


class _Functionalizer:
    def __init__(self, graph: Graph, keep: Collection[Tensor | str], ops: OpRegistry) -> None:
        self.before = graph
        self.tensors = [Input(item[0], None, item[1]) for item in keep if not isinstance(item, str)]
        self.kept = {item if isinstance(item, str) else item[0]: None for item in keep}  # names, in order
        self.library = FunctionLibrary(graph, ops)
        order = topological_order(graph)
        for node in order:
            if node.op in V1_CONTROL_FLOW:
                self.library.entry(node.name)  # raises the error of a node that does not fit its op
        self.members = FrameMembership(order)
        self.levels: dict[LoopFrame, dict[str, Node]] = {self.members.root: {}}
        self.loops: dict[str, LoopFacts] = {}
        self.exits: dict[Input, Input] = {}  # output of an Exit -> output of the loop
        self.loop_of: dict[str, str] = {}  # node -> the loop that it is in
        self.read = {name for node in order for name in node.controls}.union(self.kept)  # nodes whose names are used
        for node in order:
            frame = self.members.output_frames[node.name] if node.op in ENTERS else self.members.input_frames[node.name]
            self.levels.setdefault(frame, {})[node.name] = node
        self._check_kept()

    def _check_kept(self) -> None:
        for name in self.kept:
            _ = self.before[name]  # raises NotFound
        for tensor in self.tensors:
            frame = self.members.output_frames[tensor.node]
            if frame is not self.members.root:
                raise InvalidArgument(f"'{tensor}' is in {frame}, where it has a value in every iteration",
                                      node=tensor.node, op=self.before[tensor.node].op,
                                      hint="fetch the output of an Exit")

    def functional_graph(self) -> Graph:
        for frame in sorted(self.levels, key=lambda frame: -frame.depth):
            if frame.parent is not None:
                self._replace_loops(frame, frame.parent)
        nodes = self._nodes_of_frame(self.members.root) | {node.name: node for node in self._names_of_inner_nodes()}
        nodes = {node.name: node for node in topological_order(nodes)}
        live = Liveness(nodes, {}, Region(), self.loops)
        live.keep_outside(self.tensors, self.kept)
        body_nodes = FunctionWriter(nodes, live, self.library).write_nodes([*nodes], self.kept)
        return self._graph_with_functions(body_nodes)

    def _replace_loops(self, frame: LoopFrame, parent: LoopFrame) -> None:
        for nodes in _connected_components(self._nodes_of_frame(frame)):
            names = [*nodes]
            loop_node = loops.functional_loop(nodes, self.library, self.loops)
            new = [*loop_node.before, loop_node.node, *self._readers_of_exits(loop_node)]
            self.levels[parent] |= {node.name: node for node in new}
            self.loops[loop_node.node.name] = loop_node.facts
            self.exits.update(loop_node.exits)
            readers = {node.name for node in new}
            self.loop_of.update((name, loop_node.node.name) for name in names if name not in readers)

    def _readers_of_exits(self, loop: loops.LoopNode) -> Iterator[Node]:
        """Yield an Identity under the name of each Exit that is kept, or that control edges come from."""
        for end, value in loop.exits.items():
            if end.node in self.read:
                dtype = self.library.dtype(end)
                yield Node(end.node, IDENTITY, [value], attrs={"T": dtype}, device=self.before[end.node].device)

    def _nodes_of_frame(self, frame: LoopFrame) -> dict[str, Node]:
        """Return the nodes of a frame in topological order, with loops instead of their Exits.

        Raises InvalidArgument for a loop that needs its own results.
        """
        nodes = self.levels[frame]
        if self.loops:
            nodes = {name: self._reading_loop_results(node) for name, node in nodes.items()}
        return {node.name: node for node in topological_order(nodes)}

    def _reading_loop_results(self, node: Node) -> Node:
        """Return a node that takes the results of loops instead of the outputs of Exits."""
        inputs = [self.exits.get(tensor, tensor) for tensor in node.inputs]
        return node if inputs == list(node.inputs) else node.replace(inputs=inputs)

    def _names_of_inner_nodes(self) -> Iterator[Node]:
        """Yield nodes under the names of kept nodes inside loops, which run when the loop does."""
        for name in self.kept:
            outer = name
            while outer in self.loop_of:
                outer = self.loop_of[outer]
            if outer != name:
                yield Node(name, NO_OP, controls=[outer])

    def _graph_with_functions(self, body_nodes: list[Node]) -> Graph:
        """Return the graph of the nodes that are still needed, and of the new functions."""
        users = consumers(self.before.nodes)
        roots = {name for name, node_users in users.items() if not node_users}.union(self.kept)
        roots.update(node.name for node in body_nodes if self.library.has_effects(node.name))
        needed = ancestors({node.name: node for node in body_nodes}, roots)
        nodes = without_foreign_partners([node for node in body_nodes if node.name in needed],
                                         frozenset(self.before.nodes))
        changed = [node for node in nodes if node is not self.before.nodes.get(node.name)]
        removed = self.before.nodes.keys() - {node.name for node in nodes}
        return self.before.replace(nodes=changed, without=removed, functions=self.library.functions)


def _connected_components(nodes: Mapping[str, Node]) -> list[dict[str, Node]]:
    """Return the nodes in sets that no edge connects."""
    sets = DisjointSets()
    for name, node in nodes.items():
        for source in (*(tensor.node for tensor in node.inputs), *node.controls):
            if source in nodes:
                sets.join(name, source)
    components: dict[str, dict[str, Node]] = {}
    for name, node in nodes.items():
        components.setdefault(sets.root(name), {})[name] = node
    return [*components.values()]
