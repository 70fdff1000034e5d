"""Fusing: calls that a pack's kernel may do at once, since nobody else needs what goes between them.

A group grows from its last call backwards, to calls all of whose users are in it. What the group needs was there before
its last call, and nothing that leaves it was there earlier: so it can stand in the place of that call. A second head
cannot join; what is done to its result alone leaves the group, and makes one with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ..contract.kernel import FusedOp, FusionDef, KernelDef
from ..program.host_program import Call
from ..values.tensor import TensorMetadata

MOST = 32  # calls of a group: a kernel's text should stay one that a compiler is quick with

Fusions = Callable[[Call], Sequence[FusionDef]]


class Group:
    """`calls` in their order. `fusions`: those that take all of them, and `without_head` those that take all but the
    head, each in the order in which they are to be asked; `head`, if there is one, is one of the calls; `lead` makes
    its first argument, and is none of them."""

    def __init__(self, calls: list[Call], fusions: list[FusionDef], without_head: list[FusionDef]) -> None:
        self.calls = calls
        self.fusions = fusions
        self.without_head = without_head
        self.head: Call | None = None
        self.lead: Call | None = None

    @property
    def everything(self) -> list[Call]:
        return self.calls if self.lead is None else [self.lead, *self.calls]

    def join(self, call: Call, able: Sequence[FusionDef]) -> bool:
        """Take the call in, if a fusion that can have it takes all the others too."""
        if len(self.calls) == MOST:
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
        """Each fusion to be asked, and the calls that it would do."""
        for fusion in self.fusions:
            if self.lead is not None and self.lead.op in fusion.leads:
                yield fusion, self.everything
        for fusion in self.fusions:
            yield fusion, self.calls
        rest = [call for call in self.calls if call is not self.head]
        if 1 < len(rest) < len(self.calls):
            for fusion in self.without_head:
                yield fusion, rest
        if self.head is not None:
            yield from self._starts()

    def _starts(self) -> Iterator[tuple[FusionDef, list[Call]]]:
        """What a head can be done with where it is not all: the first calls, of which the last alone is needed."""
        for count in range(len(self.calls) - 1, 1, -1):
            start = self.calls[:count]
            inner = {register for call in start[:-1] for register in call.results}
            if self.head in start and all(inner.isdisjoint(call.args) for call in self.calls[count:]):
                for fusion in self.fusions:
                    yield fusion, start


def groups(
    calls: Sequence[Call], metas: Sequence[TensorMetadata], kept: Collection[int], fusions: Fusions
) -> dict[int, Group]:
    """The groups of two calls and more, by the id of the last call of each. `fusions`: of the call's pack, none where
    it cannot be fused; `kept`: registers that the function gives to others."""
    users: dict[int, list[Call]] = {}
    leaving = {*kept, *(register for call in calls for register in call.after)}
    for call in calls:
        for register in call.args:
            users.setdefault(register, []).append(call)
    home: dict[int, Group] = {}  # by the id of a call
    found: list[Group] = []
    for call in reversed(calls):
        able = fusions(call)
        if not able:
            continue
        group = None if leaving.intersection(call.results) else _home(call, users, home)
        if group is not None and metas[group.calls[-1].results[0]].dims != metas[call.results[0]].dims:
            group = None
        if group is not None and not group.join(call, able):
            group = _of_branch(group, call, able, users, fusions)
            if group is not None:
                found.append(group)
                home.update({id(member): group for member in group.calls})
                continue
        if group is None:
            ends = [f for f in able if call.op in f.ops]
            if not ends or not leaving.union(users).isdisjoint(call.results[1:]):
                continue
            group = Group([call], ends, ends)
            found.append(group)
        home[id(call)] = group
    made = [group for group in found if len(group.calls) > 1]
    maker = {register: call for call in calls for register in call.results}
    for group in made:
        lead = maker.get(group.head.args[0]) if group.head is not None and group.head.args else None
        is_free = lead is not None and (id(lead) not in home or len(home[id(lead)].calls) == 1)
        if lead is not None and is_free and leaving.isdisjoint(lead.results):
            using = [id(user) for register in lead.results for user in users.get(register, ())]
            if using == [id(group.head)] and any(lead.op in f.leads for f in fusions(lead) if f in group.fusions):
                group.lead = lead
    return {id(group.calls[-1]): group for group in made}


def _home(call: Call, users: Mapping[int, Sequence[Call]], home: Mapping[int, Group]) -> Group | None:
    """The group of all that use the call's results; none where that is a head, which takes what is there already."""
    using = [user for register in call.results for user in users.get(register, ())]
    group = home.get(id(using[0])) if using else None
    if group is None or any(home.get(id(user)) is not group or user is group.head for user in using):
        return None
    return group


def _of_branch(
    group: Group, head: Call, able: Sequence[FusionDef], users: Mapping[int, Sequence[Call]], fusions: Fusions
) -> Group | None:
    """A group of this call and of what needs nothing of the other group's head but only of it, which leaves that group;
    None where that is no group."""
    first, second = (_dependents(group.calls, each) for each in (group.head, head))
    branch = [call for call in group.calls if id(call) in second and id(call) not in first]
    inside = {id(call) for call in branch}
    *inner, last = branch or [head]
    leaks = any(id(user) not in inside for call in inner for r in call.results for user in users.get(r, ()))
    feeds = any(id(user) in inside for call in group.calls if id(call) not in inside
                for r in call.results for user in users.get(r, ()))
    ends = [f for f in fusions(last) if last.op in f.ops]
    if not branch or leaks or feeds or not ends or not users.keys().isdisjoint(last.results[1:]):
        return None
    made = Group([last], ends, ends)
    if not all(made.join(call, fusions(call)) for call in reversed(inner)) or not made.join(head, able):
        return None
    group.calls = [call for call in group.calls if id(call) not in inside]
    return made


def _dependents(calls: Sequence[Call], head: Call | None) -> set[int]:
    """The ids of the calls that need what the head gives, at whatever distance."""
    given = set(head.results) if head is not None else set()
    found = set()
    for call in calls:
        if not given.isdisjoint(call.args):
            given.update(call.results)
            found.add(id(call))
    return found


def fused_ops(calls: Sequence[Call], metas: Sequence[TensorMetadata]) -> tuple[tuple[int, ...], tuple[FusedOp, ...]]:
    """The registers that the calls need from outside, and what they do over these."""
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
    """One call in the place of the last of them: see `Call.fused`."""
    last = calls[-1]
    inner = {register for call in calls for register in call.results}
    after = tuple(dict.fromkeys(r for call in calls for r in call.after if r not in inner))
    return Call(f"{kernel.pack}.{kernel.op}", inputs, last.results[:1],
                {"_fused": tuple(call.node for call in calls)}, last.stream, last.node, location=last.location,
                after=after)
