"""Pieces: the calls of a flat list divided into runs that are worth a task of their own, or not divided at all.

Calls that can only run one after the other, and cheap ones around a single other, are merged. What is left is scheduled
on the threads by its measured costs, each where it would end earliest; going to another thread costs DISPATCH. What a
thread does without a break is a piece: it is cut where another thread needs a result sooner, before something that
needs what another thread is still doing, and where it has become worth a task without being a chain.

A piece needs only pieces that were closed before it was opened: they never need each other in circles. It also needs
the one ABREAST places before it in its thread's schedule, so that buffers are used again: were all independent pieces
ready at once, each would have its own, and none would be in a cache. Any thread may run any piece all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

DISPATCH = 25_000  # ns until another thread has begun what it was offered
HANDLING = 3_000  # ns that a piece costs its thread
TASK = 100_000  # ns of work that are worth a task
LEAST_WORK = 300_000  # ns below which a whole list is not worth dividing
LEAST_GAIN = 1.2  # the speed that an estimate has to promise
ABREAST = 2  # pieces of one thread's schedule that may run at a time: another thread can help where one is late

Needs = Sequence[Sequence[int]]  # of each call (or piece) the earlier ones that it needs


class TaskPartition(NamedTuple):
    """`calls`: those of each piece, in program order. `needs`: of each piece the earlier ones that must have ended."""

    calls: tuple[tuple[int, ...], ...]
    needs: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, calls: Sequence[Sequence[int]], needs: Needs) -> TaskPartition:
        """These pieces, which come in an order in which they may run, of calls that need each other like that."""
        home = {call: piece for piece, members in enumerate(calls) for call in members}
        between = (sorted({home[n] for call in members for n in needs[call]} - {piece})
                   for piece, members in enumerate(calls))
        return cls(tuple(tuple(sorted(members)) for members in calls), tuple(map(tuple, between)))

    def homes(self) -> list[int]:
        """The piece of each call."""
        home = {call: piece for piece, members in enumerate(self.calls) for call in members}
        return [home[call] for call in range(len(home))]

    def costs(self, costs: Sequence[int]) -> list[int]:
        """What each piece costs, for calls that cost so much."""
        return [sum(costs[call] for call in members) for members in self.calls]

    def reach(self) -> list[int]:
        """Of each piece a bit set: itself, and those that have ended whenever it runs."""
        reach: list[int] = []
        for piece, needs in enumerate(self.needs):
            bits = 1 << piece
            for needed in needs:
                bits |= reach[needed]
            reach.append(bits)
        return reach

    def users(self) -> list[tuple[int, ...]]:
        """Of each piece those that need it."""
        users: list[list[int]] = [[] for _ in self.needs]
        for piece, needs in enumerate(self.needs):
            for needed in needs:
                users[needed].append(piece)
        return [tuple(u) for u in users]


class Schedule(NamedTuple):
    """The thread on which each call would run, and from when until when."""

    thread: list[int]
    start: list[int]
    end: list[int]


def divide(needs: Needs, costs: Sequence[int], threads: int) -> TaskPartition | None:
    """Pieces of calls that cost so many ns each; None where `threads` threads would not gain enough by them."""
    total = sum(costs)
    if threads < 2 or total < max(LEAST_WORK, LEAST_GAIN * max(_remaining(needs, costs), default=0)):
        return None
    merged = TaskPartition.of(_merge(needs, costs), needs)
    lanes, cut = _cut(merged.needs, merged.costs(costs), threads)
    pieces = TaskPartition.of([[call for part in parts for call in merged.calls[part]] for parts in cut], needs)
    pieces = TaskPartition(pieces.calls, _abreast(pieces.needs, lanes))
    each = [HANDLING + cost for cost in pieces.costs(costs)]
    return pieces if total >= LEAST_GAIN * max(schedule(pieces.needs, each, threads).end) else None


def _merge(needs: Needs, costs: Sequence[int]) -> list[list[int]]:
    """The calls in groups, which come in an order in which they may run."""
    groups = [[call] for call in range(len(costs))]  # by what a group is known by: one of its calls
    group = list(range(len(costs)))  # of each call
    cost = list(costs)
    users: list[list[int]] = [[] for _ in costs]
    for call, before in enumerate(needs):
        for needed in before:
            users[needed].append(call)
    left = [len(u) for u in users]  # of each group: uses of its results by calls outside

    def join(member: int, other: int) -> None:
        """The group `member` becomes part of the group `other`."""
        for call in groups[member]:
            group[call] = other
        groups[other] += groups[member]
        cost[other] += cost[member]
        groups[member] = []

    for call, before in enumerate(needs):
        # Nothing but the group's first call needs others: they come in the order of these first calls.
        sources = {group[needed] for needed in before}
        if len(sources) == 1:
            source, = sources
            is_only_user = left[source] == len(before)
            if is_only_user or cost[source] + cost[call] <= TASK:
                left[source] += left[call] - len(before)
                join(call, source)
    for call in range(len(costs) - 1, -1, -1):
        # A group that only one other uses comes right before it: the order of those others stays.
        sinks = {group[user] for member in groups[call] for user in users[member]} - {call}
        if len(sinks) == 1:
            sink, = sinks
            if cost[call] + cost[sink] <= TASK:
                join(call, sink)
    return [members for members in groups if members]


def schedule(needs: Needs, costs: Sequence[int], threads: int) -> Schedule:
    """List scheduling: those with the longest way to the end come first, each to the thread where it ends earliest."""
    remaining = _remaining(needs, costs)
    thread, start, end = ([0] * len(costs) for _ in range(3))
    free = [0] + [DISPATCH] * (threads - 1)
    for call in sorted(range(len(costs)), key=lambda c: (-remaining[c], c)):
        known: dict[int, int] = {}  # thread -> when what the call needs has ended there
        for needed in needs[call]:
            known[thread[needed]] = max(known.get(thread[needed], 0), end[needed])
        best, begin = -1, 0
        for t in (*known, free.index(min(free))):  # any other is as far away, and free later
            ready = max((e if t == home else e + DISPATCH for home, e in known.items()), default=0)
            if best < 0 or max(free[t], ready) < begin:
                best, begin = t, max(free[t], ready)
        thread[call], start[call], end[call] = best, begin, begin + max(costs[call], 1)
        free[best] = end[call]
    return Schedule(thread, start, end)


def _remaining(needs: Needs, costs: Sequence[int]) -> list[int]:
    """The longest way to the end from the start of each call, in ns: longer for a call than for those that need it."""
    remaining = [max(cost, 1) for cost in costs]
    for call in range(len(costs) - 1, -1, -1):
        for needed in needs[call]:
            remaining[needed] = max(remaining[needed], max(costs[needed], 1) + remaining[call])
    return remaining


class _Piece:
    """A piece that grows: `cost` so far; `due`: when another thread would use a result; `closed`: grows no more."""

    __slots__ = ("calls", "closed", "cost", "due", "opened")

    def __init__(self, opened: int) -> None:
        self.calls: list[int] = []
        self.cost = 0
        self.due = float("inf")
        self.opened = opened
        self.closed: float = float("inf")


def _cut(needs: Needs, costs: Sequence[int], threads: int) -> tuple[list[int], list[list[int]]]:
    """What each thread does when all is scheduled, cut into pieces, in the order in which they were opened: of each
    piece the thread and the calls."""
    plan = schedule(needs, costs, threads)
    due = [float("inf")] * len(costs)  # when the first other thread uses the call's result
    for call, needed in enumerate(needs):
        for n in needed:
            if plan.thread[n] != plan.thread[call]:
                due[n] = min(due[n], plan.start[call])
    pieces: list[_Piece] = []
    threads_of: list[int] = []
    home: list[_Piece | None] = [None] * len(costs)
    growing: list[_Piece | None] = [None] * threads
    for now, call in enumerate(sorted(range(len(costs)), key=lambda c: (plan.start[c], c))):
        t = plan.thread[call]
        piece = growing[t]
        others = [p for n in needs[call] if (p := home[n]) is not None and p is not piece]
        if (piece is None or plan.end[call] > piece.due or any(p.closed > piece.opened for p in others)
                or (piece.cost >= TASK and piece.calls[-1] not in needs[call])):
            for p in (piece, *others):
                if p is not None:
                    p.closed = min(p.closed, now)
            growing = [None if p is not None and p.closed <= now else p for p in growing]
            piece = growing[t] = _Piece(now)
            pieces.append(piece)
            threads_of.append(t)
        piece.calls.append(call)
        piece.cost += costs[call]
        piece.due = min(piece.due, due[call])
        home[call] = piece
    return threads_of, [piece.calls for piece in pieces]


def _abreast(needs: Needs, lanes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """These needs, and of each piece the one ABREAST places before it in its lane."""
    before: dict[int, list[int]] = {}
    more = []
    for piece, lane in enumerate(lanes):
        members = before.setdefault(lane, [])
        earlier = {members[-ABREAST]} if len(members) >= ABREAST else set()
        more.append(tuple(sorted(earlier.union(needs[piece]))))
        members.append(piece)
    return tuple(more)
