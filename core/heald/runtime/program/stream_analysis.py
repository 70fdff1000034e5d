"""Stream analysis: which calls of a function one thread runs one after the other, by the cost of each call.

The calls form a tree: the parent of a call is the producer of the argument that is ready last, or the root, which
stands for the function's arguments and for calls without any. Bottom up, a call joins the stream of its dearest child.
The streams of its other children join it, too, where they cost less than the threshold: they are not worth another
thread. The rest are child streams.

TFRT's rules for the costs: 1 for the root, the return and `tfrt.merge.chains`, the attribute `_tfrt_cost` where a call
has one, else the threshold. A threshold of 0 stands for the cost of the longest path, with a cost of 1 for each call.
"""

from __future__ import annotations

from typing import NamedTuple

from .host_program import Call, ProgramFunction

COST_ATTRIBUTE = "_tfrt_cost"  # the attribute of a call
CHEAP_CODE = "tfrt.merge.chains"
ROOT = -1  # in place of a call's index


class Stream(NamedTuple):
    """`parent`: the stream that starts it; None for the root's. `calls`: indices, in the order of the program; ROOT for
    the root, and the number of calls for the function's return."""

    number: int
    cost: int
    parent: int | None
    calls: tuple[int, ...]


def analyse_streams(function: ProgramFunction, threshold: int = 0, *, merge_dependent: bool = False) -> list[Stream]:
    """Return the streams of a function, the root's first.

    `threshold`: the attribute `tfrt.cost_threshold` of the function or its module.
    `merge_dependent`: the attribute `tfrt.merge_inter_dependent_streams`: child streams of one call that need values of
        each other become one.
    """
    return _Analysis(function, threshold, merge_dependent).streams()


def stream_numbers(
    function: ProgramFunction, threshold: int = 0, *, merge_dependent: bool = False
) -> tuple[int, ...]:
    """Return the number of each call's stream, for `ProgramFunction.streams`. Takes the options of
    `analyse_streams`."""
    numbers = [0] * len(function.kernels)
    for stream in analyse_streams(function, threshold, merge_dependent=merge_dependent):
        for call in stream.calls:
            if 0 <= call < len(numbers):
                numbers[call] = stream.number
    return tuple(numbers)


class _Analysis:
    """The state of one analysis. The return is the node behind the last call."""

    def __init__(self, function: ProgramFunction, threshold: int, merge_dependent: bool) -> None:
        self._merge_dependent = merge_dependent
        producer = {register: index for index, call in enumerate(function.kernels) for register in call.gives}
        needs = [call.needs for call in function.kernels] + [(*function.results, *function.targets)]
        self._sources = [[producer.get(register, ROOT) for register in registers] for registers in needs]
        self._costs = [_cost(call, threshold or 1) for call in function.kernels] + [1]
        parents, longest = self._schedule()
        self._threshold = threshold or longest
        self._children: dict[int, list[int]] = {}
        for index, parent in enumerate(parents):
            self._children.setdefault(parent, []).append(index)
        self._members: dict[int, list[int]] = {}  # by the first node of a stream: its nodes
        self._inside: dict[int, list[int]] = {}  # by the first node of a stream: the child streams of its nodes
        self._total: dict[int, int] = {}  # by the first node of a stream: its cost

    def _schedule(self) -> tuple[list[int], int]:
        """Return each node's parent, and the cost of the longest path."""
        ends = {ROOT: 1}
        parents = []
        for index, sources in enumerate(self._sources):
            parent = max(sources, key=ends.__getitem__, default=ROOT)
            parents.append(parent)
            ends[index] = ends[parent] + self._costs[index]
        return parents, max(ends.values())

    def streams(self) -> list[Stream]:
        for index in range(len(self._sources) - 1, ROOT - 1, -1):
            self._build(index)
        streams: list[Stream] = []
        left: list[tuple[int, int | None]] = [(ROOT, None)]
        for first, parent in left:  # grows: the streams that a stream starts follow it
            number = len(streams)
            streams.append(Stream(number, self._total[first], parent, tuple(sorted(self._members[first]))))
            left += [(child, number) for child in sorted(self._inside[first])]
        return streams

    def _build(self, index: int) -> None:
        """Make the stream that begins with this node, of its children's streams."""
        heads = self._children.get(index, [])
        if self._merge_dependent:
            heads = self._merge_streams(heads)
        dearest = max(heads, key=self._total.__getitem__, default=None)
        self._members[index] = [index]
        self._inside[index] = []
        self._total[index] = 1 if index == ROOT else self._costs[index]
        for head in heads:
            if head == dearest or self._total[head] < self._threshold:
                self._join(index, head)
            else:
                self._inside[index].append(head)

    def _join(self, into: int, head: int) -> None:
        for lists in (self._members, self._inside):
            small, large = sorted((lists[into], lists.pop(head)), key=len)
            large += small  # a long chain of calls takes no square of time
            lists[into] = large
        self._total[into] += self._total.pop(head)

    def _merge_streams(self, heads: list[int]) -> list[int]:
        """Merge streams that need values of each other; return the remaining streams."""
        owner = {member: head for head in heads for member in self._members[head]}
        into = {head: head for head in heads}  # towards the first of the merged streams

        def last(head: int) -> int:
            while into[head] != head:
                head = into[head]
            return head

        for member, head in owner.items():
            for source in self._sources[member]:
                first, second = sorted((last(head), last(owner.get(source, head))))
                into[second] = first
        for head in heads:
            if into[head] != head:
                self._join(last(head), head)
        return [head for head in heads if into[head] == head]


def _cost(call: Call, default: int) -> int:
    cost = call.attrs.get(COST_ATTRIBUTE)
    return cost if isinstance(cost, int) and cost > 0 else 1 if call.code == CHEAP_CODE else default
