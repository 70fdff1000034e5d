"""Fusion refusals: the reasons why a call stays apart from the group of its consumers, for `heald explain`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..program.fusion_refusal import FusionRefusal
from ..program.host_program import Call
from ..values.tensor import TensorMetadata
from .fusion import MOST_FUSED_CALLS, FusionGroup, Fusions

SHOWN_NODES = 2  # consumers in a reason


def find_refusals(
    calls: Sequence[Call], metas: Sequence[TensorMetadata], read_outside: Collection[int], fusions: Fusions,
    home: Mapping[int, FusionGroup],
) -> Iterator[FusionRefusal]:
    """Yield a refusal for each call that a fusion of its consumer's group takes, and that is not in this group.

    `home`: id of a call -> its group, as grown; the others as of `find_fusion_groups`.
    """
    users: dict[int, list[Call]] = {}
    for call in calls:
        for register in call.args:
            users.setdefault(register, []).append(call)
    leaving = {*read_outside, *(register for call in calls for register in call.after)}
    for call in calls:
        able = fusions(call)
        consumers = [user for register in call.results for user in users.get(register, ())] if able else []
        for group in _groups_of(consumers, home):
            names = [f"{f.kernel.pack}.{f.kernel.op}" for f in group.fusions
                     if f in able and (call.op in f.ops or call.op in f.heads)]
            if names and home.get(id(call)) is not group and group.lead is not call:
                reason = _reason(call, group, consumers, leaving, metas)
                yield FusionRefusal(names[0], call.node, reason,
                                    (call.node, *(member.node for member in group.calls)))


def _groups_of(consumers: Sequence[Call], home: Mapping[int, FusionGroup]) -> Collection[FusionGroup]:
    """The groups of the consumers, but those of which the call is an input of the head."""
    groups = {id(group): group for user in consumers
              if (group := home.get(id(user))) is not None and user is not group.head}
    return groups.values()


def _reason(
    call: Call, group: FusionGroup, consumers: Sequence[Call], leaving: Collection[int],
    metas: Sequence[TensorMetadata],
) -> str:
    members = {id(member) for member in group.calls}
    outside = dict.fromkeys(user.node for user in consumers if id(user) not in members)
    if any(register in leaving for register in call.results):
        return "its value is fetched, or another node waits for it"
    if outside:
        names = ", ".join(f"'{name}'" for name in [*outside][:SHOWN_NODES])
        return f"its value is also read by {names}{' and more' if len(outside) > SHOWN_NODES else ''}"
    if any(user is group.head for user in consumers):
        return f"its value is also an input of '{group.head.node if group.head else ''}', with which the fusion begins"
    ours, theirs = metas[call.results[0]].dims, metas[group.calls[-1].results[0]].dims
    if ours != theirs:
        return f"its shape {list(ours)} is not the shape {list(theirs)} of '{group.calls[-1].node}'"
    if len(group.calls) == MOST_FUSED_CALLS:
        return f"a fusion has at most {MOST_FUSED_CALLS} nodes"
    if group.head is not None:
        return f"the fusion begins with '{group.head.node}' already"
    return "no fusion takes it with the other nodes"
