"""Fusion: groups calls that one kernel of a pack may do at once, since their inner values have no other consumers.

A group grows backwards from its last call; a producer joins when all its consumers are in the group. All inputs of the
group exist before its last call, and none of its results is needed earlier. So the fused call can replace the last
call. A second head cannot join. The calls that depend on that head alone leave the group, and form one with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby, islice

from ..contract.kernel import FusedOp, FusionDef, FusionRefusal, KernelDef
from ..program.host_program import Call
from ..values.tensor import TensorMetadata

SHOWN_CONSUMERS = 2  # in the reason of a refusal
MOST_FUSED_CALLS = 32  # calls of a group, so that compilers stay quick with the text of its kernel

Fusions = Callable[[Call], Sequence[FusionDef]]


class FusionGroup:
    """Calls to be fused.

    `calls`: the members, in their order.
    `fusions`: fusions that take all members, in the order in which they are to be asked.
    `without_head`: fusions that take all members but the head, in the same order.
    `head`: a member that begins a fusion, if there is one.
    `lead`: a call before the head that computes the head's first argument; it is no member.
    """

    def __init__(self, calls: list[Call], fusions: list[FusionDef], without_head: list[FusionDef]) -> None:
        self.calls = calls
        self.fusions = fusions
        self.without_head = without_head
        self.head: Call | None = None
        self.lead: Call | None = None

    @property
    def calls_with_lead(self) -> list[Call]:
        return self.calls if self.lead is None else [self.lead, *self.calls]

    def join(self, call: Call, able: Sequence[FusionDef]) -> bool:
        """Add the call if a fusion that can have it takes all other members too. Returns True on success."""
        if len(self.calls) == MOST_FUSED_CALLS:
            return False
        taking = [f for f in self.fusions if f in able and call.op in f.ops]
        if taking:
            self.without_head = [f for f in self.without_head if f in able and call.op in f.ops]
        elif self.head is None:
            taking = [f for f in self.fusions if f in able and call.op in f.heads]
            self.head = call if taking else None
        if not taking:
            return False
        self.calls.insert(0, call)
        self.fusions = taking
        return True

    def attempts(self) -> Iterator[tuple[FusionDef, list[Call]]]:
        """Yield each fusion to be asked, with the calls that it would cover."""
        for fusion in self.fusions:
            if self.lead is not None and self.lead.op in fusion.leads:
                yield fusion, self.calls_with_lead
        for fusion in self.fusions:
            yield fusion, self.calls
        others = [call for call in self.calls if call is not self.head]
        if 1 < len(others) < len(self.calls):
            for fusion in self.without_head:
                yield fusion, others
        if self.head is not None:
            yield from self._prefix_attempts()

    def _prefix_attempts(self) -> Iterator[tuple[FusionDef, list[Call]]]:
        """Yield fusions of the group's first calls, with the head, for the case that no fusion takes all calls.

        Longest first. Of these calls only the last one has consumers among the remaining calls.
        """
        for count in range(len(self.calls) - 1, 1, -1):
            start = self.calls[:count]
            inner = {register for call in start[:-1] for register in call.results}
            if self.head in start and all(inner.isdisjoint(call.args) for call in self.calls[count:]):
                for fusion in self.fusions:
                    yield fusion, start


def find_fusion_groups(
    calls: Sequence[Call], metas: Sequence[TensorMetadata], read_outside: Collection[int], fusions: Fusions
) -> tuple[dict[int, FusionGroup], dict[int, FusionGroup]]:
    """Return the groups of two calls and more by the id of each group's last call, and the group of each call by its
    id, single calls included.

    `fusions`: returns the fusions of a call's pack, none when the call cannot be fused.
    `read_outside`: registers with consumers outside the function.
    """
    users: dict[int, list[Call]] = {}
    leaving = {*read_outside, *(register for call in calls for register in call.after)}
    for call in calls:
        for register in call.args:
            users.setdefault(register, []).append(call)
    home: dict[int, FusionGroup] = {}  # id of a call -> its group
    fusion_groups: list[FusionGroup] = []
    for call in reversed(calls):
        able = fusions(call)
        if not able:
            continue
        group = None if leaving.intersection(call.results) else _group_of_consumers(call, users, home)
        if group is not None and metas[group.calls[-1].results[0]].dims != metas[call.results[0]].dims:
            group = None
        if group is not None and not group.join(call, able):
            group = _split_branch(group, call, able, users, fusions)
            if group is not None:
                fusion_groups.append(group)
                home.update({id(member): group for member in group.calls})
                continue
        if group is None:
            ends = [f for f in able if call.op in f.ops]
            if not ends or any(r in users or r in leaving for r in call.results[1:]):
                continue
            group = FusionGroup([call], ends, ends)
            fusion_groups.append(group)
        home[id(call)] = group
    formed = [group for group in fusion_groups if len(group.calls) > 1]
    producer = {register: call for call in calls for register in call.results}
    for group in formed:
        lead = producer.get(group.head.args[0]) if group.head is not None and group.head.args else None
        is_free = lead is not None and (id(lead) not in home or len(home[id(lead)].calls) == 1)
        if lead is not None and is_free and leaving.isdisjoint(lead.results):
            using = [id(user) for register in lead.results for user in users.get(register, ())]
            if using == [id(group.head)] and any(lead.op in f.leads for f in fusions(lead) if f in group.fusions):
                group.lead = lead
    return {id(group.calls[-1]): group for group in formed}, home


def _group_of_consumers(
    call: Call, users: Mapping[int, Sequence[Call]], home: Mapping[int, FusionGroup]
) -> FusionGroup | None:
    """Return the group of all consumers of the call's results, else None.

    A head among the consumers also gives None: it reads values from before its group.
    """
    using = [user for register in call.results for user in users.get(register, ())]
    group = home.get(id(using[0])) if using else None
    if group is None or any(home.get(id(user)) is not group or user is group.head for user in using):
        return None
    return group


def _split_branch(
    group: FusionGroup, head: Call, able: Sequence[FusionDef], users: Mapping[int, Sequence[Call]], fusions: Fusions
) -> FusionGroup | None:
    """Split a branch off the group and return it as a group with this head, or None when it forms no group.

    The branch has the calls that depend on this head and not on the group's head.
    """
    first, second = (_dependents(group.calls, some_head) for some_head in (group.head, head))
    branch = [call for call in group.calls if id(call) in second and id(call) not in first]
    inside = {id(call) for call in branch}
    *inner, last = branch or [head]
    leaks = any(id(user) not in inside for call in inner for r in call.results for user in users.get(r, ()))
    feeds = any(id(user) in inside for call in group.calls if id(call) not in inside
                for r in call.results for user in users.get(r, ()))
    ends = [f for f in fusions(last) if last.op in f.ops]
    if not branch or leaks or feeds or not ends or not users.keys().isdisjoint(last.results[1:]):
        return None
    split_off = FusionGroup([last], ends, ends)
    if not all(split_off.join(call, fusions(call)) for call in reversed(inner)) or not split_off.join(head, able):
        return None
    group.calls = [call for call in group.calls if id(call) not in inside]
    return split_off


def _dependents(calls: Sequence[Call], head: Call | None) -> set[int]:
    """Return the ids of the calls that depend on the head, directly or not."""
    registers = set(head.results) if head is not None else set()
    dependents = set()
    for call in calls:
        if not registers.isdisjoint(call.args):
            registers.update(call.results)
            dependents.add(id(call))
    return dependents


def fused_ops(calls: Sequence[Call], metas: Sequence[TensorMetadata]) -> tuple[tuple[int, ...], tuple[FusedOp, ...]]:
    """Return the registers that the calls need from outside, and the calls as ops over these."""
    inner = {register for call in calls for register in call.results}
    inputs = tuple(dict.fromkeys(a for call in calls for a in call.args if a not in inner))
    number = {register: i for i, register in enumerate(inputs)}
    ops = []
    for call in calls:
        args = tuple(number[a] for a in call.args)
        number.update({register: len(number) + i for i, register in enumerate(call.results)})
        ops.append(FusedOp(call.op, call.attrs, args, tuple(number[r] for r in call.results),
                           tuple(metas[r] for r in call.results)))
    return inputs, tuple(ops)


def fused_call(kernel: KernelDef, calls: Sequence[Call], inputs: tuple[int, ...]) -> Call:
    """Return the fused call that replaces the last of these calls (see `Call.fused`)."""
    last = calls[-1]
    inner = {register for call in calls for register in call.results}
    after = tuple(dict.fromkeys(r for call in calls for r in call.after if r not in inner))
    return Call(f"{kernel.pack}.{kernel.op}", inputs, last.results[:1],
                {"_fused": tuple(call.node for call in calls)}, last.stream, last.node, location=last.location,
                after=after)


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
        consumers = [user for register in call.results for user in users.get(register, ())]
        own_group = home.get(id(call))
        for group in _groups_of(consumers, home):
            if group is own_group or group.lead is call:
                continue
            able = fusions(call)
            names = [f"{f.kernel.pack}.{f.kernel.op}" for f in group.fusions
                     if f in able and (call.op in f.ops or call.op in f.heads)]
            if names:
                reason = _reason_apart(call, group, consumers, leaving, metas)
                yield FusionRefusal(names[0], call.node, reason,
                                    (call.node, *(member.node for member in group.calls)))


def _groups_of(consumers: Sequence[Call], home: Mapping[int, FusionGroup]) -> Collection[FusionGroup]:
    """The groups of the consumers, but those of which the call is an input of the head."""
    groups = {id(group): group for user in consumers
              if (group := home.get(id(user))) is not None and user is not group.head}
    return groups.values()


def _reason_apart(
    call: Call, group: FusionGroup, consumers: Sequence[Call], leaving: Collection[int],
    metas: Sequence[TensorMetadata],
) -> str:
    members = {id(member) for member in group.calls}
    users_outside = groupby(user.node for user in consumers if id(user) not in members)  # a node may read it twice
    outside = [name for name, _ in islice(users_outside, SHOWN_CONSUMERS + 1)]  # of any number: the first ones do
    if any(register in leaving for register in call.results):
        return "its value is fetched, or another node waits for it"
    if outside:
        names = ", ".join(f"'{name}'" for name in outside[:SHOWN_CONSUMERS])
        return f"its value is also read by {names}{' and more' if len(outside) > SHOWN_CONSUMERS else ''}"
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
