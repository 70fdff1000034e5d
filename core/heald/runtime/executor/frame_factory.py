"""FrameFactory: makes frames of a layout: allocates the buffers of the memory plan and attaches the calls to them.

No finalizer of a frame calls a device, for it may run within the device's methods. Buffers of collected frames wait in
`DeviceMemory` for the next allocation, the end of a run, or the end of a session.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import HealdError
from ..contract.allocator import ALIGNMENT, LARGE_PAGE
from ..host.device_memory import Owned
from ..host.host_memory import RelaidConstant
from ..program.host_program import HOST
from ..values.tensor import TensorMetadata
from .array_contract import check_first_run, check_returned
from .calls.bound_call import BoundCall
from .calls.frame_calls import FrameCall
from .calls.unfinished_frame import UnfinishedFrame
from .fences import fenced_calls
from .frame import Frame
from .frame_layout import FrameLayout
from .host_array import typed_view
from .joined_calls import join_adjacent_calls
from .memory_plan import MemoryPlan
from .replay import find_segments

if TYPE_CHECKING:
    from ..host.host import Host


class FrameFactory:
    """Makes the frames of `layout` on this host. Several threads may make frames at once."""

    def __init__(self, layout: FrameLayout, host: Host) -> None:
        self._layout = layout
        self._host = host
        self._environment = layout.environment(host)
        self._has_frames = False
        self._is_plain = not (host.debug.poison or host.debug.synchronous)
        self._segments = find_segments(layout) if self._is_plain else ()

    def make(self, plan: MemoryPlan | None = None) -> Frame:
        """Return a new frame for `plan`, by default the plan of the flat list.

        Raises ResourceExhausted when host or device memory is short.
        """
        lists, memory = self._layout.lists, self._host.device_memory
        is_flat = plan is None or plan is self._layout.memory.plan
        plan = plan or self._layout.memory.plan
        owned: list[Owned] = []
        lent: list[Owned] = []
        buffers = self._allocate(plan, owned)
        registers = self._registers(plan, buffers)
        copies = [(i, self._environment.maker(i, registers)()) for i in self._layout.memory.copied_feeds]
        for i, copy in copies:
            registers[i] = copy
        has_fences = is_flat and self._is_plain and bool(self._layout.fences.before)
        unfinished = UnfinishedFrame(registers, self._layout.memory.fixed, lent, self._environment,
                                     self._layout.copy_streams if has_fences else {})
        calls = self._attach_in_order(unfinished) if is_flat else self._attach_flat(unfinished)
        if has_fences:
            calls = fenced_calls(calls, lists.flat, self._layout.fences)
        if self._host.debug.poison:
            calls = self._calls_that_poison_memory(calls, buffers, dict(copies))
        frame = Frame(registers, calls[: len(lists.flat)], copies, lent, lists.flat)
        if is_flat:
            frame.segments_to_capture = self._segments
            if lists.tail:
                frame.tail = Frame(registers, calls[len(lists.flat) :], [], lent, lists.tail)
            if self._is_plain:
                join_adjacent_calls(frame)
        is_first = not self._has_frames and is_flat
        self._has_frames = self._has_frames or is_first
        for part in (frame, frame.tail):
            if part is not None and len(part.calls) > 1:  # after a single call no call is left to stop
                self._host.frames[id(part)] = part
            if part is not None and is_first:
                check_first_run(part, partial(self._check_returned, registers, part.numbers))
        if owned:
            weakref.finalize(frame, memory.dropped.extend, owned)
        if any(bound.adopts_feed for bound in self._layout.calls):
            weakref.finalize(frame, memory.dropped.extend, lent)  # a failed run leaves some
        return frame

    def _registers(self, plan: MemoryPlan, buffers: Mapping[int, Any]) -> list[Any]:
        """Return the registers with constants and arrays over the buffers of the plan."""
        metas = self._layout.registers.metas
        registers: list[Any] = [None] * (len(metas) + 1)
        for register, value in self._layout.registers.presets.items():
            registers[register] = value if value.__class__ is not RelaidConstant else value.array()
        arrays: dict[tuple[int, TensorMetadata], Any] = {}  # one object for each use of a slot: fewer cache lines
        for register, slot in plan.slot_of.items():
            key = slot, metas[register]
            if key not in arrays:
                buffer = buffers[slot]
                arrays[key] = typed_view(buffer, key[1]) if plan.slots[slot][0] == HOST else buffer
            registers[register] = arrays[key]
        return registers

    def _attach_in_order(self, frame: UnfinishedFrame) -> list[FrameCall]:
        """Return the FrameCalls of the flat list, and of the tail behind it."""
        dying = self._layout.lists.deaths.dying
        attached = {number: call for number in self._layout.lists.attached
                    if (call := self._layout.calls[number].make_frame_call(frame)) is not None}
        return [_forgetting_call(call, frame.registers, dying[number]) if number in dying else call
                for number, call in attached.items()]

    def _attach_flat(self, frame: UnfinishedFrame) -> list[FrameCall]:
        """Return the FrameCalls of the flat list, for the plan of a partition.

        Such a plan has no buffers for the tail, and no last consumer is known under it.
        """
        order = self._layout.order
        early = (bound for number, bound in enumerate(order.calls) if number not in order.late)
        return [call for bound in early if (call := bound.make_frame_call(frame)) is not None]

    def _calls_that_poison_memory(
        self, calls: list[FrameCall], buffers: Mapping[int, Any], copies: Mapping[int, Any]
    ) -> list[FrameCall]:
        """Wrap the FrameCalls so that they poison the frame's host memory as soon as it is dead."""
        from .dead_memory import poisoning_calls

        lists, root, plan = self._layout.lists, self._layout.registers.root, self._layout.memory.plan
        touched = [{root[r] for r in (*call.args, *call.results)}
                   for call in (self._layout.calls[number].call for number in (*lists.flat, *lists.tail))]
        blocks = {r: buffers[slot] for r, slot in plan.slot_of.items() if plan.slots[slot][0] == HOST}
        blocks |= {i: copy.reshape(-1).view(np.uint8) for i, copy in copies.items()}
        return poisoning_calls(calls, touched, blocks, self._layout.lifetimes.kept)

    def _check_returned(self, registers: list[Any], numbers: Sequence[int], index: int, returned: Any) -> None:
        """Raises PluginError when an attached call returned an array that is not one of its outputs."""
        bound = self._layout.calls[numbers[index]]
        outputs = [registers[r] for r in bound.call.results]
        if bound.kernel is not None and all(out is not None for out in outputs):  # None: dead already
            check_returned(returned, outputs, bound.kernel)

    def _allocate(self, plan: MemoryPlan, owned: list[Owned]) -> dict[int, Any]:
        """Allocate a buffer for each slot; `owned` receives the buffers on devices.

        Host memory is released with the last array over it, maybe later than the frame: a kernel of an abandoned step
        may still use it.
        """
        producer = self._layout.registers.producer
        users = {slot: producer[register] for register, slot in reversed(plan.slot_of.items())}  # the first user
        buffers = self._allocate_host_slots(plan, users)
        try:
            for slot, (memory, nbytes) in enumerate(plan.slots):
                if memory != HOST:
                    buffers[slot] = self._allocate_slot(nbytes, users[slot])
                    device = users[slot].device
                    assert device is not None
                    owned.append((device.free, buffers[slot]))
        except BaseException:
            self._host.device_memory.free(owned)
            raise
        return buffers

    def _allocate_host_slots(self, plan: MemoryPlan, users: Mapping[int, BoundCall]) -> dict[int, Any]:
        """Allocate the slots in host memory: in one block, or each by itself if the allocator keeps them apart."""
        sizes = {slot: nbytes for slot, (memory, nbytes) in enumerate(plan.slots) if memory == HOST}
        if not getattr(self._host.memory.allocator, "keeps_apart", False):
            return self._allocate_block(sizes, users) if sizes else {}
        return {slot: self._allocate_block({slot: nbytes}, users)[slot] for slot, nbytes in sizes.items()}

    def _allocate_block(self, sizes: Mapping[int, int], users: Mapping[int, BoundCall]) -> dict[int, Any]:
        """Allocate slots of these sizes in one block, with large pages if the system has them."""
        *starts, _ = accumulate((-(-nbytes // ALIGNMENT) * ALIGNMENT for nbytes in sizes.values()), initial=0)
        total = starts[-1] + [*sizes.values()][-1]
        try:
            arena = self._host.memory.allocate(total, LARGE_PAGE if total >= LARGE_PAGE else ALIGNMENT,
                                               "memory for the intermediate values of a run")
        except HealdError as error:
            raise self._at(users[max(sizes, key=sizes.__getitem__)], error)  # noqa: B904 - the same error
        return {slot: arena[start : start + sizes[slot]] for slot, start in zip(sizes, starts, strict=True)}

    def _allocate_slot(self, nbytes: int, user: BoundCall) -> Any:
        device = user.device
        assert device is not None
        try:
            what = f"of {self._layout.memory.plan.nbytes} bytes that a run of this program takes"
            return self._host.device_memory.allocate(device, nbytes, what)
        except Exception as error:  # noqa: BLE001 - raised again, typed
            raise self._at(user, self._host.fault(device, error))  # noqa: B904 - the cause is set there

    def _at(self, user: BoundCall, error: HealdError) -> HealdError:
        name = None if user.device is None else self._host.name_of(user.device)
        return error.at(node=user.call.node, op=user.call.op, device=name)


def _forgetting_call(call: FrameCall, registers: list[Any], dead: Sequence[int]) -> FrameCall:
    """Return a call that also empties the registers whose values die with it: one mostly, which needs no loop."""
    if len(dead) == 1:
        (only,) = dead

        def run_and_forget_one() -> Any:
            returned = call()
            registers[only] = None
            return returned

        return run_and_forget_one

    def run_and_forget() -> Any:
        returned = call()
        for register in dead:
            registers[register] = None
        return returned

    return run_and_forget
