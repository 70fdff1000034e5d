"""Frames: the state of one running step, and the forms in which a linked program's calls are bound to it.

A register is *fixed* when its payload is the same object in every run of a frame. Fixed are constants, buffers of the
memory plan, copies of small feeds, and views of these. A call whose registers are all fixed becomes a FrameCall over
these payloads. The other registers are *open*: a FrameCall reads them when it runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, count
from sys import maxsize
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contract.allocator import ALIGNMENT, LARGE_PAGE
from ..contract.device import STREAM
from ..contract.kernel import run_of
from ..errors import WeftError
from ..host.device_memory import Owned
from ..host.host_memory import LaidOut
from ..host.kernel_context import KernelContext
from ..program.host_program import COPY, EVENT, HOST, ProgramFunction
from ..support.kernel_errors import raise_of
from ..values.tensor import TensorMetadata
from .array_contract import buffer_poisoner, check_returned, look_once, poison_array, watched
from .bound_call import BoundCall
from .dead_memory import poisoned
from .frame_calls import (
    FrameCall,
    Maker,
    device_maker,
    on_stream,
    open_call,
    returning,
    run_alias,
    run_event,
    run_host,
    run_lazy,
    run_leaving,
    run_returning,
    run_view,
    run_wrapping,
    then_forget,
    with_step,
    with_values,
)
from .host_array import given, typed, view
from .memory_plan import MemoryPlan, Use, plan_memory
from .step import Step
from .task_partition import TaskPartition

if TYPE_CHECKING:
    from ..host.host import Host

SMALL_FEED = 4096  # bytes up to which a feed is copied into the frame, which makes its register fixed
FEED_USERS = 3  # consumers from which on the copy pays: it costs as much as two open calls cost more than fixed ones

FreshCall = Callable[[Step, list[Any]], list[Any]]  # arguments to results, which are new arrays or views of arguments


class Cursor:
    """The position of one run in a list of calls. Another thread can end the run through it.

    Every run has a cursor of its own. So a late stop ends a run that is over, and never the frame's next run.
    """

    calls: Iterator[FrameCall] = iter(())
    is_stopped = False

    def stop(self) -> None:
        """Begin no further call.

        The list's iterator is set behind its end, so the loop over it ends and tests nothing per call. After the loop,
        the run tests `is_stopped`.
        """
        self.is_stopped = True
        self.calls.__setstate__(maxsize)  # type: ignore[attr-defined]


class Frame:
    """The registers of one step, the FrameCalls over them, and the arrays that feeds are copied into.

    The last register holds the Step that runs in the frame, one at a time.

    `copies`: (register, array) for each feed that is copied.
    `lent`: buffers of the current run, with the functions that free them.
    `cursor`: the position of the current run.
    `parts`: the calls of each part, in frames of a parallel schedule.
    `cursors`: the position in each piece.
    `numbers`: for each of `calls` the index of its call in the layout.
    `tail`: the calls of the layout's tail, as a frame over the same registers; None without one.
    """

    __slots__ = ("__weakref__", "calls", "context", "copies", "cursor", "cursors", "lent", "numbers", "parts",
                 "registers", "tail")

    def __init__(
        self, registers: list[Any], calls: list[FrameCall], copies: list[tuple[int, Any]], lent: list[Owned],
        numbers: Sequence[int],
    ) -> None:
        self.registers = registers
        self.calls = calls
        self.numbers = numbers
        self.tail: Frame | None = None
        self.copies = copies
        self.lent = lent
        self.parts: list[list[FrameCall]] = []
        self.cursor = Cursor()
        self.cursors: list[Cursor] = []
        self.context = KernelContext()

    def position(self) -> int:
        """Return the flat index of the call that started last. For a stopped run the index means nothing."""
        left: int = self.cursor.calls.__length_hint__()  # type: ignore[attr-defined]
        return max(len(self.calls) - left - 1, 0)

    def stop(self, step: Step) -> None:
        """Begin no further call if this step runs here. Any thread may call this after it has set the step's error."""
        cursors = self.cursor, *self.cursors  # read before the owner: a later owner's run has other cursors
        for owner in self.registers[-1:]:
            if owner is step:
                for cursor in cursors:
                    cursor.stop()


class FrameLayout:
    """All properties of an executable's frames that are known before the first frame exists.

    `flat`: for each FrameCall of the flat list the index of its call in `calls`.
    `late`: the indices of the calls that run in a Dataflow, behind asynchronous results.
    `tail`: the late calls that wait for every call that may pend. Nothing is pending when they start, so they run
        attached and in order, like the flat list. `tail_flat` has those with a FrameCall.
    `tail_needs`: the open registers that the tail reads and does not fill; `tail_gives`: the registers that it fills.
    `lasting`: the registers whose values outlive the calls before the tail.
    `plan`: the memory plan of the flat list and the tail.

    `calls` has the calls in the order in which a run comes to them: flat list, other late calls, tail.
    """

    def __init__(
        self, function: ProgramFunction, metas: Sequence[TensorMetadata], calls: Sequence[BoundCall],
        presets: Mapping[int, Any], host: Host,
    ) -> None:
        self._host = host
        self._metas = metas
        self.late, self.tail, self.calls = _in_order_of_runs(calls)
        calls = self.calls
        self.needs = [bound.call.needs for bound in calls]
        self.gives = [bound.call.gives for bound in calls]
        self.nonstrict = frozenset(n for n, c in enumerate(calls) if c.kernel is not None and c.kernel.nonstrict)
        self._presets = presets
        self.results = function.results
        self._opaque = {r for r, kind in enumerate(function.register_types) if isinstance(kind, str)}
        self._root = _roots(calls, len(metas))
        self.producer = {r: bound for bound in calls for r in bound.given}
        self._memory = [self.producer[r].memory if r in self.producer else HOST for r in range(len(metas))]
        self.is_asynchronous = any(call.may_pend or (call.kernel is not None and call.kernel.step and not call.settled)
                                   for call in calls)
        # Host kernels may hand over to a Dataflow, and poisoning follows the order of the list.
        self._checks = host.debug.poison
        self.is_in_order = host.debug.poison or any(call.device is None for call in calls)
        self._fresh_calls: dict[int, FreshCall] = {}
        self._has_frames = False
        arguments = range(len(function.arg_names))
        lent = self._lent(function.results, arguments)
        self._uses = self._find_uses(lent)
        self.plan = plan_memory(self._uses)
        self.copied_feeds = self._choose_copied_feeds(arguments, lent)
        given = {*presets, *self.plan.slot_of, *self.copied_feeds}
        self.fixed = self._find_fixed(given)
        self.open = (*(r for r in range(len(metas)) if r not in self.fixed or r in arguments), len(metas))
        attached = [n for n, bound in enumerate(calls)
                    if not (bound.is_view and self.fixed.issuperset(bound.call.results))]
        self.flat = tuple(n for n in attached if n not in self.late)
        self.tail_flat = tuple(n for n in attached if n in self.tail)
        self.tail_needs = self._outside(self.tail) - self.fixed
        self.tail_gives = frozenset(r for n in self.tail for r in calls[n].call.gives)
        self.lasting = dict.fromkeys((*function.results, *self._outside(self.tail)), -1)
        self._dying = self._find_dying({*function.results, *arguments})
        passed = {r for bound in calls if bound.passes_on for r in bound.call.results}
        self.copied_results = self._find_copied(function.results, given.union(arguments, self._retained(), passed))

    def plan_of(self, partition: TaskPartition) -> MemoryPlan:
        """Return the memory plan under a task partition. The planned registers are those of `plan`."""
        return plan_memory([self._uses[n] for n in self.flat], partition)

    def make_frame(self, plan: MemoryPlan | None = None) -> Frame:
        """Return a new frame for `plan`, by default the plan of the flat list.

        Raises ResourceExhausted when host or device memory is short.
        """
        plan = plan or self.plan
        registers: list[Any] = [None] * (len(self._metas) + 1)
        for register, value in self._presets.items():
            registers[register] = value if value.__class__ is not LaidOut else value.array()
        owned: list[Owned] = []
        buffers = self._allocate(plan, owned)
        arrays: dict[tuple[int, TensorMetadata], Any] = {}  # one object for each use of a slot: fewer cache lines
        for register, slot in plan.slot_of.items():
            key = slot, self._metas[register]
            if key not in arrays:
                buffer = buffers[slot]
                arrays[key] = typed(buffer, key[1]) if plan.slots[slot][0] == HOST else buffer
            registers[register] = arrays[key]
        copies = [(i, self._maker(i, registers)()) for i in self.copied_feeds]
        for i, copy in copies:
            registers[i] = copy
        lent: list[Owned] = []
        numbers = [n for n in range(len(self.calls)) if n not in self.late]
        if plan is self.plan:  # the plan of a task partition has no buffers for the tail
            numbers += self.tail
        attached = [call for n in numbers if (call := self._attach(self.calls[n], registers, lent)) is not None]
        if plan is self.plan:  # under a task partition the last consumer is not known beforehand
            attached = [partial(then_forget, call, registers, self._dying[n]) if n in self._dying else call
                        for n, call in zip((*self.flat, *self.tail_flat), attached, strict=True)]
        if self._host.debug.poison:
            attached = self._poisoned(attached, buffers, dict(copies))
        frame = Frame(registers, attached[: len(self.flat)], copies, lent, self.flat)
        if plan is self.plan and self.tail:
            frame.tail = Frame(registers, attached[len(self.flat) :], [], lent, self.tail_flat)
        for part in (frame, frame.tail):
            if part is not None and len(part.calls) > 1:  # after a single call no call is left to stop
                self._host.frames[id(part)] = part
        if not self._has_frames and plan is self.plan:
            self._has_frames = True
            for part in (frame, frame.tail):
                if part is not None:
                    look_once(part, partial(self._check_returned, registers, part.numbers))
        if owned:
            weakref.finalize(frame, self._host.device_memory.dropped.extend, owned)
        if any(bound.wraps for bound in self.calls):
            weakref.finalize(frame, self._host.device_memory.dropped.extend, lent)  # a failed run leaves some
        return frame

    def _poisoned(self, calls: list[FrameCall], buffers: Mapping[int, Any], copies: dict[int, Any]) -> list[FrameCall]:
        """Wrap the FrameCalls so that they poison the frame's host memory as soon as it is dead."""
        touched = [{self._root[r] for r in (*call.args, *call.results)}
                   for call in (self.calls[n].call for n in (*self.flat, *self.tail_flat))]
        blocks = {r: buffers[slot] for r, slot in self.plan.slot_of.items() if self.plan.slots[slot][0] == HOST}
        return poisoned(calls, touched, blocks | {i: copy.reshape(-1).view(np.uint8) for i, copy in copies.items()})

    def _check_returned(self, registers: list[Any], numbers: Sequence[int], index: int, returned: Any) -> None:
        """Raises PluginError when an attached call returned an array that is not one of its outputs."""
        bound = self.calls[numbers[index]]
        outputs = [registers[r] for r in bound.call.results]
        if bound.kernel is not None and all(out is not None for out in outputs):  # None: dead already
            check_returned(returned, outputs, bound.kernel)

    def _lent(self, results: Sequence[int], arguments: range) -> frozenset[int]:
        """Return the registers whose arrays are read later, outside the order of the flat list.

        The readers are the user, a device that works through its queue, a kernel that has returned, or a late call.
        Registers that may hold such an array in a device's form are among them.
        """
        read_later = [a for bound in self.calls if not bound.sees_host
                      for a in bound.call.args if self._memory[a] == HOST]
        read_later += [a for bound in self.calls if bound.lends for a in bound.call.args]
        unplanned = self.late.difference(self.tail)
        read_later += [r for n in unplanned for r in (*self.calls[n].call.args, *self.calls[n].call.results)]
        read_later += self._outside(self.tail).difference(arguments)  # a copied feed is in place before the run
        read_later += [r for bound in self.calls if bound.wraps for r in bound.call.results]
        return frozenset(self._root[r] for r in (*results, *read_later)) | self._retained()

    def _retained(self) -> frozenset[int]:
        """Return the registers whose arrays a kernel keeps, so that they belong neither to the frame nor to the
        user."""
        return frozenset(self._root[bound.call.args[i]] for bound in self.calls for i in bound.retained)

    def _find_uses(self, lent: frozenset[int]) -> list[Use]:
        uses = []
        for bound in self.calls:
            reads = tuple(self._root[a] for a in bound.call.args)
            writes: tuple[tuple[int, int], ...] = ()
            if bound.plannable:
                writes = tuple((r, self._metas[r].nbytes) for r in bound.call.results
                               if r not in lent and self._has_size(r))
            over = {} if bound.kernel is None else {**bound.kernel.inplace, **getattr(bound.bound, "inplace", {})}
            shared = tuple((bound.call.results[o], reads[i]) for o, i in over.items() if self._same_layout(bound, o, i))
            uses.append(Use(reads, writes, bound.memory, shared))
        return uses

    def _choose_copied_feeds(self, arguments: range, lent: frozenset[int]) -> frozenset[int]:
        users = [0] * len(self._metas)
        for bound in self.calls:
            for a in bound.call.args:
                users[self._root[a]] += 1
        return frozenset(i for i in arguments if i not in lent and users[i] >= FEED_USERS and self._has_size(i)
                         and self._metas[i].nbytes <= SMALL_FEED)

    def _find_fixed(self, given: set[int]) -> frozenset[int]:
        fixed = set(given)
        for bound in self.calls:
            if bound.is_view and all(bound.call.args[source] in fixed for source in bound.alias.values()):
                fixed.update(bound.call.results)
        return frozenset(fixed)

    def _find_dying(self, kept: set[int]) -> dict[int, list[int]]:
        """For each attached call return the open registers without later consumers, whose values die there."""
        last = {r: n for n, bound in enumerate(self.calls) for r in (*bound.call.needs, *bound.call.results)}
        unordered = self.late.difference(self.tail)
        kept |= self.fixed | {r for n in unordered for r in self.calls[n].call.needs}
        kept |= {r for bound in self.calls if bound.pends for r in bound.given}  # the end of the run waits for them
        dying: dict[int, list[int]] = {}
        for register, number in last.items():
            if register not in kept and number not in unordered:
                dying.setdefault(number, []).append(register)
        return dying

    def _find_copied(self, results: Sequence[int], not_fresh: set[int]) -> tuple[int, ...]:
        """Return the indices of results that are copied before the user gets them.

        A result is copied when its elements are not this run's own, or when an earlier result is the same array.
        """
        roots = [self._root[register] for register in results]
        first = {root: i for i, root in reversed([*enumerate(roots)])}
        return tuple(i for i, root in enumerate(roots) if (root in not_fresh or first[root] < i)
                     and results[i] not in self._opaque)

    def _has_size(self, register: int) -> bool:
        return self._metas[register].is_static and self._metas[register].dtype.itemsize > 0

    def _same_layout(self, bound: BoundCall, output: int, argument: int) -> bool:
        out, arg = self._metas[bound.call.results[output]], self._metas[bound.call.args[argument]]
        return out.is_static and out.shape == arg.shape and out.dtype.itemsize == arg.dtype.itemsize

    def _allocate(self, plan: MemoryPlan, owned: list[Owned]) -> dict[int, Any]:
        """Allocate a buffer for each slot; `owned` receives the buffers on devices.

        Host memory is released with the last array over it, maybe later than the frame: a kernel of an abandoned step
        may still use it.
        """
        users = {slot: self.producer[register] for register, slot in reversed(plan.slot_of.items())}  # its first user
        buffers = self._arena(plan, users)
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

    def _arena(self, plan: MemoryPlan, users: Mapping[int, BoundCall]) -> dict[int, Any]:
        """Allocate the slots in host memory in one block, with large pages if the system has them."""
        sizes = {slot: nbytes for slot, (memory, nbytes) in enumerate(plan.slots) if memory == HOST}
        if not sizes:
            return {}
        *starts, total = accumulate((-(-nbytes // ALIGNMENT) * ALIGNMENT for nbytes in sizes.values()), initial=0)
        try:
            arena = self._host.memory.allocate(total, LARGE_PAGE if total >= LARGE_PAGE else ALIGNMENT,
                                                "memory for the intermediate values of a run")
        except WeftError as error:
            raise self._at(users[max(sizes, key=sizes.__getitem__)], error)  # noqa: B904 - the same error
        return {slot: arena[start : start + sizes[slot]] for slot, start in zip(sizes, starts, strict=True)}

    def _allocate_slot(self, nbytes: int, user: BoundCall) -> Any:
        device = user.device
        assert device is not None
        try:
            what = f"of {self.plan.nbytes} bytes that a run of this program takes"
            return self._host.device_memory.allocate(device, nbytes, what)
        except WeftError as error:
            self._host.failed(device, error)
            raise self._at(user, error)  # noqa: B904 - the same error

    def _at(self, user: BoundCall, error: WeftError) -> WeftError:
        name = None if user.device is None else self._host.name_of(user.device)
        return error.at(node=user.call.node, op=user.call.op, device=name)

    def _maker(self, register: int, registers: list[Any]) -> Maker:
        """Return a maker of the register's arrays, or of its device buffers.

        Device buffers belong to the step in the last of `registers`.
        """
        meta = self._metas[register]
        if self._memory[register] != HOST:
            device = self.producer[register].device
            assert device is not None
            return device_maker(self._host.device_memory, device, meta.nbytes, lambda: registers[-1])
        return self._host.memory.maker(meta.dims, meta.dtype.numpy, "a result")

    def _attach(self, bound: BoundCall, registers: list[Any], lent: list[Owned]) -> FrameCall | None:
        """Return the FrameCall of a call over these registers, or None when nothing is left to run."""
        args, results = bound.call.args, bound.call.results
        if bound.is_view:
            return self._attach_view(bound, registers)
        if bound.lazy is not None:
            return partial(run_lazy, registers, args, bound.given, bound.lazy)
        if bound.device is None:
            run_it = run_returning if bound.pends else run_host
            return partial(run_it, registers, args, results, self._runner(bound, registers))
        if bound.call.code == EVENT:
            return partial(run_event, registers, results[0], self._host.waiter(bound.device).reach)
        if bound.awaited:
            leave = self._host.waiter(bound.device).leave
            return partial(run_leaving, registers, args[0], results[0], self._maker(results[0], registers), leave)
        if bound.wraps:
            memory = self._host.device_memory
            return partial(run_wrapping, registers, args[0], results[0], memory, bound.device, lent)
        if bound.call.code == COPY:
            copy = bound.device.copy_in if bound.memory != HOST else bound.device.copy_out
            return open_call(registers, args, results, self._fresh(bound, registers), partial(on_stream, copy))
        run = self._runner(bound, registers)
        if bound.returns:
            return partial(run_returning, registers, args, bound.given, run)
        if self.fixed.issuperset(args) and self.fixed.issuperset(results):
            inputs, outputs = tuple(registers[a] for a in args), tuple(registers[r] for r in results)
            attach = getattr(bound.bound, "attach", None)
            if attach is None:
                return partial(run, *inputs, *outputs)
            call = _attached(bound, attach, inputs, outputs)
            return partial(self._watched(lambda *_: call(), bound), *inputs, *outputs) if self._checks else call
        return open_call(registers, args, results, self._fresh(bound, registers), run)

    def _runner(self, bound: BoundCall, registers: list[Any]) -> Callable[..., Any]:
        """Return the call's run function.

        A kernel that returns its results becomes a function of the list of arguments.
        """
        assert bound.kernel is not None
        assert bound.bound is not None
        run = run_of(bound.bound)
        if self._checks and bound.device is not None and not bound.kernel.nonstrict:
            run = self._watched(run, bound, first=int(bound.kernel.step))
        if bound.kernel.step:
            run = partial(with_step, registers, run)
        if bound.device is None:
            return partial(with_values, run) if bound.kernel.nonstrict else lambda ins: run(*ins)
        if bound.kernel.returns:
            metas = [self._metas[r] for r in bound.call.results]
            return returning(run, metas, bound.call, bound.kernel, self._host.memory)
        return run

    def _watched(self, run: Callable[..., Any], bound: BoundCall, first: int = 0) -> Callable[..., Any]:
        """Return the run function of a call, checked against the array contract each time."""
        device, kernel = bound.device, bound.kernel
        assert device is not None
        assert kernel is not None
        sizes = [] if bound.returns else [self._metas[r].nbytes for r in bound.call.results]
        on_host = bound.memory == HOST
        poisons = [poison_array if on_host else buffer_poisoner(device, nbytes) for nbytes in sizes]
        return watched(run, poisons, kernel, first)

    def fresh(self, number: int) -> FreshCall:
        """Return call `number` as a function, built on first use, that writes no memory of the plan."""
        if number not in self._fresh_calls:
            self._fresh_calls[number] = self._make_fresh(self.calls[number])
        return self._fresh_calls[number]

    def _make_fresh(self, bound: BoundCall) -> FreshCall:
        metas = [self._metas[r] for r in bound.call.results]
        if bound.is_view:
            sources = [bound.alias[i] for i in range(len(metas))]
            if bound.memory != HOST:
                return lambda _, ins: [ins[s] for s in sources]
            return lambda _, ins: [view(ins[s], m) for s, m in zip(sources, metas, strict=True)]
        if bound.lazy is not None:
            return bound.lazy
        if bound.call.code == EVENT:
            assert bound.device is not None
            waiter = self._host.waiter(bound.device)
            return lambda _, __: [waiter.reach()]
        if bound.call.code == COPY or bound.memory != HOST:
            return self._make_fresh_on_device(bound)
        takes_step = bound.kernel is not None and bound.kernel.step
        run = None if takes_step else self._runner(bound, [])
        if bound.returns:
            return lambda step, ins: (run or self._runner(bound, [step]))(ins)
        makers = [self._maker(r, []) for r in bound.call.results]

        assert bound.kernel is not None
        kernel = bound.kernel

        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [make() for make in makers]
            check_returned((run or self._runner(bound, [step]))(*ins, *outs), outs, kernel)
            return outs

        def call_for_one(_: Step, ins: list[Any]) -> list[Any]:
            out = makers[0]()
            returned = run(*ins, out)  # type: ignore[misc]
            if returned is not out and returned is not None:  # calling check_returned costs a tenth of a small kernel
                check_returned(returned, (out,), kernel)
            return [out]

        return call_for_one if run is not None and len(makers) == 1 else call

    def _make_fresh_on_device(self, bound: BoundCall) -> FreshCall:
        device, results = bound.device, bound.call.results
        assert device is not None
        waiter = self._host.waiter(device)
        if bound.call.code == COPY and bound.memory == HOST:
            make = self._maker(results[0], [])
            return lambda _, ins: [waiter.leave(ins[0], make())]

        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [self._maker(r, [step])() for r in results]
            if bound.call.code == COPY:
                device.copy_in(ins[0], outs[0], STREAM)
                waiter.keep(ins[0])
            else:
                assert bound.kernel is not None
                check_returned(self._runner(bound, [step])(*ins, *outs), outs, bound.kernel)
            return outs

        return call

    def payload(self, register: int, value: Any) -> Any:
        """Convert the payload of an asynchronous kernel's result to the form that the register holds."""
        if register in self._opaque:
            return value
        producer = self.producer.get(register)
        return given(value, self._metas[register], "an argument" if producer is None else producer.call.op)

    def after(self, position: int, *, without: bool) -> list[int]:
        """Return the indices of the calls that have not run when the flat list stopped at this flat index.

        `without` leaves out the call at that index.
        """
        if not self.flat:
            return sorted(self.late)
        start = self.flat[position] + without
        return sorted(self.late.union(range(start, len(self.calls))))

    def _outside(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the registers that the calls with these indices need and do not fill."""
        calls = [self.calls[n].call for n in numbers]
        return frozenset(r for call in calls for r in call.needs).difference(r for call in calls for r in call.gives)

    def _fresh(self, bound: BoundCall, registers: list[Any]) -> tuple[Maker | None, ...]:
        return tuple(None if r in self.fixed else self._maker(r, registers) for r in bound.call.results)

    def _attach_view(self, bound: BoundCall, registers: list[Any]) -> FrameCall | None:
        pairs = [(r, bound.call.args[bound.alias[i]], self._metas[r]) for i, r in enumerate(bound.call.results)]
        if not self.fixed.issuperset(bound.call.results):
            return partial(run_view if bound.memory == HOST else run_alias, registers, pairs)
        for result, source, meta in pairs:
            registers[result] = view(registers[source], meta) if bound.memory == HOST else registers[source]
        return None


def _in_order_of_runs(calls: Sequence[BoundCall]) -> tuple[frozenset[int], range, tuple[BoundCall, ...]]:
    """Return the indices of the late calls, the range of the tail, and the calls in the order for these indices.

    A call is late when it depends, directly or not, on a declared asynchronous result. It is in the tail when it is
    late and depends on every call that may pend. Both sets contain their dependents, so the order is topological.
    """
    sources: dict[int, int] = {}  # register -> bit set of the calls that may pend before it is filled
    pending: set[int] = set()
    everything = (1 << sum(call.may_pend for call in calls)) - 1
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
    return frozenset(range(len(flat), len(ordered))), range(len(flat) + len(late), len(ordered)), ordered


def _roots(calls: Sequence[BoundCall], count: int) -> list[int]:
    """For each register return its root: the register whose buffer it shows, itself unless it is an alias."""
    root = list(range(count))
    for bound in calls:
        for output, argument in bound.alias.items():
            root[bound.call.results[output]] = root[bound.call.args[argument]]
    return root


def _attached(
    bound: BoundCall, attach: Callable[..., FrameCall], inputs: Sequence[Any], outputs: Sequence[Any]
) -> FrameCall:
    """Return the FrameCall from the kernel's `attach` for these arrays. Raises as `raise_of`."""
    assert bound.kernel is not None
    try:
        return attach(inputs, outputs)
    except Exception as error:  # noqa: BLE001 - raised again, typed
        raise_of("attach", error, bound.kernel.pack, bound.call.node, bound.call.op)
