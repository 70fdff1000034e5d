"""FrameLayout: the properties of an executable's frames, as data, before the first frame exists.

A register is *fixed* when its payload is the same object in every run of a frame. Fixed are constants, buffers of the
memory plan, copies of small feeds, and views of these. A call whose registers are all fixed becomes a FrameCall over
these payloads. The other registers are *open*: a FrameCall reads them when it runs.

The layout is made in steps, and each part is made of earlier parts:

1. `OrderedCalls`: the calls in the order of a run.
2. `RegisterTable`: types, roots and producers of registers.
3. `Lifetimes`: uses of values, and the arrays that are lent.
4. `FrameMemory`: the memory plan, and the fixed registers.
5. `AttachedLists`: the calls that a frame attaches, and the registers that die with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..contract.device import STREAM, Stream
from ..program.host_program import HOST, ProgramFunction
from ..support.records import record
from ..values.tensor import TensorMetadata
from .call_order import OrderedCalls, order_calls
from .calls.bound_call import BoundCall
from .calls.call_environment import CallEnvironment
from .fences import Fences, copy_streams, find_fences
from .lifetimes import LARGEST_COPIED_BYTES, Deaths, Lifetimes, find_deaths, find_lifetimes
from .memory_plan import MemoryPlan, Use, plan_memory
from .register_table import RegisterTable, register_table

if TYPE_CHECKING:
    from ..host.host import Host
    from .task_partition import TaskPartition

# The copy of a feed into the frame makes its register fixed, and costs as much as two open calls cost more than fixed
# ones. It pays from this number of consumers on. A single consumer that prefers fixed arrays is enough.
LEAST_CONSUMERS_OF_COPY = 3


@record
class FrameMemory:
    """The buffers of a frame.

    `plan`: the memory plan of the flat list and the tail.
    `copied_feeds`: the arguments that a run copies into the frame.
    `planned`: the registers with a payload before the first call: constants, buffers of the plan, copied feeds.
    `fixed`: the registers whose payloads are the same objects in every run; the views of `planned` are among them.
    `open`: the registers that a run empties at its end; the last is the step's.
    """

    plan: MemoryPlan
    copied_feeds: frozenset[int]
    planned: frozenset[int]
    fixed: frozenset[int]
    open: tuple[int, ...]


@record
class AttachedLists:
    """The calls that each frame attaches, by their indices in the order.

    `attached`: flat list, tail, and all fixed views, which leave nothing to run.
    `flat`: for each FrameCall of the flat list the index of its call; `tail`: the same of the tail.
    `tail_needs`: the open registers that the tail reads and does not fill; `tail_gives`: the registers that it fills.
    """

    attached: tuple[int, ...]
    flat: tuple[int, ...]
    tail: tuple[int, ...]
    tail_needs: frozenset[int]
    tail_gives: frozenset[int]
    deaths: Deaths


@record
class FrameLayout:
    """All properties of an executable's frames that are known before the first frame exists.

    `copied_results`: indices of the results that are copied before the user gets them.
    `fences`, `copy_streams`: the order of the streams of devices that have several.
    """

    order: OrderedCalls
    registers: RegisterTable
    lifetimes: Lifetimes
    memory: FrameMemory
    lists: AttachedLists
    copied_results: tuple[int, ...]
    fences: Fences
    copy_streams: Mapping[int, Stream]

    @classmethod
    def of(
        cls, function: ProgramFunction, metas: Sequence[TensorMetadata], calls: Sequence[BoundCall],
        presets: Mapping[int, Any],
    ) -> FrameLayout:
        """Raises InvalidArgument when a result is not as large as the argument that it shows, or is a copy of."""
        order = order_calls(calls)
        registers = register_table(function, metas, presets, order)
        lifetimes = find_lifetimes(order, registers)
        memory = _frame_memory(order, registers, lifetimes)
        lists = _attached_lists(order, registers, memory)
        return cls(order, registers, lifetimes, memory, lists, _copied_results(order, registers, lifetimes, memory),
                   find_fences(order, registers, memory.plan.slot_of), copy_streams(order))

    @property
    def calls(self) -> tuple[BoundCall, ...]:
        return self.order.calls

    def environment(self, host: Host) -> CallEnvironment:
        """Return all that the calls know of this executable on a host."""
        return CallEnvironment(self.registers.metas, self.registers.device_of, host)

    def stream_of(self, bound: BoundCall) -> Stream:
        """Return the stream on which the runs of this function enqueue a call."""
        return self.copy_streams.get(bound.call.results[0], STREAM) if self.copy_streams else STREAM

    def plan_of(self, partition: TaskPartition) -> MemoryPlan:
        """Return the memory plan under a task partition. It plans the same registers as the flat plan."""
        return plan_memory([self.lifetimes.uses[number] for number in self.lists.flat], partition,
                           self.lifetimes.kept)

    def calls_after(self, position: int) -> list[int]:
        """Return the indices of the calls that have not begun when the flat list stopped in the call at this flat
        index."""
        if not self.lists.flat:
            return sorted(self.order.late)
        start = self.lists.flat[position] + 1
        return sorted(self.order.late.union(range(start, len(self.calls))))


def _frame_memory(order: OrderedCalls, registers: RegisterTable, lifetimes: Lifetimes) -> FrameMemory:
    plan = plan_memory(_with_early_copies_in(order, lifetimes.uses), kept=lifetimes.kept)
    copied_feeds = _choose_copied_feeds(order, registers, lifetimes)
    planned = frozenset((*registers.presets, *plan.slot_of, *copied_feeds))
    fixed = _find_fixed(order.calls, planned)
    count = len(registers.metas)
    return FrameMemory(plan, copied_feeds, planned, fixed,
                       (*(r for r in range(count) if r not in fixed or r in registers.arguments), count))


def _with_early_copies_in(order: OrderedCalls, uses: Sequence[Use]) -> Sequence[Use]:
    """Return the uses with the results of copies on streams of their own before all others.

    Such a copy may run before the kernels that stand before it. With the memory of a value of theirs it would wait.
    """
    if not order.overlaps:
        return uses
    early = [bound.device_stream != STREAM and bound.memory != HOST for bound in order.calls]
    first = [Use((), use.writes, use.memory) for use, is_early in zip(uses, early, strict=True) if is_early]
    return [*first, *(Use((*use.reads, *(r for r, _ in use.writes)), (), use.memory) if is_early else use
                      for use, is_early in zip(uses, early, strict=True))]


def _choose_copied_feeds(order: OrderedCalls, registers: RegisterTable, lifetimes: Lifetimes) -> frozenset[int]:
    consumers = [0] * len(registers.metas)
    for bound in order.calls:
        for register in bound.call.args:
            consumers[registers.root[register]] += LEAST_CONSUMERS_OF_COPY if bound.prefers_fixed_arrays else 1
    return frozenset(i for i in registers.arguments
                     if i not in lifetimes.lent and consumers[i] >= LEAST_CONSUMERS_OF_COPY and registers.has_size(i)
                     and registers.metas[i].nbytes <= LARGEST_COPIED_BYTES)


def _find_fixed(calls: Iterable[BoundCall], planned: frozenset[int]) -> frozenset[int]:
    fixed = set(planned)
    for bound in calls:
        if bound.is_view and all(bound.call.args[source] in fixed for source in bound.alias.values()):
            fixed.update(bound.call.results)
    return frozenset(fixed)


def _attached_lists(order: OrderedCalls, registers: RegisterTable, memory: FrameMemory) -> AttachedLists:
    views = {number for number, bound in enumerate(order.calls)
             if bound.is_view and memory.fixed.issuperset(bound.call.results)}
    in_order = order.in_order
    return AttachedLists(
        tuple(sorted(views.union(in_order))),
        tuple(n for n in in_order if n not in order.late and n not in views),
        tuple(n for n in in_order if n in order.tail and n not in views),
        order.registers_from_outside(order.tail) - memory.fixed,
        frozenset(r for n in order.tail for r in order.gives[n]),
        find_deaths(order, registers, memory.fixed))


def _copied_results(
    order: OrderedCalls, registers: RegisterTable, lifetimes: Lifetimes, memory: FrameMemory
) -> tuple[int, ...]:
    """Return the indices of results that are copied before the user gets them.

    A result is copied when its elements are not this run's own, or when an earlier result is the same array.
    """
    passed_on = {r for bound in order.calls if bound.passes_on for r in bound.call.results}
    not_fresh = {*memory.planned, *registers.arguments, *lifetimes.retained, *passed_on}
    roots = [registers.root[register] for register in registers.results]
    first = {root: i for i, root in reversed([*enumerate(roots)])}
    return tuple(i for i, root in enumerate(roots)
                 if (root in not_fresh or first[root] < i or registers.results[i] in registers.parts)
                 and registers.results[i] not in registers.opaque)
