"""The memory plan: which registers share a buffer, decided once from who uses what until when.

A planned register belongs to a slot, a buffer of its frame. Slots are reused as soon as the value in them is read for
the last time; the smallest that fits is taken, else the largest is grown. An output that may be written over an input
takes its slot when nobody needs the input any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Use:
    """One call's part in the plan, by roots (an alias counts as the register it views).

    `writes`: register and bytes of outputs to be planned; `memory`: whose memory they live in; `inplace`: (written,
    read) registers that may share.
    """

    reads: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    memory: int
    inplace: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class MemoryPlan:
    """`slot_of`: planned register to slot; `slots`: (memory, bytes) of each."""

    slot_of: dict[int, int] = field(default_factory=dict)
    slots: list[tuple[int, int]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(size for _, size in self.slots)


def plan_memory(uses: Sequence[Use]) -> MemoryPlan:
    """Slots for everything that the calls write, in their order."""
    last_use: dict[int, int] = {}
    for index, use in enumerate(uses):
        for register in (*use.reads, *(r for r, _ in use.writes)):
            last_use[register] = index
    plan = MemoryPlan()
    free: list[int] = []
    for index, use in enumerate(uses):
        over = {w: r for w, r in use.inplace if _may_share(plan, use, w, r, last_use[r] == index)}
        for register, nbytes in use.writes:
            read = over.get(register)
            plan.slot_of[register] = plan.slot_of[read] if read is not None else _take(plan, free, use.memory, nbytes)
        kept = set(over.values())
        for register in dict.fromkeys((*use.reads, *(r for r, _ in use.writes))):
            if last_use[register] == index and register in plan.slot_of and register not in kept:
                free.append(plan.slot_of[register])
    return plan


def _may_share(plan: MemoryPlan, use: Use, written: int, read: int, dies: bool) -> bool:
    """True when `written` may take over the buffer of `read`: planned, not needed later, read once, large enough."""
    if not dies or read not in plan.slot_of or use.reads.count(read) != 1:
        return False
    wanted = dict(use.writes).get(written)
    memory, size = plan.slots[plan.slot_of[read]]
    return wanted is not None and memory == use.memory and wanted <= size


def _take(plan: MemoryPlan, free: list[int], memory: int, nbytes: int) -> int:
    """A free slot of this memory that holds `nbytes`, or a new one."""
    mine = sorted((s for s in free if plan.slots[s][0] == memory), key=lambda s: plan.slots[s][1])
    slot = next((s for s in mine if plan.slots[s][1] >= nbytes), mine[-1] if mine else None)
    if slot is None:
        plan.slots.append((memory, nbytes))
        return len(plan.slots) - 1
    free.remove(slot)
    plan.slots[slot] = (memory, max(nbytes, plan.slots[slot][1]))
    return slot
