"""The memory plan assigns registers to shared buffers, once per executable, by the lifetimes of their values.

A planned register belongs to a slot, a buffer of its frame. Slots in host memory are parts of one block. A slot is in
one of two states: taken, from the call that writes its value up to the call that reads the value last, or free.

- A register takes the smallest free slot that fits. If none fits, the largest free slot grows. Without a free slot, a
  new one is made.
- An output that may be written over an input takes the input's slot, when no later call needs the input.
- A slot becomes free after the call with the last use of its value. So the outputs of a call never share a slot with
  its inputs, but for the inputs that it declares `inplace`.

Under a task partition the order of calls is partial. A use of the value in a part counts as over for a later call only
if the part is in `reach` of the later call's part: it has then ended in every order that the partition allows. Both
sets are bit sets of parts, and a slot is free for a call when `users & ~reach` is empty.

Invariants:
- Two values whose lifetimes overlap in an allowed order have different slots.
- Slots never move between memories.
- Uses name roots: a view and its source are one value, which lives as long as the last of both.
- Registers without a write in any `Use` have no slot: they are lent, or have no static size (`lifetimes`).

Rule: a `Use` must list every read and write of a call. A new reader of planned values outside the order of the uses
must make them lent in `lifetimes` instead.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from itertools import count
from typing import TYPE_CHECKING

from ..support.records import NamedTuple

if TYPE_CHECKING:
    from .task_partition import TaskPartition


class Use(NamedTuple):
    """The registers of one call as the plan sees them, by roots: an alias counts as the register that it shows.

    `writes`: (register, bytes) of outputs to plan.
    `memory`: the stream whose memory holds the outputs.
    `inplace`: (written, read) pairs of registers that may share a slot.
    """

    reads: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    memory: int
    inplace: tuple[tuple[int, int], ...] = ()


class MemoryPlan(NamedTuple):
    """The slots of a frame, and the slot of each planned register.

    `slot_of`: planned register to slot.
    `slots`: (memory, bytes) of each slot.
    """

    slot_of: dict[int, int]
    slots: list[tuple[int, int]]

    @property
    def nbytes(self) -> int:
        return sum(size for _, size in self.slots)


def plan_memory(
    uses: Sequence[Use], partition: TaskPartition | None = None, kept: Collection[int] = ()
) -> MemoryPlan:
    """Assign a slot to every planned output of the calls.

    The plan holds for the calls in order; with `partition`, for every order that it allows. The slots of the registers
    `kept` keep their content to the end.
    """
    home, reach = ([0] * len(uses), [1]) if partition is None else (partition.parts_of_calls(), partition.reach())
    last_use: dict[int, int] = {}
    used_in: dict[int, int] = {}  # register -> bit set of the pieces of the partition that use it
    for index, use in enumerate(uses):
        for register in (*use.reads, *(r for r, _ in use.writes)):
            last_use[register] = index
            used_in[register] = used_in.get(register, 0) | 1 << home[index]
    last_use |= dict.fromkeys(kept, len(uses))
    plan = MemoryPlan({}, [])
    free = FreeSlots()
    for index, use in enumerate(uses):
        later_pieces = ~reach[home[index]]  # bit set of the pieces that may not have ended
        over = {w: r for w, r in use.inplace
                if _may_take_over(plan, use, w, r, last_use[r] == index and not used_in[r] & later_pieces)}
        for register, nbytes in use.writes:
            read = over.get(register)
            slot = plan.slot_of[read] if read is not None else _take_slot(plan, free, later_pieces, use.memory, nbytes)
            plan.slot_of[register] = slot
        taken_over = set(over.values())
        for register in dict.fromkeys((*use.reads, *(r for r, _ in use.writes))):
            if last_use[register] == index and register in plan.slot_of and register not in taken_over:
                slot = plan.slot_of[register]
                free.add(slot, *plan.slots[slot], used_in[register])
    return plan


def _may_take_over(plan: MemoryPlan, use: Use, written: int, read: int, dies: bool) -> bool:
    """True when `written` may take over the slot of `read`: planned, dead afterwards, read once, large enough."""
    if not dies or read not in plan.slot_of or use.reads.count(read) != 1:
        return False
    nbytes = dict(use.writes).get(written)
    memory, size = plan.slots[plan.slot_of[read]]
    return nbytes is not None and memory == use.memory and nbytes <= size


class FreeSlots:
    """Free slots, sorted by size: a program may have 100,000 slots, and looks for one in each call."""

    def __init__(self) -> None:
        self._sorted: dict[tuple[int, int], list[tuple[int, int, int]]] = {}  # (bytes, number, slot) by (memory, users)
        self._numbers = count()

    def add(self, slot: int, memory: int, nbytes: int, users: int) -> None:
        """Add a slot to the free ones. `users`: bit set of the pieces that read or wrote its last value."""
        insort(self._sorted.setdefault((memory, users), []), (nbytes, next(self._numbers), slot))

    def take(self, memory: int, nbytes: int, later_pieces: int) -> int | None:
        """Remove and return the smallest slot of `nbytes` or more, else the largest slot, else None.

        Slots last used by a piece in the bit set `later_pieces` do not count.
        """
        usable = [slots for (where, users), slots in self._sorted.items()
                  if slots and where == memory and not users & later_pieces]
        if not usable:
            return None
        fitting = [(slots[at], at, slots) for slots in usable if (at := bisect_left(slots, (nbytes,))) < len(slots)]
        _, at, slots = min(fitting) if fitting else max((slots[-1], len(slots) - 1, slots) for slots in usable)
        return slots.pop(at)[2]


def _take_slot(plan: MemoryPlan, free: FreeSlots, later_pieces: int, memory: int, nbytes: int) -> int:
    """Return a free slot of this memory, grown to `nbytes` if necessary, or a new slot."""
    slot = free.take(memory, nbytes, later_pieces)
    if slot is None:
        plan.slots.append((memory, nbytes))
        return len(plan.slots) - 1
    plan.slots[slot] = (memory, max(nbytes, plan.slots[slot][1]))
    return slot
