"""Counted loops: While loops whose number of turns is known before the first of them.

The condition compares counters with numbers that no turn changes, and each turn adds one to the counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from heald.api import Func, Function, Input, Node, dtypes

from .graph_view import GraphView

LOOPS = ("While", "StatelessWhile")
MOST_NODES = 1000  # of a condition or a body
DEEPEST_CALLS = 8  # of functions within a body
ADDITIONS = ("Add", "AddV2")

Bound = int | Input  # a known number, or a tensor outside the loop


class CountedLoop(NamedTuple):
    """A loop of `min(bounds) - start` turns, or of none.

    `counters`: the variables that are equal to `start` plus the number of the turn.
    `invariants`: the variables that no turn changes.
    `start`: the first number: the value of each counter before the loop.
    `bounds`: the numbers below which the counters stay.
    """

    node: Node
    cond: Function
    body: Function
    counters: frozenset[int]
    invariants: frozenset[int]
    start: Bound
    bounds: tuple[Bound, ...]


def find_counted_loop(view: GraphView, node: Node) -> CountedLoop | None:
    """Return a loop node as a counted loop. None for other loops, and for functions with effects."""
    entry = view.resolve(node) if node.op in LOOPS else None
    if entry is None:
        return None
    cond, body = (_plain_function(view, entry.attrs[name]) for name in ("cond", "body"))
    count = len(node.inputs)
    if cond is None or body is None or len(cond.outputs) != 1:
        return None
    if not len(cond.inputs) == len(body.inputs) == len(body.outputs) == count:
        return None
    return _Loop(view, node, cond, body).as_counted()


def _plain_function(view: GraphView, func: Func, depth: int = 0) -> Function | None:
    """A function without attributes and effects, its callees included. None for any other."""
    function = view.graph.functions.get(func.name)
    if function is None or func.attrs or function.control_ret or len(function.nodes) > MOST_NODES:
        return None
    for node in function.nodes.values():
        entry = view.resolve(node)
        if entry is None or node.op in view.graph.functions:
            return None
        callees = list(_functions_of(entry.attrs.values()))
        if entry.op.stateful and not callees:
            return None
        if callees and (depth == DEEPEST_CALLS
                        or any(_plain_function(view, callee, depth + 1) is None for callee in callees)):
            return None
    return function


def _functions_of(values: object) -> Iterator[Func]:
    for value in values if hasattr(values, "__iter__") else ():
        if isinstance(value, Func):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, Func))


def trace_identities(function: Function, tensor: Input | None) -> Input | None:
    """A tensor behind the Identity nodes of a function."""
    for _ in range(len(function.nodes) + 1):
        node = None if tensor is None else function.nodes.get(tensor.node)
        if node is None or node.op != "Identity" or not node.inputs:
            return tensor
        tensor = node.inputs[0]
    return None


def argument_index(function: Function, tensor: Input) -> int | None:
    """The index of the argument that a tensor of a function is."""
    source = trace_identities(function, tensor)
    names = [arg.name for arg in function.inputs]
    return names.index(source.node) if source is not None and source.node in names else None


class _Loop:
    def __init__(self, view: GraphView, node: Node, cond: Function, body: Function) -> None:
        self._view = view
        self._node = node
        self._cond = cond
        self._body = body
        self.invariants = frozenset(index for index in range(len(node.inputs)) if self._is_invariant(index))

    def _is_invariant(self, index: int) -> bool:
        result = trace_identities(self._body, self._body.ret.get(self._body.outputs[index].name))
        return result is not None and argument_index(self._body, result) == index

    def as_counted(self) -> CountedLoop | None:
        bounds_by_counter = self._bounds()
        if not bounds_by_counter:
            return None
        first, *others = dict.fromkeys(index for index, _ in bounds_by_counter)
        if not self._is_counter(first):
            return None
        start = self._number_of(first)
        equal = [index for index in range(len(self._node.inputs)) if index != first and self._is_counter(index)
                 and start is not None and self._number_of(index) == start]
        if any(index not in equal for index in others):
            return None
        return CountedLoop(self._node, self._cond, self._body, frozenset((first, *equal)), self.invariants,
                           self._node.inputs[first] if start is None else start,
                           tuple(dict.fromkeys(bound for _, bound in bounds_by_counter)))

    def _bounds(self) -> list[tuple[int, Bound]]:
        """The counters of the condition, each with its bound. Empty for a condition that asks for anything else."""
        bounds: list[tuple[int, Bound]] = []
        remaining = [self._cond.ret.get(self._cond.outputs[0].name)]
        while remaining:
            tensor = trace_identities(self._cond, remaining.pop())
            node = None if tensor is None else self._cond.nodes.get(tensor.node)
            if node is not None and node.op == "LogicalAnd" and len(bounds) + len(remaining) < len(self._cond.nodes):
                remaining += node.inputs
                continue
            pair = None if node is None else self._bound_of(node)
            if pair is None:
                return []
            bounds.append(pair)
        return bounds

    def _bound_of(self, node: Node) -> tuple[int, Bound] | None:
        """The counter and the bound that a comparison names."""
        if node.op not in ("Less", "Greater"):
            return None
        low, high = node.inputs if node.op == "Less" else node.inputs[::-1]
        counter, bound = argument_index(self._cond, low), self._number(self._cond, high)
        return None if counter is None or bound is None else (counter, bound)

    def _number(self, function: Function, tensor: Input) -> Bound | None:
        """An int32 scalar that is the same in every turn."""
        index = argument_index(function, tensor)
        if index is not None:
            if index not in self.invariants or not self._is_scalar(self._node.inputs[index]):
                return None
            number = self._number_of(index)
            return self._node.inputs[index] if number is None else number
        source = trace_identities(function, tensor)
        node = None if source is None else function.nodes.get(source.node)
        entry = self._view.resolve(node) if node is not None and node.op == "Const" else None
        value = None if entry is None else entry.attrs["value"]
        if value is None or value.dtype is not dtypes.int32 or tuple(value.shape) != ():
            return None
        return int(value.array())

    def _is_scalar(self, tensor: Input) -> bool:
        return self._view.dtype(tensor) is dtypes.int32 and self._view.shape(tensor) == ()

    def _number_of(self, index: int) -> int | None:
        tensor = self._node.inputs[index]
        if not self._is_scalar(tensor) or not self._view.is_known_tensor(tensor):
            return None
        return int(self._view.value(tensor))

    def _is_counter(self, index: int) -> bool:
        """True for a variable that begins as an int32 scalar, and to which each turn adds one."""
        result = trace_identities(self._body, self._body.ret.get(self._body.outputs[index].name))
        node = None if result is None else self._body.nodes.get(result.node)
        if node is None or node.op not in ADDITIONS or not self._is_scalar(self._node.inputs[index]):
            return False
        return any(argument_index(self._body, one) == index and self._number(self._body, other) == 1
                   for one, other in (node.inputs, node.inputs[::-1]))
