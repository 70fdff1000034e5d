"""Patterns: calls that a pack's own function finds, for one kernel of it to do at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

from ..host_program import Call
from ..kernel import FusedOp, PatternDef
from ..tensor import ValueInfo

Patterns = Callable[[Call], Sequence[PatternDef]]


def found(
    calls: Sequence[Call], known: Sequence[ValueInfo], kept: Collection[int], patterns: Patterns
) -> Iterator[tuple[PatternDef, list[Call]]]:
    """The patterns from the last call to the first, and what each would do, in order. `patterns`: of the call's pack,
    none where it cannot be done with others; `kept`: registers that the function gives to others. No two have a call in
    common."""
    able = [call for call in calls if patterns(call)]
    users: dict[int, list[int]] = {register: [] for call in calls for register in (*call.results, *call.args)}
    for call in calls:
        for register in call.args:
            users[register].append(id(call))
    leaving = {*kept, *(register for call in calls for register in call.after)}
    made: dict[str, dict[int, FusedOp]] = {}  # by pack
    maker = {call.results[0]: call for call in able if call.results}
    for call in maker.values():
        op = FusedOp(call.op, call.attrs, call.args, call.results, tuple(known[r].meta for r in call.results))
        made.setdefault(call.pack, {}).update(dict.fromkeys(call.results, op))
    position = {register: i for i, register in enumerate(maker)}
    for last in reversed(maker.values()):
        for pattern in patterns(last):
            of_pack = made[last.pack]
            if last.op not in pattern.ends or last.results[0] not in of_pack:
                continue
            ops = pattern.find(of_pack[last.results[0]], of_pack, known)
            members = [maker[number] for number in sorted((op.results[0] for op in ops), key=position.__getitem__)]
            if len(members) > 1 and members[-1] is last and _is_closed(members, users, leaving):
                yield pattern, members
                for member in members:
                    for register in member.results:
                        of_pack.pop(register)
                break


def _is_closed(members: Sequence[Call], users: Mapping[int, Sequence[int]], leaving: Set[int]) -> bool:
    """Whether nobody else needs what goes between the calls, nor more of the last one than its first result."""
    inside = {id(member) for member in members}
    inner = [register for member in members[:-1] for register in member.results]
    needed = any(users[register] or register in leaving for register in members[-1].results[1:])
    return not needed and leaving.isdisjoint(inner) and all(inside.issuperset(users[register]) for register in inner)
