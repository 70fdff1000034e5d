"""OrderedCalls: the calls of a function in the order in which a run comes to them, and the parts of this order.

The tail is known when linked. A session's run calls it attached and in order, over buffers of the plan, once nothing is
pending and none of its arguments is dead.

Control edges are part of a call (`after`). The flat list keeps them by its order; late calls wait for those registers.
An event orders work of one device before work of another; no value crosses for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from ..contract.device import STREAM
from ..program.host_program import HOST
from ..support.records import record
from .calls.bound_call import BoundCall


@record
class OrderedCalls:
    """The calls: first the flat list, then the late calls outside the tail, then the tail.

    `late`: the indices of the calls that run behind asynchronous results, in a DataflowRun or in the tail.
    `tail`: the late calls that wait for every call that may pend. Nothing is pending when they start, so they run
        attached and in order, like the flat list.
    `needs`: for each call the registers that it waits for; `gives`: the registers that it fills.
    `nonstrict`: the indices of the calls that run as soon as one argument is available.
    `is_asynchronous`: True when each run needs a step of its own.
    `overlaps`: True when copies go on other streams than the kernels, and nothing but the list orders the calls.
    """

    calls: tuple[BoundCall, ...]
    late: frozenset[int]
    tail: range
    needs: tuple[tuple[int, ...], ...]
    gives: tuple[tuple[int, ...], ...]
    nonstrict: frozenset[int]
    is_asynchronous: bool
    overlaps: bool

    @property
    def has_host_kernels(self) -> bool:
        """True when a call of the flat list may hand over to a DataflowRun."""
        return any(bound.is_host_kernel for bound in self.calls)

    @property
    def dataflow_calls(self) -> frozenset[int]:
        """The indices of the calls that run in a DataflowRun, in any order."""
        return self.late.difference(self.tail)

    @property
    def in_order(self) -> list[int]:
        """The indices of the calls of the flat list and the tail."""
        return [number for number in range(len(self.calls)) if number not in self.late or number in self.tail]

    def registers_from_outside(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the registers that the calls with these indices need and do not fill."""
        calls = [self.calls[number].call for number in numbers]
        return frozenset(r for call in calls for r in call.needs).difference(r for call in calls for r in call.gives)


def order_calls(calls: Sequence[BoundCall]) -> OrderedCalls:
    """Return the order of these calls, which are in topological order.

    A call is late when it depends, directly or not, on a declared asynchronous result. It is in the tail when it is
    late and depends on every call that may pend. Both sets contain their dependents, so the order is topological.
    """
    overlaps = _may_overlap(calls)
    if overlaps:
        calls = _with_early_copies_out(calls)
    sources: dict[int, int] = {}  # register -> bit set of the calls that may pend before it is filled
    pending: set[int] = set()
    everything = (1 << sum(bound.may_pend for bound in calls)) - 1
    bits = count()
    flat: list[BoundCall] = []
    late: list[BoundCall] = []
    tail: list[BoundCall] = []
    for bound in calls:
        behind = 0
        for register in bound.call.needs:
            behind |= sources.get(register, 0)
        is_late = not pending.isdisjoint(bound.call.needs)
        part = flat if not is_late else tail if behind == everything else late
        part.append(bound)
        if bound.may_pend:
            behind |= 1 << next(bits)
        sources.update(dict.fromkeys(bound.call.gives, behind))
        if is_late or bound.pends:
            pending.update(bound.call.gives)
    if not all(bound.sees_host for bound in tail):  # a device's buffers wait for its stream, not for the list
        late, tail = [*late, *tail], []
    ordered = (*flat, *late, *tail)
    return OrderedCalls(
        ordered, frozenset(range(len(flat), len(ordered))), range(len(flat) + len(late), len(ordered)),
        tuple(bound.call.needs for bound in ordered), tuple(bound.call.gives for bound in ordered),
        frozenset(number for number, bound in enumerate(ordered) if bound.is_nonstrict),
        any(bound.needs_own_step for bound in ordered), overlaps)


def _may_overlap(calls: Sequence[BoundCall]) -> bool:
    return (any(bound.device_stream != STREAM for bound in calls)
            and not any(bound.needs_own_step or bound.is_host_kernel or bound.joins_devices for bound in calls))


def _with_early_copies_out(calls: Sequence[BoundCall]) -> list[BoundCall]:
    """Return the calls with each copy out that has a stream of its own right behind the call whose value it copies.

    A fence covers all work of a stream so far. So the copy waits for no later kernel.
    """
    early: dict[int, list[BoundCall]] = {}  # by the register that they copy
    given = {register for bound in calls for register in bound.call.gives}
    for bound in calls:
        if bound.device_stream != STREAM and bound.memory == HOST and given.issuperset(bound.call.args):
            early.setdefault(bound.call.args[0], []).append(bound)
    moved = {id(bound) for copies in early.values() for bound in copies}
    ordered: list[BoundCall] = []
    for bound in calls:
        if id(bound) not in moved:
            ordered.append(bound)
            for register in bound.call.gives:
                ordered += early.get(register, ())
    return ordered
