"""Outputs of a graph that declares none: the nodes whose tensors no node takes.

A graph from training has more such nodes than results. Each of these is left out, with the reason: a node in a loop or
in a branch of TensorFlow 1, which no step may fetch; a variable of a lowered loop where another one is taken; a node
that only reads or changes state; a record for tools, such as a summary; a gradient; a mark that a file is written,
which is a constant behind a control edge. Records and gradients do not count as consumers: a loss that only they take
is an output. A graph without other nodes has these nodes as its outputs, records left aside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from ...errors import HealdError
from ...runtime.contract.structural import CONST, ENTERS, EXITS, IDENTITY, MERGES, PLACEHOLDERS, SWITCHES
from ...runtime.support.records import NamedTuple
from ...runtime.values import dtypes
from ..graph.node import Node
from ..graph.traversal import consumers, unconsumed_nodes
from .resolve import Resolved

Entries = Mapping[str, Resolved | HealdError]
IN_LOOP, IN_BRANCH = "it is in a loop", "it is in a branch"
LOOP_VARIABLE = "it is a variable of a loop of which another one is taken"
STATE, RECORD = "it reads or changes a variable or table", "it repeats its input, or is a record for tools"
GRADIENT, MARK = "it is a gradient", "it marks the end of effects"
_LOWERED = re.compile(r"/exit/_\d+$")  # the names that TensorFlow's lowering of While gives
_GRADIENTS = "gradients"  # the scope that TensorFlow gives to gradients; later ones have a number behind it
_MARKABLE = frozenset((CONST, IDENTITY)) | PLACEHOLDERS


class DefaultOutputs(NamedTuple):
    """The nodes of the outputs, in the graph's order, and the reasons why other nodes are left out.

    Nodes that could not be resolved are among `names`.
    """

    names: list[str]
    left_out: dict[str, str]


def default_outputs(nodes: Mapping[str, Node], entries: Entries) -> DefaultOutputs:
    """Return the default outputs of a graph."""
    records = _unused_records(nodes, entries)
    consumers_left = {name: node for name, node in nodes.items() if name not in records}
    candidates = [name for name in unconsumed_nodes(consumers_left) if _has_tensors(entries[name])]
    reasons = _reasons(nodes, entries, candidates)
    names = [name for name in candidates if name not in reasons]
    left_out = records | reasons
    if not names:
        names = [name for name in unconsumed_nodes(nodes)
                 if _has_tensors(entries[name]) and not _is_record(entries[name])]
    return DefaultOutputs(names, {name: left_out[name] for name in nodes if name in left_out and name not in names})


def _has_tensors(entry: Resolved | HealdError) -> bool:
    return isinstance(entry, HealdError) or bool(entry.output_tensors)


def _is_record(entry: Resolved | HealdError) -> bool:
    return isinstance(entry, Resolved) and entry.op.for_effect


def _unused_records(nodes: Mapping[str, Node], entries: Entries) -> dict[str, str]:
    """Return the records and gradients that only records and gradients take, with the reason."""
    uses = Counter(source for node in nodes.values() for source in {i.node for i in node.inputs})
    stack = [name for name in nodes if not uses[name]]
    unused: dict[str, str] = {}
    while stack:
        name = stack.pop()
        entry = entries[name]
        if not _has_tensors(entry) or _is_state(nodes, entries, name):
            continue
        if not (_is_record(entry) or _is_gradient(name)):
            continue
        unused[name] = RECORD if _is_record(entry) else GRADIENT
        for source in {i.node for i in nodes[name].inputs}:
            uses[source] -= 1
            if not uses[source] and source in nodes:
                stack.append(source)
    return unused


def _reasons(nodes: Mapping[str, Node], entries: Entries, candidates: Iterable[str]) -> dict[str, str]:
    ops = {node.op for node in nodes.values()}
    consumers_by_name = consumers(nodes) if ops & (ENTERS | SWITCHES) else {}
    in_loops = _between(nodes, consumers_by_name, ENTERS, EXITS)
    in_branches = _between(nodes, consumers_by_name, SWITCHES, MERGES | EXITS)
    loop_variables = _untaken_exits(nodes, consumers_by_name, candidates)
    rules: tuple[tuple[str, Callable[[str], bool]], ...] = (
        (IN_LOOP, lambda name: name in in_loops or _is_inner_exit(nodes, nodes[name], in_loops)),
        (IN_BRANCH, in_branches.__contains__),
        (LOOP_VARIABLE, loop_variables.__contains__),
        (STATE, lambda name: _is_state(nodes, entries, name)), (RECORD, lambda name: _is_record(entries[name])),
        (MARK, lambda name: _is_mark(nodes, nodes[name])))
    reasons = {name: next((reason for reason, applies in rules if applies(name)), None) for name in candidates}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _between(
    nodes: Mapping[str, Node], consumers_by_name: Mapping[str, list[Node]], first: Collection[str],
    last: Collection[str]
) -> set[str]:
    """Return the nodes with ops of `first`, and their dependents up to nodes with ops of `last`, without these."""
    between: set[str] = set()
    stack = [node for node in nodes.values() if node.op in first] if consumers_by_name else []
    while stack:
        node = stack.pop()
        if node.name not in between and node.op not in last:
            between.add(node.name)
            stack += consumers_by_name[node.name]
    return between


def _untaken_exits(
    nodes: Mapping[str, Node], consumers_by_name: Mapping[str, list[Node]], candidates: Iterable[str]
) -> set[str]:
    """Return the candidates that are ends of lowered loops of which a node takes another end."""
    exits = [node for node in nodes.values() if node.op in EXITS] if consumers_by_name else []
    taken_loops = {_frame_of(nodes, node) for node in exits if consumers_by_name[node.name]} - {None}
    exit_names = {node.name for node in exits if _LOWERED.search(node.name)}
    return {name for name in candidates if name in exit_names and _frame_of(nodes, nodes[name]) in taken_loops}


def _frame_of(nodes: Mapping[str, Node], node: Node) -> object:
    """Return the frame of the loop that an Exit ends; None for no loop."""
    enter = _enter_of(nodes, node)
    return None if enter is None else enter.attrs.get("frame_name")


def _enter_of(nodes: Mapping[str, Node], node: Node) -> Node | None:
    """Return the Enter of the variable that an Exit ends, behind its Switch and its Merge."""
    for ops in (EXITS, SWITCHES, MERGES):
        if node.op not in ops or not node.inputs or node.inputs[0].node not in nodes:
            return None
        node = nodes[node.inputs[0].node]
    return node


def _is_inner_exit(nodes: Mapping[str, Node], node: Node, in_loops: Collection[str]) -> bool:
    """Return True for the end of a loop's variable that came from a node in an outer loop."""
    enter = _enter_of(nodes, node)
    return enter is not None and any(source.node in in_loops for source in enter.inputs)


def _is_state(nodes: Mapping[str, Node], entries: Entries, name: str) -> bool:
    """Return True for a node, or an Identity of one, that takes handles alone."""
    visited: set[str] = set()
    while (node := nodes[name]).op == IDENTITY and name not in visited and node.inputs and node.inputs[0].node in nodes:
        visited.add(name)
        name = node.inputs[0].node
    entry = entries[name]
    args = entry.op.inputs if isinstance(entry, Resolved) else ()
    return bool(args) and all(arg.dtype is dtypes.resource for arg in args)


def _is_gradient(name: str) -> bool:
    scopes = name.split("/")[:-1]
    return any(scope == _GRADIENTS or scope.removeprefix(f"{_GRADIENTS}_").isdecimal() for scope in scopes)


def _is_mark(nodes: Mapping[str, Node], node: Node) -> bool:
    """Return True for an Identity behind control edges whose value is a constant or a default."""
    if node.op != IDENTITY or not node.controls:
        return False
    visited: set[str] = set()
    while node.name not in visited and node.inputs and node.op in _MARKABLE and node.inputs[0].node in nodes:
        visited.add(node.name)
        node = nodes[node.inputs[0].node]
    return node.op == CONST
