"""Patterns: groups of calls that a pack's own function finds, so that one kernel of the pack does them at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set

from ...errors import PluginError
from ..contract.kernel import FusedOp, FusionRefusal, PatternDef
from ..program.host_program import Call
from ..values.tensor import ValueInfo

Patterns = Callable[[Call], Sequence[PatternDef]]


def find_patterns(
    calls: Sequence[Call], infos: Sequence[ValueInfo], read_outside: Collection[int], patterns: Patterns,
    note_refusal: Callable[[FusionRefusal], None],
) -> Iterator[tuple[PatternDef, list[Call]]]:
    """Yield each pattern and the calls that it covers, in order; patterns come from the last call to the first.

    `patterns`: returns the patterns of a call's pack, none when the call must stay alone.
    `read_outside`: registers with consumers outside the function.
    `note_refusal`: called for each match with an inner value that is needed elsewhere.

    No two patterns share a call.
    """
    producer = {call.results[0]: call for call in calls if call.results and patterns(call)}
    position = {register: i for i, register in enumerate(producer)}
    users, leaving = _users(calls), {*read_outside, *(register for call in calls for register in call.after)}
    by_pack = _by_pack(producer.values(), infos)
    for last in reversed(producer.values()):
        of_pack = by_pack[last.pack, last.stream]
        for pattern in patterns(last) if last.results[0] in of_pack else ():
            numbers = _match_pattern(pattern, last, of_pack, infos) if last.op in pattern.ends else []
            members = [producer[number] for number in sorted(numbers, key=position.__getitem__)]
            if len(members) < 2 or members[-1] is not last:
                continue
            open_member = _open_member(members, users, leaving)
            if open_member is not None:
                name = f"{pattern.kernel.pack}.{pattern.kernel.op}"
                note_refusal(FusionRefusal(name, open_member.node, "its value is also needed outside the pattern",
                                           tuple(member.node for member in members)))
            else:
                yield pattern, members
                for register in (register for member in members for register in member.results):
                    of_pack.pop(register)
                break


def _users(calls: Sequence[Call]) -> dict[int, list[int]]:
    """For each register list the ids of the calls that consume it."""
    users: dict[int, list[int]] = {register: [] for call in calls for register in (*call.results, *call.args)}
    for call in calls:
        for register in call.args:
            users[register].append(id(call))
    return users


def _by_pack(calls: Iterable[Call], infos: Sequence[ValueInfo]) -> dict[tuple[str, int], dict[int, FusedOp]]:
    """For each (pack, stream) map result registers to the ops of its calls."""
    by_pack: dict[tuple[str, int], dict[int, FusedOp]] = {}
    for call in calls:
        op = FusedOp(call.op, call.attrs, call.args, call.results, tuple(infos[r].meta for r in call.results))
        by_pack.setdefault((call.pack, call.stream), {}).update(dict.fromkeys(call.results, op))
    return by_pack


def _match_pattern(
    pattern: PatternDef, last: Call, ops: Mapping[int, FusedOp], infos: Sequence[ValueInfo]
) -> list[int]:
    """Call the pattern's function and return the register of output 0 of each op in its match.

    Raises PluginError when the function raises.
    """
    try:
        return [op.results[0] for op in pattern.find(ops[last.results[0]], ops, infos)]
    except Exception as error:
        raise PluginError(f"the function of pattern '{pattern.kernel.op}' of plugin {pattern.kernel.pack} raised "
                          f"{type(error).__name__}: {error}", node=last.node, op=last.op,
                          hint='[passes] disable = ["fusion"] runs the graph without patterns') from error


def _open_member(members: Sequence[Call], users: Mapping[int, Sequence[int]], leaving: Set[int]) -> Call | None:
    """Return the first call with an inner result that has a consumer outside the group, or None.

    Of the last call all results but its first are inner, and may have no consumer at all.
    """
    inside = {id(member) for member in members}
    for member in members[:-1]:
        if any(register in leaving or not inside.issuperset(users[register]) for register in member.results):
            return member
    *_, last = members
    return last if any(users[register] or register in leaving for register in last.results[1:]) else None
