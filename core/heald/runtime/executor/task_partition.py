"""TaskPartition: the calls of a flat list, divided into parts that are each worth a task of the work queue.

Three steps, from the needs and the measured costs of the calls:

1. Merge. Calls that can only run one after the other become one, and so do cheap calls around a single other one.
2. List scheduling. Each merged call goes to the thread where it ends earliest, the longest remaining paths first. A
   result that another thread needs costs DISPATCH_NS more.
3. Cut. The calls of one thread without a break form a part. A part is closed in three cases:
   - Another thread needs one of its results before the next call would end.
   - The next call needs unfinished work of another thread.
   - The part is worth a task, and the next call does not continue a chain: it does not need the last call.

Invariants:
- Parts are numbered in the order in which they were opened. A part needs only parts that were closed before it was
  opened, so it needs lower numbers only and no cycle arises.
- Within a part the calls run in program order. Between parts only `needs` holds, on any thread.
- `reach` of a part has all parts that have ended whenever it runs: the closure of `needs`. The memory plan of a
  partition relies on it.

A part also needs the part MOST_CONCURRENT_PARTS positions earlier in its thread's schedule, so that buffers are reused.
Otherwise all independent parts would be ready at once, each with buffers of its own, and none in a cache.

The threads of the schedule are an estimate. Any thread may run any part, and a late one gets help. A list that does not
promise a speed-up of LEAST_SPEEDUP has no partition.

Rule: an order that a caller relies on (side effects, the stream of a device) must be in the needs that it gives. A
change of the merge or the cut may join calls, but must never let a part need a later one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..support.records import NamedTuple
from .schedule import LEAST_DIVIDED_NS, LEAST_SPEEDUP

DISPATCH_NS = 25_000  # ns until another thread begins the work that it was offered
PART_OVERHEAD_NS = 3_000  # ns of overhead per part on its thread
LEAST_TASK_NS = 100_000  # ns of work that are worth a task
MOST_CONCURRENT_PARTS = 2  # of one thread's schedule, so that another thread can help a late one

Needs = Sequence[Sequence[int]]  # for each call (or part) the indices of the earlier ones that it needs


class TaskPartition(NamedTuple):
    """The parts of a flat list, and the order that they need.

    `calls`: the calls of each part, in program order.
    `needs`: for each part the earlier parts that must have ended.
    """

    calls: tuple[tuple[int, ...], ...]
    needs: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, calls: Sequence[Sequence[int]], needs: Needs) -> TaskPartition:
        """Build a partition of calls with these needs. The parts come in an order in which they may run."""
        home = {call: part for part, members in enumerate(calls) for call in members}
        between = (sorted({home[n] for call in members for n in needs[call]} - {part})
                   for part, members in enumerate(calls))
        return cls(tuple(tuple(sorted(members)) for members in calls), tuple(map(tuple, between)))

    def parts_of_calls(self) -> list[int]:
        """For each call return the index of its part."""
        home = {call: part for part, members in enumerate(self.calls) for call in members}
        return [home[call] for call in range(len(home))]

    def costs(self, costs: Sequence[int]) -> list[int]:
        """Return the cost of each part, given the cost of each call."""
        return [sum(costs[call] for call in members) for members in self.calls]

    def reach(self) -> list[int]:
        """For each part return a bit set: the part itself, and all parts that have ended whenever it runs."""
        reach: list[int] = []
        for part, needs in enumerate(self.needs):
            bits = 1 << part
            for needed in needs:
                bits |= reach[needed]
            reach.append(bits)
        return reach

    def consumers(self) -> list[tuple[int, ...]]:
        """For each part return its consumers: the parts that need it."""
        users: list[list[int]] = [[] for _ in self.needs]
        for part, needs in enumerate(self.needs):
            for needed in needs:
                users[needed].append(part)
        return [tuple(u) for u in users]


class ThreadSchedule(NamedTuple):
    """The thread on which each call would run, and its start and end in ns."""

    thread: list[int]
    start: list[int]
    end: list[int]


def divide_by_costs(needs: Needs, costs: Sequence[int], threads: int) -> TaskPartition | None:
    """Partition calls by their costs in ns. Return None when `threads` threads would not gain enough."""
    total = sum(costs)
    if threads < 2 or total < max(LEAST_DIVIDED_NS, LEAST_SPEEDUP * max(_longest_paths(needs, costs), default=0)):
        return None
    merged = TaskPartition.of(_merge_calls(needs, costs), needs)
    lanes, cut = _cut_into_parts(merged.needs, merged.costs(costs), threads)
    partition = TaskPartition.of([[call for part in parts for call in merged.calls[part]] for parts in cut], needs)
    partition = TaskPartition(partition.calls, _limit_concurrency(partition.needs, lanes))
    part_costs = [PART_OVERHEAD_NS + cost for cost in partition.costs(costs)]
    estimate = max(list_schedule(partition.needs, part_costs, threads).end)
    return partition if total >= LEAST_SPEEDUP * estimate else None


def divide_by_owner(needs: Needs, owners: Sequence[int]) -> TaskPartition | None:
    """Partition calls so that each owner runs its own calls in order, and waits for others only where it needs them.

    Return None when no two parts could run at the same time.
    """
    parts: list[list[int]] = []
    closed: list[int] = []  # part -> the number of parts when it was closed
    home: list[int] = []
    latest: dict[int, int] = {}  # owner -> its part that takes further calls
    for call, owner in enumerate(owners):
        part = latest.get(owner, -1)
        others = {home[needed] for needed in needs[call]} - {part}
        for other in others:
            if closed[other] < 0:
                closed[other] = len(parts)
                latest = {owner_of_part: its for owner_of_part, its in latest.items() if its != other}
        if part < 0 or any(closed[other] > part for other in others):
            if part >= 0 and closed[part] < 0:
                closed[part] = len(parts)
            part = latest[owner] = len(parts)
            parts.append([])
            closed.append(-1)
        parts[part].append(call)
        home.append(part)
    partition = TaskPartition.of(parts, needs)
    is_serial = all(bits + 1 == 2 << part for part, bits in enumerate(partition.reach()))
    return None if is_serial else partition


def _merge_calls(needs: Needs, costs: Sequence[int]) -> list[list[int]]:
    """Merge calls into groups, returned in an order in which they may run."""
    groups = [[call] for call in range(len(costs))]  # indexed by one of the group's calls
    group = list(range(len(costs)))  # call -> index of its group
    cost = list(costs)
    users: list[list[int]] = [[] for _ in costs]
    for call, before in enumerate(needs):
        for needed in before:
            users[needed].append(call)
    left = [len(u) for u in users]  # group -> uses of its results by calls outside it

    def join(member: int, other: int) -> None:
        """Move all calls of the group `member` into the group `other`."""
        for call in groups[member]:
            group[call] = other
        groups[other] += groups[member]
        cost[other] += cost[member]
        groups[member] = []

    for call, before in enumerate(needs):
        # Only the first call of a group needs other groups. So the order of first calls is an order of groups.
        sources = {group[needed] for needed in before}
        if len(sources) == 1:
            source, = sources
            is_only_user = left[source] == len(before)
            if is_only_user or cost[source] + cost[call] <= LEAST_TASK_NS:
                left[source] += left[call] - len(before)
                join(call, source)
    for call in range(len(costs) - 1, -1, -1):
        # A group with a single consumer group moves right before it. The order of the other groups stays.
        sinks = {group[user] for member in groups[call] for user in users[member]} - {call}
        if len(sinks) == 1:
            sink, = sinks
            if cost[call] + cost[sink] <= LEAST_TASK_NS:
                join(call, sink)
    return [members for members in groups if members]


def list_schedule(needs: Needs, costs: Sequence[int], threads: int) -> ThreadSchedule:
    """List scheduling: calls with the longest path to the end come first, each on the thread where it ends earliest."""
    remaining = _longest_paths(needs, costs)
    thread, start, end = ([0] * len(costs) for _ in range(3))
    free = [0] + [DISPATCH_NS] * (threads - 1)
    for call in sorted(range(len(costs)), key=lambda c: (-remaining[c], c)):
        end_by_thread: dict[int, int] = {}  # thread -> end of the needed calls that run there
        for needed in needs[call]:
            end_by_thread[thread[needed]] = max(end_by_thread.get(thread[needed], 0), end[needed])
        best, begin = -1, 0
        for t in (*end_by_thread, free.index(min(free))):  # every other thread has the same latency, and is free later
            ready = max((e if t == home else e + DISPATCH_NS for home, e in end_by_thread.items()), default=0)
            if best < 0 or max(free[t], ready) < begin:
                best, begin = t, max(free[t], ready)
        thread[call], start[call], end[call] = best, begin, begin + max(costs[call], 1)
        free[best] = end[call]
    return ThreadSchedule(thread, start, end)


def _longest_paths(needs: Needs, costs: Sequence[int]) -> list[int]:
    """The longest path from the start of each call to the end, in ns.

    A call's path is longer than the paths of its consumers.
    """
    remaining = [max(cost, 1) for cost in costs]
    for call in range(len(costs) - 1, -1, -1):
        for needed in needs[call]:
            remaining[needed] = max(remaining[needed], max(costs[needed], 1) + remaining[call])
    return remaining


class _GrowingPart:
    """A part that grows.

    `cost`: ns of its calls so far.
    `due`: when another thread would use a result.
    `opened`, `closed`: positions in the schedule; a closed part grows no more.
    """

    __slots__ = ("calls", "closed", "cost", "due", "opened")

    def __init__(self, opened: int) -> None:
        self.calls: list[int] = []
        self.cost = 0
        self.due = float("inf")
        self.opened = opened
        self.closed: float = float("inf")


def _cut_into_parts(needs: Needs, costs: Sequence[int], threads: int) -> tuple[list[int], list[list[int]]]:
    """Schedule all calls and cut each thread's calls into parts, in the order in which they were opened.

    Return the thread of each part, and the calls of each part.
    """
    plan = list_schedule(needs, costs, threads)
    due = [float("inf")] * len(costs)  # call -> when another thread first uses its result
    for call, needed in enumerate(needs):
        for n in needed:
            if plan.thread[n] != plan.thread[call]:
                due[n] = min(due[n], plan.start[call])
    parts: list[_GrowingPart] = []
    threads_of: list[int] = []
    home: list[_GrowingPart | None] = [None] * len(costs)
    growing: list[_GrowingPart | None] = [None] * threads
    for now, call in enumerate(sorted(range(len(costs)), key=lambda c: (plan.start[c], c))):
        t = plan.thread[call]
        part = growing[t]
        others = [p for n in needs[call] if (p := home[n]) is not None and p is not part]
        if (part is None or plan.end[call] > part.due or any(p.closed > part.opened for p in others)
                or (part.cost >= LEAST_TASK_NS and part.calls[-1] not in needs[call])):
            for p in (part, *others):
                if p is not None:
                    p.closed = min(p.closed, now)
            growing = [None if p is not None and p.closed <= now else p for p in growing]
            part = growing[t] = _GrowingPart(now)
            parts.append(part)
            threads_of.append(t)
        part.calls.append(call)
        part.cost += costs[call]
        part.due = min(part.due, due[call])
        home[call] = part
    return threads_of, [part.calls for part in parts]


def _limit_concurrency(needs: Needs, lanes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Add to each part's needs the part MOST_CONCURRENT_PARTS positions before it in its thread's schedule."""
    before: dict[int, list[int]] = {}
    more = []
    for part, lane in enumerate(lanes):
        members = before.setdefault(lane, [])
        earlier = {members[-MOST_CONCURRENT_PARTS]} if len(members) >= MOST_CONCURRENT_PARTS else set()
        more.append(tuple(sorted(earlier.union(needs[part]))))
        members.append(part)
    return tuple(more)
