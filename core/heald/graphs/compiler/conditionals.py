"""Conditionals: the structured Switches and Merges of a body become If and Case nodes, each side a function.

Nodes are taken into sides from outside to inside. Within one body, the nodes of a conditional that hang together are
one unit. Units of the same conditional become one node, where no path leads from one to the other. A unit from which a
path leads outside and back, such as a forward and a backward branch around a loss, stays as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...runtime.contract.structural import (
    CASE,
    EXITS,
    IDENTITY,
    IF,
    LOOP_COND,
    MERGES,
    NEXT_ITERATIONS,
    OF_SWITCHES,
    STATELESS_CASE,
    STATELESS_IF,
    SWITCH_N,
    SWITCHES,
)
from ...runtime.support.records import NamedTuple
from ...runtime.values import dtypes
from ...runtime.values.attribute_values import Func
from ...runtime.values.dtypes import DType
from ..graph.node import Input, Node
from ..graph.rewriting import constant
from ..graph.traversal import DisjointSets
from .function_library import FunctionLibrary
from .liveness import Conditional, Liveness

_OP_OF_REFERENCE_OP = {op: op.removeprefix("Ref") for op in SWITCHES | MERGES if op.startswith("Ref")}
_IDENTITIES_IN_BODY = EXITS | NEXT_ITERATIONS | {LOOP_COND}  # in the body of a loop they only repeat their input


class FunctionPart(NamedTuple):
    """Nodes that become a function.

    `name`: The name of the function.
    `members`: The names of the nodes, in topological order.
    `local`: Tensors from outside, by name outside: arguments.
    `types`: The types of all arguments.
    `results`: The tensors that it returns.
    `extra`: Further nodes.
    """

    name: str
    members: Sequence[str]
    local: Mapping[Input, Input]
    types: Sequence[DType]
    results: Sequence[Input]
    extra: Sequence[Node] = ()


@dataclass
class _ChoiceUnit:
    """Nodes of one conditional that become one If or Case."""

    conditional: Conditional
    names: list[str] = field(default_factory=list)


@dataclass
class _BodyDraft:
    """A body that is being written.

    `local`: The tensors of this body, by the tensors of the graph that they stand for.
    `nodes`: Its nodes so far.
    `node_names`: The nodes of this body, by the nodes of the graph that they stand for.
    """

    local: dict[Input, Input]
    nodes: list[Node] = field(default_factory=list)
    node_names: dict[str, str] = field(default_factory=dict)


class FunctionWriter:
    """Writes functions of nodes whose liveness is known."""

    def __init__(self, nodes: Mapping[str, Node], live: Liveness, library: FunctionLibrary) -> None:
        self._nodes, self._live, self._library = nodes, live, library
        # node -> how many of its sides are around the body in which it is written
        self._side_depths: dict[str, int] = {}
        self._kept_switches_and_merges: set[str] = set()  # Switches and Merges that stay
        self._parts: list[FunctionPart] = []

    def add_function(self, part: FunctionPart) -> None:
        """Add the function of a part to the library, and the functions that it calls."""
        self._parts.append(part)
        self._write_parts()

    def write_nodes(self, members: Sequence[str], kept_names: Collection[str]) -> list[Node]:
        """Return the nodes that replace `members`. A Merge in `kept_names` keeps its name: an Identity has it."""
        body = self._write_body(members, {})
        for name in kept_names:
            if body.node_names.get(name, name) != name:
                value = body.local[Input(name)]
                body.nodes.append(Node(name, IDENTITY, [value], attrs={"T": self._library.dtype(Input(name))}))
        self._write_parts()
        return body.nodes

    def _write_parts(self) -> None:
        while self._parts:
            part = self._parts.pop()
            body = self._write_body(part.members, dict(part.local))
            results = [(body.local.get(tensor, tensor), self._library.dtype(tensor)) for tensor in part.results]
            leaving = [body.node_names[name] for name in part.members if name in self._live.leaving
                       and name in body.node_names]
            effects = [node.name for node in body.nodes if self._library.has_effects(node.name)]
            nodes = [*part.extra, *body.nodes]
            self._library.add_function(part.name, part.types, nodes, results,
                                       tuple(dict.fromkeys((*effects, *leaving))))

    def _write_body(self, members: Sequence[str], local: dict[Input, Input]) -> _BodyDraft:
        body = _BodyDraft(local)
        for unit in self._units_in_order(members):
            if isinstance(unit, _ChoiceUnit):
                self._write_choice(body, unit)
            else:
                body.nodes.append(self._rewritten_node(body, self._nodes[unit]))
                body.node_names[unit] = unit
        return body

    def _rewritten_node(self, body: _BodyDraft, node: Node) -> Node:
        inputs = [body.local.get(tensor, tensor) for tensor in node.inputs]
        controls = tuple(dict.fromkeys(body.node_names[name] for name in node.controls if name in body.node_names))
        if inputs != list(node.inputs) or controls != node.controls:
            node = node.replace(inputs=inputs, controls=controls)
        if node.op in _IDENTITIES_IN_BODY:
            return node.replace(op=IDENTITY, attrs={"T": self._library.dtype(Input(node.name))})
        return node.replace(op=_OP_OF_REFERENCE_OP[node.op]) if node.op in _OP_OF_REFERENCE_OP else node

    # Units

    def _units_in_order(self, members: Sequence[str]) -> Sequence[str | _ChoiceUnit]:
        """Return the nodes and units of a body in an order in which they can run."""
        while True:
            owners = {name: owner for name in members if (owner := self._owning_conditional(name)) is not None}
            if not owners:
                return members
            roots = self._unit_roots(owners)
            order, cyclic = self._order_units(members, owners, roots)
            if not cyclic:
                return order
            for name in owners:
                if roots[name] in cyclic:
                    self._leave_out_of_units(name)

    def _owning_conditional(self, name: str) -> Conditional | None:
        """Return the conditional whose If or Case replaces a node of the current body."""
        sides, depth = self._live.enclosing_sides(name), self._side_depths.get(name, 0)
        if depth < len(sides):
            return sides[depth].conditional
        conditional = self._live.gates.get(name) or self._live.joins.get(name)
        if conditional is None or not conditional.structured or name in self._kept_switches_and_merges:
            return None
        return conditional

    def _is_outside_sides(self, name: str) -> bool:
        """True for a node that is in no side of a conditional of the current body."""
        return self._side_depths.get(name, 0) == len(self._live.enclosing_sides(name))

    def _is_output(self, name: str) -> bool:
        """True for a Merge whose consumers are outside of the conditional that it joins."""
        return name in self._live.joins and self._is_outside_sides(name)

    def _leave_out_of_units(self, name: str) -> None:
        if self._is_outside_sides(name):
            self._kept_switches_and_merges.add(name)
        else:
            self._side_depths[name] = self._side_depths.get(name, 0) + 1

    def _unit_roots(self, owners: Mapping[str, Conditional]) -> dict[str, str]:
        """Partition the nodes with owners: by name, one node of each set of nodes that hang together."""
        sets = DisjointSets()
        for name, owner in owners.items():
            for source in _source_names(self._nodes[name]):
                if owners.get(source) is owner and not self._is_output(source):
                    sets.join(name, source)
        return {name: sets.root(name) for name in owners}

    def _order_units(
        self, members: Sequence[str], owners: Mapping[str, Conditional], roots: Mapping[str, str]
    ) -> tuple[list[str | _ChoiceUnit], set[str]]:
        """Return nodes and units in order, and the roots of sets of nodes that paths lead out of and back into."""
        after: dict[str, list[str]] = {roots.get(name, name): [] for name in members}
        waits = dict.fromkeys(after, 0)
        cyclic = set()
        for name in members:
            root = roots.get(name, name)
            for source in _source_names(self._nodes[name]):
                before = roots.get(source, source)
                if before == root and self._is_output(source):
                    cyclic.add(root)
                elif before != root and before in after:
                    after[before].append(root)
                    waits[root] += 1
        levels = dict.fromkeys(after, 0)  # the most units on a path to it
        ready = deque(root for root, count in waits.items() if not count)
        sorted_roots = []
        while ready:
            root = ready.popleft()
            sorted_roots.append(root)
            level = levels[root] + (root in owners)
            for later in after[root]:
                levels[later] = max(levels[later], level)
                waits[later] -= 1
                if not waits[later]:
                    ready.append(later)
        if len(sorted_roots) < len(after):
            cyclic |= _in_cycles(after, after.keys() - set(sorted_roots)) & owners.keys()
        return ([] if cyclic else _by_level(members, owners, roots, sorted_roots, levels)), cyclic

    # One If or Case

    def _write_choice(self, body: _BodyDraft, unit: _ChoiceUnit) -> None:
        """Add the If or Case that replaces a unit to a body. Its functions are written later."""
        sides: list[list[str]] = [[] for _ in unit.conditional.sides]
        gates: list[str] = []
        joins: list[str] = []
        for name in unit.names:
            if not self._is_outside_sides(name):
                depth = self._side_depths.get(name, 0)
                sides[self._live.enclosing_sides(name)[depth].side].append(name)
                self._side_depths[name] = depth + 1
            else:
                (gates if name in self._live.gates else joins).append(name)
        is_case = self._nodes[gates[0]].op == SWITCH_N
        name = self._library.node_name(sibling_name((joins or gates)[0], CASE if is_case else IF))
        switches = frozenset(gates)
        captures = _Captures(self._nodes, self._library, body.local, switches)
        outputs = [Input(join, None, index) for join in joins for index in range(1 + (join in self._live.indexed))]
        functions = []
        for side, inside in enumerate(sides):
            local = captures.capture_side(inside)
            results, extra = [], []
            for join, _, index in outputs:
                input_index = self._input_from_side(join, unit.conditional, side)
                value = self._nodes[join].inputs[input_index]
                if index == 1:
                    extra.append(self._index_constant(f"{join}/value_index", input_index))
                    value = Input(extra[-1].name)
                elif value.node in switches:
                    captures.capture(local, value)
                results.append(value)
            function = self._library.function_name(f"{name}/{f'branch{side}' if is_case else ('else', 'then')[side]}")
            functions.append(Func(function))
            self._parts.append(FunctionPart(function, inside, local, captures.types, results, extra))
        has_effects = any(self._library.has_effects(member) for inside in sides for member in inside)
        types = [self._library.dtype(tensor) for tensor in outputs]
        predicate = self._repeated_predicate(body, self._nodes[gates[0]].inputs[1])
        attrs: dict[str, Any] = {"Tin": tuple(captures.types), "Tout": tuple(types)}
        if is_case:
            op = CASE if has_effects else STATELESS_CASE
            attrs["branches"] = tuple(functions)
        else:
            op = IF if has_effects else STATELESS_IF
            attrs |= {"Tcond": self._library.dtype(predicate), "then_branch": functions[1], "else_branch": functions[0],
                      OF_SWITCHES: True}
        inputs = [body.local.get(predicate, predicate), *captures.tensors]
        node = Node(name, op, inputs, attrs=attrs, controls=self._controls_of_unit(body, unit.names))
        self._library.record_node(name, types, has_effects=has_effects)
        body.nodes.append(node)
        body.node_names.update(dict.fromkeys(unit.names, name))
        body.local.update((tensor, Input(name, None, index)) for index, tensor in enumerate(outputs))

    def _input_from_side(self, join: str, conditional: Conditional, side: int) -> int:
        """Return the index of the input of a Merge that comes from a side."""
        return [self._live.region_of(tensor) for tensor in self._nodes[join].inputs].index(conditional.sides[side])

    def _index_constant(self, preferred_name: str, value: int) -> Node:
        name = self._library.node_name(preferred_name)
        self._library.record_node(name, [dtypes.int32])
        return constant(name, np.asarray(value, np.int32))

    def _repeated_predicate(self, body: _BodyDraft, predicate: Input) -> Input:
        """Return the tensor of this body that a predicate repeats."""
        while body.node_names.get(predicate.node) == predicate.node:
            node = self._nodes[predicate.node]
            if node.op != IDENTITY or node.controls:
                break
            predicate = node.inputs[0]
        return predicate

    def _controls_of_unit(self, body: _BodyDraft, names: Iterable[str]) -> Sequence[str]:
        """Return the control inputs of the nodes in a unit, as nodes of the body."""
        controls: dict[str, None] = {}
        for name in names:
            for control in self._nodes[name].controls:
                if control in body.node_names:
                    controls[body.node_names[control]] = None
        return tuple(controls)


class _Captures:
    """The tensors of a body that the functions of one node take as arguments.

    `tensors`: The tensors, in the order of the arguments. `types`: Their types; both grow while sides are added.
    """

    def __init__(
        self, nodes: Mapping[str, Node], library: FunctionLibrary, local: Mapping[Input, Input], gates: frozenset[str]
    ) -> None:
        self.tensors: list[Input] = []
        self.types: list[DType] = []
        self._nodes, self._library, self._local, self._gates = nodes, library, local, gates
        self._arguments: dict[Input, Input] = {}

    def capture_side(self, members: Sequence[str]) -> dict[Input, Input]:
        """Return the arguments that the nodes of a side take, by the tensors that they stand for."""
        inside, local = set(members), dict[Input, Input]()
        for name in members:
            for tensor in self._nodes[name].inputs:
                if tensor.node not in inside:
                    self.capture(local, tensor)
        return local

    def capture(self, local: dict[Input, Input], tensor: Input) -> None:
        """Have an argument stand for a tensor: for an output of a Switch, its data."""
        if tensor in local:
            return
        outside = self._nodes[tensor.node].inputs[0] if tensor.node in self._gates else tensor
        captured = self._local.get(outside, outside)
        if captured not in self._arguments:
            self._arguments[captured] = self._library.argument_tensor(len(self.tensors))
            self.tensors.append(captured)
            self.types.append(self._library.dtype(outside))
        local[tensor] = self._arguments[captured]


def sibling_name(name: str, last: str) -> str:
    """Return a name beside another one: `cond/Merge` has the sibling `cond/If`."""
    scope, slash, _ = name.rpartition("/")
    return f"{scope}{slash}{last}"


def _source_names(node: Node) -> Iterable[str]:
    return (*(tensor.node for tensor in node.inputs), *node.controls)


def _in_cycles(after: Mapping[str, Sequence[str]], names: set[str]) -> set[str]:
    """Return the names on cycles, and between cycles, of names that are on cycles or behind them."""
    before: dict[str, list[str]] = {name: [] for name in names}
    count = {}
    for name in names:
        later = [other for other in after[name] if other in names]
        count[name] = len(later)
        for other in later:
            before[other].append(name)
    ends = [name for name in names if not count[name]]
    left = set(names)
    while ends:
        name = ends.pop()
        left.discard(name)
        for other in before[name]:
            count[other] -= 1
            if not count[other]:
                ends.append(other)
    return left


def _by_level(
    members: Sequence[str], owners: Mapping[str, Conditional], roots: Mapping[str, str], order: Sequence[str],
    levels: Mapping[str, int],
) -> list[str | _ChoiceUnit]:
    """Return nodes and units by level. No path leads between units of one level, so these units unite."""
    units: dict[tuple[int, Conditional], _ChoiceUnit] = {}
    for name in members:
        if name in owners:
            key = levels[roots[name]], owners[name]
            units.setdefault(key, _ChoiceUnit(owners[name])).names.append(name)
    by_level: list[list[str | _ChoiceUnit]] = [[] for _ in range(2 * (max(levels.values(), default=0) + 1))]
    for name in order:
        if name not in owners:
            by_level[2 * levels[name]].append(name)
    for (level, _), unit in units.items():
        by_level[2 * level + 1].append(unit)
    return [item for items in by_level for item in items]
