"""Patterns: calls that a pack's own function finds, for one kernel of it to do at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set

from ..contract.kernel import FusedOp, PatternDef
from ..errors import PluginError
from ..program.host_program import Call
from ..values.tensor import ValueInfo

Patterns = Callable[[Call], Sequence[PatternDef]]


def found(
    calls: Sequence[Call], known: Sequence[ValueInfo], kept: Collection[int], patterns: Patterns
) -> Iterator[tuple[PatternDef, list[Call]]]:
    """The patterns from the last call to the first, and what each would do, in order. `patterns`: of the call's pack,
    none where it cannot be done with others; `kept`: registers that the function gives to others. No two have a call in
    common."""
    maker = {call.results[0]: call for call in calls if call.results and patterns(call)}
    position = {register: i for i, register in enumerate(maker)}
    users, leaving = _users(calls), {*kept, *(register for call in calls for register in call.after)}
    made = _by_pack(maker.values(), known)
    for last in reversed(maker.values()):
        of_pack = made[last.pack, last.stream]
        for pattern in patterns(last) if last.results[0] in of_pack else ():
            numbers = _looked_for(pattern, last, of_pack, known) if last.op in pattern.ends else []
            members = [maker[number] for number in sorted(numbers, key=position.__getitem__)]
            if len(members) > 1 and members[-1] is last and _is_closed(members, users, leaving):
                yield pattern, members
                for register in (register for member in members for register in member.results):
                    of_pack.pop(register)
                break


def _users(calls: Sequence[Call]) -> dict[int, list[int]]:
    """By register the ids of the calls that take it."""
    users: dict[int, list[int]] = {register: [] for call in calls for register in (*call.results, *call.args)}
    for call in calls:
        for register in call.args:
            users[register].append(id(call))
    return users


def _by_pack(calls: Iterable[Call], known: Sequence[ValueInfo]) -> dict[tuple[str, int], dict[int, FusedOp]]:
    """By pack and stream what its kernels do, by the registers of the results."""
    made: dict[tuple[str, int], dict[int, FusedOp]] = {}
    for call in calls:
        op = FusedOp(call.op, call.attrs, call.args, call.results, tuple(known[r].meta for r in call.results))
        made.setdefault((call.pack, call.stream), {}).update(dict.fromkeys(call.results, op))
    return made


def _looked_for(
    pattern: PatternDef, last: Call, made: Mapping[int, FusedOp], known: Sequence[ValueInfo]
) -> list[int]:
    """The first results of what the pattern's function finds. Raises PluginError for what it raises."""
    try:
        return [op.results[0] for op in pattern.find(made[last.results[0]], made, known)]
    except Exception as error:
        raise PluginError(f"the function of pattern '{pattern.kernel.op}' of plugin {pattern.kernel.pack} raised "
                          f"{type(error).__name__}: {error}", node=last.node, op=last.op) from error


def _is_closed(members: Sequence[Call], users: Mapping[int, Sequence[int]], leaving: Set[int]) -> bool:
    """Whether nobody else needs what goes between the calls, nor more of the last one than its first result."""
    inside = {id(member) for member in members}
    inner = [register for member in members[:-1] for register in member.results]
    needed = any(users[register] or register in leaving for register in members[-1].results[1:])
    return not needed and leaving.isdisjoint(inner) and all(inside.issuperset(users[register]) for register in inner)
