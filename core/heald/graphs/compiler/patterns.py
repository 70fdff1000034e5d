"""Patterns: a declarative rewriter for graph passes. A fusion is a row of a table, and `rewrite` applies the rows.

    Rule("squared difference", Pattern("Square", Pattern("Sub", "a", "b")), Pattern("SquaredDifference", "a", "b"))

A pattern is a tree of ops. Text is a hole: a name for any tensor, and the same name is the same tensor. `Known` is a
hole for a constant. The nodes below the root go, so nothing outside of the match may need them: no other consumer, no
control edge, no request for another place than the root's, and they are not kept. The replacement has the root's name,
place and control edges.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import HealdError, PluginError
from ...runtime.contract.graph_pass import PassContext
from ...runtime.contract.structural import CONST
from ...runtime.support.records import NamedTuple
from ..graph.graph import Graph, Node, TensorValue, topological_order
from ..graph.node import Input
from ..graph.rewriting import constant, new_name, placed_like

Array = np.ndarray[Any, Any]
_MOST_REWRITING_ROUNDS = 1000  # a table whose rules undo each other never comes to an end
_MOST_REPLACEMENTS, _MOST_REPLACEMENTS_PER_NODE = 1000, 100  # a rule that matches its own result may double the graph


class Pattern:
    """A node of one of the ops `op`, with these inputs: holes by name, `Known` holes, and patterns of other nodes.

    `attrs`: in a pattern, a value or a predicate for each attribute that decides. In a replacement, its attributes; a
        function of the Match returns a value. A replacement that has the root's op is the root with these changes. Any
        other one takes the attributes over that both ops have.
    `attrs_of`: in a replacement, the name of the matched node whose attributes it takes over; the root's by default.
    `commutes`: True to match two inputs in either order.
    `name`: the name under which `Match.nodes` has the node; the root is `root`.
    """

    __slots__ = ("attrs", "attrs_of", "commutes", "inputs", "name", "ops")

    def __init__(
        self, op: str | tuple[str, ...], *inputs: str | Known | Pattern, attrs: Mapping[str, Any] | None = None,
        commutes: bool = False, name: str = "", attrs_of: str = "root",
    ) -> None:
        self.ops = (op,) if isinstance(op, str) else op
        self.inputs, self.attrs, self.commutes, self.name = inputs, attrs or {}, commutes, name
        self.attrs_of = attrs_of


class Known(NamedTuple):
    """In a pattern, a hole for a Const whose elements satisfy `check`; an exact number stands for a scalar of this
    value. In a replacement, a new constant: an array, or a function of the Match that returns one."""

    name: str
    check: Callable[[Any], Any] | Array | np.generic | float | None = None

    def fits(self, value: Array) -> bool:
        if callable(self.check):
            return bool(self.check(value))
        return self.check is None or (value.shape == () and bool(value == self.check))


class Rule(NamedTuple):
    """A row: nodes that match `pattern` become `replacement`, which is a pattern or the name of a hole.

    `where`: a further condition on the Match.
    """

    name: str
    pattern: Pattern
    replacement: Pattern | str
    where: Callable[[Match], bool] | None = None


class Match:
    """A match of a pattern: `tensors` by hole, `nodes` by the names of patterns, and facts about them."""

    def __init__(self, facts: _Facts, root: Node) -> None:
        self.root, self._facts = root, facts
        self.tensors: dict[str, Input] = {}
        self.nodes: dict[str, Node] = {"root": root}
        self.inner: tuple[Node, ...] = ()

    def copy(self) -> Match:
        other = Match(self._facts, self.root)
        other.tensors, other.nodes, other.inner = {**self.tensors}, {**self.nodes}, self.inner
        return other

    def value(self, hole: str) -> Array:
        """The elements of a `Known` hole."""
        elements = self._facts.constant(self.tensors[hole])
        assert elements is not None
        return elements

    def attrs(self, name: str = "root") -> Mapping[str, Any]:
        """All attributes of a matched node, as kernels see them."""
        attrs: Mapping[str, Any] = self._facts.context.resolve(self.nodes[name]).attrs
        return attrs

    def shape(self, hole: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor as far as it is known before the run."""
        return self._facts.shape(self.tensors[hole])

    def is_bound(self) -> bool:
        """True where something beside consumers of its first output needs the root: it is kept, a node waits for it,
        or a further output is consumed."""
        return self.root.name in self._facts.bound

    def producer(self, hole: str) -> Node:
        """The node that a tensor comes from."""
        return self._facts.graph.nodes[self.tensors[hole].node]


def rewrite(graph: Graph, context: PassContext, rules: tuple[Rule, ...]) -> Graph:
    """The graph after the rules, until none applies. Of several rules for a node the first applies.

    Raises PluginError for a replacement that does not fit its op, and for rules that do not come to an end.
    """
    roots = {op for rule in rules for op in rule.pattern.ops}
    most_replacements = _MOST_REPLACEMENTS + _MOST_REPLACEMENTS_PER_NODE * len(graph.nodes)
    total, recent = 0, deque[Counter[str]](maxlen=len(rules) + 1)  # replacements: all, and of the last rounds
    for _ in range(_MOST_REWRITING_ROUNDS):
        if not any(node.op in roots for node in graph):
            return graph
        current_round = _Round(graph, context)
        after = current_round.apply_rules(rules)
        if after is graph:
            return graph
        graph = after
        recent.append(current_round.counts)
        total += current_round.counts.total()
        if total > most_replacements:
            break
    raise _endless_error(sum(recent, Counter()), total)


def _endless_error(counts: Counter[str], total: int) -> PluginError:
    """Return the error of rules that do not end. `counts`: the replacements of the last rounds, by rule."""
    names = " and ".join(f"'{name}'" for name in sorted(counts))
    rules, do = ("rules", "do") if len(counts) > 1 else ("rule", "does")
    return PluginError(f"the {rules} {names} {do} not come to an end: {total:,} replacements so far",
                       hint="a replacement must not match a rule that leads back to it")


class _Facts:
    """A graph with the facts that patterns read."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.context = graph, context
        self.consumers: dict[str, set[str]] = {}
        self.bound = set(context.kept)  # nodes that something beside the consumers of their first output needs
        for node in graph:
            for source in node.inputs:
                self.consumers.setdefault(source.node, set()).add(node.name)
                if source.index:
                    self.bound.add(source.node)
            self.bound.update(node.controls)
        self._inferred: Mapping[str, Any] | None = None

    def constant(self, source: Input) -> Array | None:
        node = self.graph.nodes[source.node]
        value = node.attrs.get("value")
        if node.op != CONST or node.controls or node.name in self.context.kept or not isinstance(value, TensorValue):
            return None
        try:
            return None if value.is_filled and value.shape else value.array()
        except HealdError:  # a malformed value: running the node raises the error
            return None

    def shape(self, source: Input) -> tuple[int | None, ...] | None:
        if self._inferred is None:
            self._inferred = self.context.infer(self.graph)
        outputs = self._inferred.get(source.node, ())
        shape: tuple[int | None, ...] | None = outputs[source.index].shape if source.index < len(outputs) else None
        return shape

    def is_inner(self, node: Node, root: Node) -> bool:
        """True where a node may go with the root, as far as the node itself tells."""
        return (node.name not in self.bound and not node.controls and node.device == root.device
                and node.attrs.get("_class") == root.attrs.get("_class"))

    def matches(self, rule: Rule, root: Node) -> Match | None:
        for match in self._matches_of_node(rule.pattern, root, Match(self, root)):
            if self._is_closed(match) and (rule.where is None or rule.where(match)):
                return match
        return None

    def _is_closed(self, match: Match) -> bool:
        """True where no node outside of the match consumes a node below the root."""
        inside = {match.root.name, *(node.name for node in match.inner)}
        return all(self.consumers[node.name] <= inside for node in match.inner)

    def _matches_of_node(self, pattern: Pattern, node: Node, match: Match) -> Iterator[Match]:
        if node.op not in pattern.ops or len(node.inputs) != len(pattern.inputs):
            return
        entry = self.context.resolve(node)
        if entry is None or not all(_fits(expected, entry.attrs.get(key)) for key, expected in pattern.attrs.items()):
            return
        match = match.copy()
        if pattern.name:
            match.nodes[pattern.name] = node
        orders = (node.inputs, node.inputs[::-1]) if pattern.commutes else (node.inputs,)
        for inputs in orders:
            matches = [match]
            for expected, source in zip(pattern.inputs, inputs, strict=True):
                matches = [after for before in matches for after in self._matches_of_tensor(expected, source, before)]
            yield from matches

    def _matches_of_tensor(self, expected: str | Known | Pattern, source: Input, match: Match) -> Iterator[Match]:
        if isinstance(expected, Pattern):
            node = self.graph.nodes[source.node]
            if source.index == 0 and (node in match.inner or self.is_inner(node, match.root)):
                for inner_match in self._matches_of_node(expected, node, match):
                    inner_match.inner = (*inner_match.inner, node)
                    yield inner_match
            return
        hole = expected if isinstance(expected, str) else expected.name
        if match.tensors.get(hole, source) != source:
            return
        value = self.constant(source) if isinstance(expected, Known) else None
        if isinstance(expected, str) or (value is not None and expected.fits(value)):
            after = match.copy()
            after.tensors[hole] = source
            yield after


def _fits(expected: Any, value: Any) -> bool:
    return bool(expected(value)) if callable(expected) else bool(expected == value)


class _Round:
    """The replacements of one round: no node takes part in two of them."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self._facts, self._context = _Facts(graph, context), context
        self._used_names = set(graph.nodes)
        self._used: set[str] = set()
        self._gone: set[str] = set()
        self._new: list[Node] = []
        self._instead: dict[Input, Input] = {}
        self.counts: Counter[str] = Counter()  # replacements by rule

    def apply_rules(self, rules: tuple[Rule, ...]) -> Graph:
        graph = self._facts.graph
        for node in topological_order(graph):
            for rule in rules:
                match = self._facts.matches(rule, node) if node.op in rule.pattern.ops else None
                if match is not None and self._is_replaceable(rule, match):
                    self._replace(rule, match)
                    break
        if not self._used:
            return graph
        others = [node for node in graph if node.name not in self._used]
        nodes = [after for node in (*others, *self._new)
                 if (after := self._with_replaced_inputs(node)) is not graph.nodes.get(node.name)]
        return graph.replace(nodes=nodes, without=self._gone)

    def _replace(self, rule: Rule, match: Match) -> None:
        self.counts[rule.name] += 1
        self._used.update(node.name for node in (match.root, *match.inner))
        self._gone.update(node.name for node in match.inner)
        if isinstance(rule.replacement, str):
            self._instead[Input(match.root.name)] = match.tensors[rule.replacement]
            self._gone.add(match.root.name)
        else:
            self._write_node(rule, rule.replacement, match, match.root.name)

    def _with_replaced_inputs(self, node: Node) -> Node:
        if not any(source in self._instead for source in node.inputs):
            return node
        return node.replace(inputs=[self._instead.get(source, source) for source in node.inputs])

    def _is_replaceable(self, rule: Rule, match: Match) -> bool:
        """True where no earlier replacement of this round concerns the match, and the root may go if it has to."""
        if any(node.name in self._used for node in (match.root, *match.inner)) or any(
                source.node in self._gone for source in match.tensors.values()):
            return False
        return not isinstance(rule.replacement, str) or (
            match.root.name not in self._facts.bound and not match.root.controls)

    def _write_node(self, rule: Rule, replacement: Pattern, match: Match, name: str) -> Input:
        """Add the nodes of a replacement, the innermost first."""
        root = match.root
        inputs = [self._write_input(rule, part, match) for part in replacement.inputs]
        attrs = {key: value(match) if callable(value) else value for key, value in replacement.attrs.items()}
        is_root = name == root.name
        if is_root and root.op == replacement.ops[0]:
            node = root.replace(inputs=inputs, attrs=attrs)
        else:
            op = self._context.ops.get(replacement.ops[0])
            shared_attrs = {key: value for key, value in match.nodes[replacement.attrs_of].attrs.items()
                            if key in op.attrs or key.startswith("_")}
            node = placed_like(Node(name, op.name, inputs, controls=root.controls if is_root else (),
                                    attrs=shared_attrs | attrs), root)
        if self._context.resolve(node) is None:
            raise PluginError(f"the replacement of rule '{rule.name}' does not fit op {node.op}", node=name,
                              op=node.op, hint="give its attributes in the rule")
        self._new.append(node)
        return Input(name)

    def _write_input(self, rule: Rule, part: str | Known | Pattern, match: Match) -> Input:
        if isinstance(part, str):
            return match.tensors[part]
        name = new_name(f"{match.root.name}/{part.name or 'inner'}", self._used_names)
        if isinstance(part, Pattern):
            return self._write_node(rule, part, match, name)
        value = part.check(match) if callable(part.check) else part.check
        self._new.append(placed_like(constant(name, np.asarray(value)), match.root))
        return Input(name)
