"""The reason why a pass removed a node, as it follows from the graphs before and after the pass.

A removed node is traced through its consumers before the pass, over other removed nodes, to a node that stayed:

    the node that stayed reads at this input, after the pass        the removed node is
    a source of the removed node                                    skipped
    an older node with the same op and attributes                   merged into it
    a constant                                                      folded into it
    another node                                                    replaced by it
    nothing of its own, for its inputs are others                   part of the node that stayed

A node whose consumers lead to no node that stayed was dead. One that a skipped node alone read was removed with it. A
node that stayed and only waited for the removed node no longer awaits it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .scope_edges import in_flow_order

DEAD, SKIPPED, MERGED, FOLDED = "dead", "skipped: its consumers read", "merged into", "folded into the constant"
REPLACED, PART = "replaced by", "part of"
WITH, UNAWAITED = "removed with", "no longer awaited by"
IN_GENERAL = {SKIPPED: "skipped", MERGED: "merged into equal nodes", FOLDED: "folded into constants",
              PART: "part of others", REPLACED: "replaced", WITH: "removed with skipped nodes",
              UNAWAITED: "no longer awaited"}


class Removal(NamedTuple):
    """`word`: one of the words above. `target`: the node that it names; "" for a dead node."""

    word: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.target}".rstrip()


def removal_reasons(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Removal]:
    """Return the reason for each node that the second graph lacks."""
    removed = [name for name in before if name not in after]
    consumers: dict[str, list[str]] = {name: [] for name in removed}
    for name, node in before.items() if removed else ():
        for source in _sources(node):
            if source in consumers:
                consumers[source].append(name)
    reasons: dict[str, Removal] = {}
    sources = {name: _sources(before[name]) for name in removed}
    for name in reversed(in_flow_order(removed, sources)):
        candidates = [_reason_by(name, consumer, before, after, reasons) for consumer in consumers[name]]
        reasons[name] = min(filter(None, candidates), key=lambda reason: reason.word in (WITH, UNAWAITED),
                            default=Removal(DEAD))
    return reasons


def _reason_by(name: str, consumer: str, before: Mapping[str, Any], after: Mapping[str, Any],
               reasons: Mapping[str, Removal]) -> Removal | None:
    """Return the reason that follows from one consumer before the pass; None where it tells nothing."""
    if consumer in after:
        return _reason_at(name, before[consumer], after[consumer], before, after)
    outer = reasons.get(consumer)
    if outer is None or outer.word == DEAD:
        return None
    if outer.word == SKIPPED:
        return Removal(WITH, consumer)
    if outer.word == MERGED:  # both of two equal nodes have equal sources, at equal inputs
        return _reason_at(name, before[consumer], before[outer.target], before, after)
    return outer


def _reason_at(name: str, reader: Any, reader_after: Any, before: Mapping[str, Any], after: Mapping[str, Any],
               ) -> Removal:
    """Return the reason by the tensors that a consumer reads before and after."""
    if reader_after.op == "Const" != before[name].op and reader.op != "Const":
        return Removal(FOLDED, reader_after.name)
    if all(tensor.node != name for tensor in reader.inputs):
        return Removal(UNAWAITED, reader_after.name)
    inputs = [(old.node, new.node) for old, new in zip(reader.inputs, reader_after.inputs, strict=False)]
    substitute = next((new for old, new in inputs if old == name), "")
    is_same_form = len(reader.inputs) == len(reader_after.inputs)
    if not substitute or not is_same_form or substitute == name:
        return Removal(PART, reader_after.name)
    if _is_behind(substitute, name, before, after):
        return Removal(SKIPPED, substitute)
    new = after.get(substitute)
    if substitute in before and _is_alike(before[substitute], before[name]):
        return Removal(MERGED, substitute)
    return Removal(FOLDED if new is not None and new.op == "Const" else REPLACED, substitute)


def _is_alike(one: Any, other: Any) -> bool:
    """True for the same op and attributes. The elements of constants are not compared: the pass has done that."""
    return one.op == other.op and one.attrs.keys() == other.attrs.keys() and all(
        key == "value" or value == other.attrs[key] for key, value in one.attrs.items())


def _is_behind(substitute: str, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """True when a node is a source of a removed node, over removed nodes alone."""
    stack, visited = [name], {name}
    while stack:
        for source in _sources(before[stack.pop()]):
            if source == substitute:
                return True
            if source in before and source not in after and source not in visited:
                visited.add(source)
                stack.append(source)
    return False


def _sources(node: Any) -> list[str]:
    return [*dict.fromkeys((*(tensor.node for tensor in node.inputs), *node.controls))]


def word_counts(reasons: Iterable[Removal]) -> list[tuple[int, str]]:
    """Return the number of nodes by word, the commonest first. The word ends as it does without a target."""
    counts = Counter(IN_GENERAL.get(reason.word, reason.word) for reason in reasons)
    return [(count, word) for word, count in counts.most_common()]
