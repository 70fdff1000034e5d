"""Liveness: the conditions under which the nodes of one body have values, rather than dead ones.

Switch gives its data to one of two outputs; the other is dead. A dead input, or control input, makes a node dead. Only
Merge is alive with one live input, and ControlTrigger with none. All nodes of a `Region` are alive together. The
outputs of a Switch are the two sides of a `Conditional`: all Switches of one region with one predicate. A Merge of both
sides is in the region of the Switches again. _SwitchN has as many sides as outputs, and an index for its predicate.

A conditional is structured when its sides are left through such Merges only. Then a side can become a function.
"""

# The theory of dead values
#
# A dead value stands for a branch that is not taken. It spreads along data and control edges, and Merge stops it:
#
#   op                 alive when
#   Switch, _SwitchN   its inputs are; then exactly one of its outputs is alive
#   Merge              one of its inputs is
#   ControlTrigger     always
#   a loop's node      all of its inputs are
#   any other op       all of its data and control inputs are
#
# A region is a condition of life, and regions are a tree below `base`, which is always alive: a region is alive only
# when its parent is. Inputs from two regions, one around the other, have the inner one as their intersection. The
# intersection of two other regions is a new opaque region below the innermost common one, the same for every pair. A
# Merge of all sides of a conditional is alive exactly when the conditional's region is. Any other Merge gets an
# opaque region, or the common one if that is among its inputs.
#
# Each node is visited once, in topological order; only ControlTriggers are moved afterwards. An opaque region is
# never a side, so a doubtful case stays a Switch or Merge, whose dead values the executor passes on. It never becomes
# a function that computes something else.

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...errors import Unimplemented
from ...runtime.contract.structural import CONTROL_TRIGGER, IDENTITY, MERGES, SWITCH_N, SWITCHES
from ...runtime.support.records import NamedTuple
from ..graph.node import Input, Node

# conditionals within conditionals that become functions; deeper ones stay Switches and Merges
DEEPEST_NESTED_CONDITIONALS = 64


class Region:
    """A condition under which nodes are alive: that of `parent`, and one more.

    `conditional`, `side`: the further condition is that the predicate selects this side. None for other conditions,
    such as that of a Merge of unrelated values.
    """

    __slots__ = ("conditional", "depth", "parent", "side")

    def __init__(self, parent: Region | None = None, conditional: Conditional | None = None, side: int = 0) -> None:
        self.parent, self.conditional, self.side = parent, conditional, side
        self.depth: int = 0 if parent is None else parent.depth + 1

    def opaque(self) -> Region:
        """A new region in this one, of a condition that no predicate expresses."""
        return Region(self.parent if self.depth > DEEPEST_NESTED_CONDITIONALS else self)

    def is_around(self, other: Region) -> bool:
        """True when this region is alive whenever the other is, since the other is this region or in it."""
        return _innermost_common_region(self, other) is self


def _innermost_common_region(a: Region, b: Region) -> Region:
    """The innermost region that has both in it."""
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent
            a = a.parent
        else:
            assert b.parent
            b = b.parent
    return a


class Conditional:
    """The Switches of one region that have one predicate and `count` outputs. `sides`: the regions of the outputs."""

    __slots__ = ("region", "sides", "structured")

    def __init__(self, region: Region, count: int) -> None:
        self.region = region
        self.structured = region.depth < DEEPEST_NESTED_CONDITIONALS
        if self.structured:
            self.sides = tuple(Region(region, self, side) for side in range(count))
        else:
            self.sides = tuple(region.opaque() for _ in range(count))


class LoopFacts(NamedTuple):
    """Facts about a node that replaces a loop. The node is dead with any dead input; the loop may run with some.

    `variables`: The number of inputs that are variables; they come before the constants.
    `decisive`: The indices of inputs that the condition of the loop reads.
    `outputs_may_die`: True when outputs may be dead although the node is alive, each by itself.
    """

    variables: int
    decisive: Collection[int] = ()
    outputs_may_die: bool = False


class Liveness:
    """The regions of the nodes of a body.

    `regions`: the region of each node, and of each source outside the body.
    `gates`: the conditional of each Switch.
    `joins`: the conditional of each Merge that joins two sides.
    `indexed`: the Merges whose second output, the index of the live input, is consumed.
    `leaving`: the nodes with control edges out of their region.
    """

    def __init__(
        self, nodes: Mapping[str, Node], source_regions: Mapping[str, Region], base: Region,
        loops: Mapping[str, LoopFacts],
    ) -> None:
        """Find the regions of `nodes`, which are in topological order.

        `source_regions`: the regions of sources outside the body. `base`: the region of nodes that are always alive.
        `loops`: facts about nodes that are loops. Raises Unimplemented for a loop whose inputs are not alive together.
        """
        self.nodes, self.base, self.loops = nodes, base, loops
        self.regions = dict(source_regions)
        self.gates: dict[str, Conditional] = {}
        self.joins: dict[str, Conditional] = {}
        self.indexed: set[str] = set()
        self.leaving: set[str] = set()
        self._uncertain = {name for name, facts in loops.items() if facts.outputs_may_die}
        self._outputs: dict[tuple[str, int], Region] = {}
        self._conditionals: dict[tuple[Region, Input, int], Conditional] = {}
        self._mixed: dict[tuple[Region, Region], Region] = {}
        self._predicates: dict[Input, Input] = {}
        self._chains: dict[Region, tuple[Region, ...]] = {}
        for node in nodes.values():
            self._find_region(node)
        self._move_triggers()
        for node in nodes.values():
            self._look_for_leaving_edges(node)

    def region_of(self, tensor: Input) -> Region:
        """Return the region of a tensor."""
        if tensor.node in self._uncertain:
            key = tensor.node, tensor.index
            if key not in self._outputs:
                self._outputs[key] = self.regions[tensor.node].opaque()
            return self._outputs[key]
        gate = self.gates.get(tensor.node)
        return self.regions[tensor.node] if gate is None else gate.sides[tensor.index]

    def conditional(self, predicate: Input) -> Conditional | None:
        """Return the conditional of Switches that are always alive and have this predicate, if there are any."""
        return self._conditionals.get((self.base, self._predicate(predicate), 2))

    def enclosing_sides(self, name: str) -> tuple[Region, ...]:
        """Return the sides of structured conditionals that a node is in, outermost first."""
        region: Region | None = self.regions[name]
        assert region
        chain = self._chains.get(region)
        if chain is None:
            sides, start = [], region
            while region is not None:
                if region.conditional is not None and region.conditional.structured:
                    sides.append(region)
                region = region.parent
            chain = self._chains[start] = tuple(reversed(sides))
        return chain

    def keep_outside(self, tensors: Iterable[Input], names: Iterable[str]) -> None:
        """Have tensors and nodes stay outside of functions, as they are needed outside of the body."""
        for tensor in tensors:
            self._note_consumer_outside(self.region_of(tensor), self.base)
            if tensor.node in self.gates or (tensor.node in self.joins and tensor.index):
                self._mark_unstructured(tensor.node)
        for name in names:
            self._note_consumer_outside(self.regions[name], self.base)
            if name in self.gates:
                self._mark_unstructured(name)

    def _mark_unstructured(self, name: str) -> None:
        (self.gates.get(name) or self.joins[name]).structured = False

    def _find_region(self, node: Node) -> None:
        if node.op in MERGES:
            self.regions[node.name] = self._region_of_merge(node)
            return
        region = self.base
        for tensor in node.inputs:
            region = self._intersection(region, self.region_of(tensor))
        if node.op != CONTROL_TRIGGER:
            for name in node.controls:
                region = self._intersection(region, self.regions.get(name, self.base))
        self.regions[node.name] = region
        if node.name in self.loops:
            self._check_loop(node, region, self.loops[node.name])
        elif node.op in SWITCHES or node.op == SWITCH_N:
            count = node.attrs["num_outs"] if node.op == SWITCH_N else 2
            key = region, self._predicate(node.inputs[1]), count
            if key not in self._conditionals:
                self._conditionals[key] = Conditional(region, count)
            self.gates[node.name] = self._conditionals[key]

    def _intersection(self, a: Region, b: Region) -> Region:
        """Return the region that is alive when both are."""
        if a is b or b is self.base:
            return a
        common = _innermost_common_region(a, b)
        if common is a or common is b:
            return b if common is a else a
        mixed = self._mixed.get((a, b))
        if mixed is None:
            mixed = self._mixed[a, b] = self._mixed[b, a] = common.opaque()
        return mixed

    def _region_of_merge(self, node: Node) -> Region:
        regions = [self.region_of(tensor) for tensor in node.inputs]
        conditional = regions[0].conditional
        sides = () if conditional is None else conditional.sides
        if conditional is not None and len(regions) == len(sides) and set(regions) == set(sides):
            self.joins[node.name] = conditional
            return conditional.region
        common = regions[0]
        for region in regions:
            common = _innermost_common_region(common, region)
        return common if common in regions else common.opaque()

    def _predicate(self, tensor: Input) -> Input:
        """Return the tensor that this one repeats."""
        passed = []
        while tensor not in self._predicates:
            node = self.nodes.get(tensor.node)
            if node is None or node.op != IDENTITY or node.controls:
                break
            passed.append(tensor)
            tensor = node.inputs[0]
        tensor = self._predicates.get(tensor, tensor)
        self._predicates.update(dict.fromkeys(passed, tensor))
        return tensor

    def _check_loop(self, node: Node, region: Region, facts: LoopFacts) -> None:
        shared = self.base
        for index in facts.decisive:
            shared = self._intersection(shared, self.region_of(node.inputs[index]))
        for tensor in node.inputs[: facts.variables]:
            if self._intersection(shared, self.region_of(tensor)) is not region:
                raise Unimplemented(f"some inputs of this loop may be dead while its input '{tensor}' is alive",
                                    node=node.name, op=node.op,
                                    hint="take all inputs of the loop from the same branch of a conditional")

    def _move_triggers(self) -> None:
        """Move each ControlTrigger to the innermost region around its consumers, for no one else waits for it."""
        triggers = [node for node in self.nodes.values() if node.op == CONTROL_TRIGGER]
        if not triggers:
            return
        needed: dict[str, Region] = {}
        waiting = {node.name for node in triggers}
        for node in reversed([*self.nodes.values()]):
            if node.op == CONTROL_TRIGGER and node.name in needed:
                region = needed[node.name]
                for name in node.controls:
                    source = self.regions.get(name, self.base)
                    if name not in waiting and not source.is_around(region):
                        region = _innermost_common_region(region, source)
                self.regions[node.name] = region
            for name in node.controls:
                if name in waiting:
                    region = self.regions[node.name]
                    needed[name] = _innermost_common_region(needed[name], region) if name in needed else region

    def _look_for_leaving_edges(self, node: Node) -> None:
        region, join = self.regions[node.name], self.joins.get(node.name)
        for tensor in node.inputs:
            if tensor.index == 1 and tensor.node in self.nodes and self.nodes[tensor.node].op in MERGES:
                self.indexed.add(tensor.node)
            if join is None:
                self._note_consumer_outside(self.region_of(tensor), region)
        for name in node.controls:
            source = self.regions.get(name, self.base)
            if source is region or source.is_around(region):
                continue
            self.leaving.add(name)
            if node.op not in MERGES:
                if node.op != CONTROL_TRIGGER:
                    self._note_consumer_outside(source, region)
            elif join is None or not any(side.is_around(source) for side in join.sides):
                self._note_consumer_outside(source, region)
                self._note_consumer_outside(region, source)
                if join is not None:
                    join.structured = False

    def _note_consumer_outside(self, region: Region, towards: Region) -> None:
        """Note that a value of a region is consumed in another one."""
        if region is towards or region is self.base:
            return
        common = _innermost_common_region(region, towards)
        while region is not common:
            if region.conditional is not None:
                region.conditional.structured = False
            assert region.parent
            region = region.parent
