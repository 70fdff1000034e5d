"""FrameFactory: makes frames of a layout: allocates the buffers of the memory plan and attaches the calls to them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import HealdError
from ..contract.allocator import ALIGNMENT, LARGE_PAGE
from ..host.device_memory import Owned
from ..host.host_memory import RelaidConstant
from ..program.host_program import COPY, EVENT, HOST
from ..support.kernel_errors import raise_of
from ..values.tensor import TensorMetadata
from .array_contract import check_returned, look_once
from .bound_call import BoundCall
from .dead_memory import poisoned
from .frame import Frame
from .frame_calls import (
    FrameCall,
    Maker,
    OneResult,
    copier,
    open_call,
    run_alias,
    run_event,
    run_host,
    run_lazy,
    run_leaving,
    run_returning,
    run_view,
    run_wrapping,
    then_forget,
)
from .frame_layout import FrameLayout
from .host_array import typed, view
from .kernel_runs import KernelRuns
from .memory_plan import MemoryPlan
from .replay import segments

if TYPE_CHECKING:
    from ..host.host import Host


class FrameFactory:
    """Makes the frames of `layout` on this host. Several threads may make frames at once."""

    def __init__(self, layout: FrameLayout, host: Host) -> None:
        self._layout = layout
        self._host = host
        self._runs = KernelRuns(layout, host)
        self._has_frames = False
        is_plain = not (host.debug.poison or host.debug.synchronous)
        self._segments = segments(layout) if is_plain else ()

    def make(self, plan: MemoryPlan | None = None) -> Frame:
        """Return a new frame for `plan`, by default the plan of the flat list.

        Raises ResourceExhausted when host or device memory is short.
        """
        layout, memory = self._layout, self._host.device_memory
        plan = plan or layout.plan
        owned: list[Owned] = []
        lent: list[Owned] = []
        buffers = self._allocate(plan, owned)
        registers = self._registers(plan, buffers)
        copies = [(i, self._runs.maker(i, registers)()) for i in layout.copied_feeds]
        for i, copy in copies:
            registers[i] = copy
        calls = self._attached(plan, registers, lent)
        if self._host.debug.poison:
            calls = self._poisoned(calls, buffers, dict(copies))
        frame = Frame(registers, calls[: len(layout.flat)], copies, lent, layout.flat)
        if plan is layout.plan and layout.tail:
            frame.tail = Frame(registers, calls[len(layout.flat) :], [], lent, layout.tail_flat)
        if plan is layout.plan:
            frame.uncaptured = self._segments
        is_first = not self._has_frames and plan is layout.plan
        self._has_frames = self._has_frames or is_first
        for part in (frame, frame.tail):
            if part is not None and len(part.calls) > 1:  # after a single call no call is left to stop
                self._host.frames[id(part)] = part
            if part is not None and is_first:
                look_once(part, partial(self._check_returned, registers, part.numbers))
        if owned:
            weakref.finalize(frame, memory.dropped.extend, owned)
        if any(bound.wraps for bound in layout.calls):
            weakref.finalize(frame, memory.dropped.extend, lent)  # a failed run leaves some
        return frame

    def _registers(self, plan: MemoryPlan, buffers: Mapping[int, Any]) -> list[Any]:
        """Return the registers with constants and arrays over the buffers of the plan."""
        metas = self._layout.metas
        registers: list[Any] = [None] * (len(metas) + 1)
        for register, value in self._layout.presets.items():
            registers[register] = value if value.__class__ is not RelaidConstant else value.array()
        arrays: dict[tuple[int, TensorMetadata], Any] = {}  # one object for each use of a slot: fewer cache lines
        for register, slot in plan.slot_of.items():
            key = slot, metas[register]
            if key not in arrays:
                buffer = buffers[slot]
                arrays[key] = typed(buffer, key[1]) if plan.slots[slot][0] == HOST else buffer
            registers[register] = arrays[key]
        return registers

    def _attached(self, plan: MemoryPlan, registers: list[Any], lent: list[Owned]) -> list[FrameCall]:
        """Return the FrameCalls of the flat list, and of the tail behind it unless `plan` is that of a partition.

        The plan of a task partition has no buffers for the tail, and no last consumer is known under it.
        """
        layout = self._layout
        if plan is not layout.plan:
            early = (bound for n, bound in enumerate(layout.calls) if n not in layout.late)
            return [call for bound in early if (call := self._attach(bound, registers, lent)) is not None]
        attached = {n: call for n in layout.attached
                    if (call := self._attach(layout.calls[n], registers, lent)) is not None}
        return [partial(then_forget, call, registers, layout.dying[n]) if n in layout.dying else call
                for n, call in attached.items()]

    def _poisoned(self, calls: list[FrameCall], buffers: Mapping[int, Any], copies: dict[int, Any]) -> list[FrameCall]:
        """Wrap the FrameCalls so that they poison the frame's host memory as soon as it is dead."""
        layout, plan = self._layout, self._layout.plan
        touched = [{layout.root[r] for r in (*call.args, *call.results)}
                   for call in (layout.calls[n].call for n in (*layout.flat, *layout.tail_flat))]
        blocks = {r: buffers[slot] for r, slot in plan.slot_of.items() if plan.slots[slot][0] == HOST}
        return poisoned(calls, touched, blocks | {i: copy.reshape(-1).view(np.uint8) for i, copy in copies.items()})

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
        first = reversed(plan.slot_of.items())
        users = {slot: self._layout.producer[register] for register, slot in first}  # the first user of each slot
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
            what = f"of {self._layout.plan.nbytes} bytes that a run of this program takes"
            return self._host.device_memory.allocate(device, nbytes, what)
        except Exception as error:  # noqa: BLE001 - raised again, typed
            raise self._at(user, self._host.fault(device, error))  # noqa: B904 - the cause is set there

    def _at(self, user: BoundCall, error: HealdError) -> HealdError:
        name = None if user.device is None else self._host.name_of(user.device)
        return error.at(node=user.call.node, op=user.call.op, device=name)

    def _attach(self, bound: BoundCall, registers: list[Any], lent: list[Owned]) -> FrameCall | None:
        """Return the FrameCall of a call over these registers, or None when nothing is left to run."""
        args, results = bound.call.args, bound.call.results
        if bound.is_view:
            return self._attach_view(bound, registers)
        if bound.lazy is not None:
            return partial(run_lazy, registers, args, bound.given, bound.lazy)
        if isinstance(bound.bound, OneResult) and not bound.pends:
            assert bound.kernel is not None
            return bound.bound.over(registers, (-1, *args) if bound.kernel.step else args, results[0])
        if bound.device is None:
            run_it = run_returning if bound.pends else run_host
            return partial(run_it, registers, args, results, self._runs.runner(bound, registers))
        if bound.call.code == EVENT:
            return partial(run_event, registers, results[0], self._host.waiter(bound.device).reach)
        if bound.awaited:
            leave = self._host.waiter(bound.device).leave
            return partial(run_leaving, registers, args[0], results[0], self._runs.maker(results[0], registers), leave)
        if bound.wraps:
            memory = self._host.device_memory
            return partial(run_wrapping, registers, args[0], results[0], memory, bound.device, lent)
        if bound.call.code == COPY:
            return open_call(registers, args, results, self._makers(bound, registers), copier(bound))
        run = self._runs.runner(bound, registers)
        if bound.returns:
            return partial(run_returning, registers, args, bound.given, run)
        if self._layout.fixed.issuperset(args) and self._layout.fixed.issuperset(results):
            inputs, outputs = tuple(registers[a] for a in args), tuple(registers[r] for r in results)
            attach = getattr(bound.bound, "attach", None)
            if attach is None:
                return partial(run, *inputs, *outputs)
            call = self._runs.awaited(_attach_kernel(bound, attach, inputs, outputs), bound)
            if self._runs.checks:
                return partial(self._runs.watched(lambda *_: call(), bound), *inputs, *outputs)
            return call
        return open_call(registers, args, results, self._makers(bound, registers), run)

    def _attach_view(self, bound: BoundCall, registers: list[Any]) -> FrameCall | None:
        pairs = [(r, bound.call.args[bound.alias[i]], self._layout.metas[r]) for i, r in enumerate(bound.call.results)]
        if not self._layout.fixed.issuperset(bound.call.results):
            return partial(run_view if bound.memory == HOST else run_alias, registers, pairs)
        for result, source, meta in pairs:
            registers[result] = view(registers[source], meta) if bound.memory == HOST else registers[source]
        return None

    def _makers(self, bound: BoundCall, registers: list[Any]) -> tuple[Maker | None, ...]:
        return tuple(None if r in self._layout.fixed else self._runs.maker(r, registers) for r in bound.call.results)


def _attach_kernel(
    bound: BoundCall, attach: Callable[..., FrameCall], inputs: Sequence[Any], outputs: Sequence[Any]
) -> FrameCall:
    """Return the FrameCall from the kernel's `attach` for these arrays. Raises as `raise_of`."""
    assert bound.kernel is not None
    try:
        return attach(inputs, outputs)
    except Exception as error:  # noqa: BLE001 - raised again, typed
        raise_of("attach", error, bound.kernel, bound.call.node, bound.call.op)
