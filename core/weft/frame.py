"""Frames: what one running step has to itself, and how a linked program's steps are attached to one.

A register is *fixed* when its payload is the same object in every run of a frame: a constant, a buffer of the memory
plan, a small feed's copy, a view of these. A call whose registers are all fixed is attached to them; the others are
*open* and read their registers when they run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .allocators.aligned import array_maker
from .async_value import AsyncValue, available
from .dead_memory import poisoned
from .device import Device
from .errors import Internal, ResourceExhausted, Unimplemented, WeftError
from .host_array import given, returned, typed, view
from .host_program import COPY, HOST, Call, Function
from .kernel import Bound, KernelDef, run_of
from .memory_plan import MemoryPlan, Use, plan_memory
from .numpy_errors import quiet_context
from .pieces import Pieces
from .step import Step
from .tensor import TensorMetadata

if TYPE_CHECKING:
    from .host_context import HostContext

SMALL_FEED = 4096  # bytes up to which a feed is copied into the frame, so that its users can be attached
FEED_USERS = 3  # from how many users on that pays: a copy costs about as much as two open calls cost more
BLOCK = 64  # calls between two looks at whether the step was cancelled
STREAM = 0  # a device has one stream so far

Attached = Callable[[], Any]
Maker = Callable[[], Any]
FreshCall = Callable[[Step, list[Any]], list[Any]]  # arguments to results that are new, or views of them
Owned = tuple[Callable[[Any], None], Any]  # a buffer, and what takes it back


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call of a linked program: bound, or `lazy` (bound when its shapes are seen), or a transfer (no kernel).

    `alias`: which results show the buffer of which argument. `memory`: the stream whose memory the results live in.
    `device` None: a host kernel, whose results may be anything.
    `retained`: the arguments that its kernel reads after it has returned.
    """

    call: Call
    device: Device | None
    memory: int
    kernel: KernelDef | None = None
    bound: Bound = None
    lazy: Callable[[list[Any]], list[Any]] | None = None
    alias: Mapping[int, int] = field(default_factory=dict)
    retained: frozenset[int] = frozenset()
    stateful: bool = False

    @property
    def is_view(self) -> bool:
        """True when there is nothing to run: every result is an argument under another type or shape."""
        return self.kernel is not None and self.lazy is None and self.bound is None

    @property
    def plannable(self) -> bool:
        """True when its results may be buffers of the frame."""
        return self.lazy is None and not self.is_view and not self.returns

    @property
    def returns(self) -> bool:
        """True when the run function returns its results instead of writing them."""
        return self.device is None or (self.kernel is not None and self.kernel.returns)

    @property
    def pends(self) -> bool:
        """True when it is declared to give results that come later."""
        return self.kernel is not None and (self.kernel.asynchronous or self.kernel.nonstrict)

    @property
    def may_pend(self) -> bool:
        """True when it may give results that come later, declared or not."""
        return self.pends or self.device is None

    @property
    def lends(self) -> bool:
        """True when its arguments may be read after it has returned."""
        return self.may_pend

    @property
    def sees_host(self) -> bool:
        """True when it works on host memory, and is done when it returns."""
        return self.device is None or bool(self.device.attributes.get("host_visible"))


class HandOver(Exception):
    """A call of the flat list gave what is no payload: the rest is the event-driven path's."""


class Frame:
    """Registers, the calls attached to them in blocks, and the arrays that feeds are copied into.

    The last register holds the Step that runs in the frame, one at a time. `cursor` is the block that is being run.
    `pieces`: the blocks of each piece, in frames that are run in pieces.
    """

    __slots__ = ("__weakref__", "blocks", "context", "copies", "cursor", "pieces", "registers")

    def __init__(self, registers: list[Any], calls: list[Attached], copies: list[tuple[int, Any]]) -> None:
        self.registers = registers
        self.blocks = [(i, calls[i : i + BLOCK]) for i in range(0, len(calls), BLOCK)]
        self.copies = copies
        self.pieces: list[list[tuple[int, list[Attached]]]] = []
        self.cursor: tuple[int, int, Iterator[Attached]] = (0, 0, iter(()))
        self.context = quiet_context()

    def position(self) -> int:
        """The number, among the attached calls, of the one that was called last."""
        start, size, calls = self.cursor
        left: int = calls.__length_hint__()  # type: ignore[attr-defined]
        return start + max(size - left - 1, 0)


class FrameLayout:
    """Everything about the frames of an executable that can be decided before there is one."""

    def __init__(
        self, function: Function, metas: Sequence[TensorMetadata], steps: Sequence[BoundCall],
        presets: Mapping[int, Any], host: HostContext,
    ) -> None:
        self._host = host
        self._metas = metas
        self.calls = tuple(steps)
        self._presets = presets
        self.results = function.results
        self._opaque = {r for r, kind in enumerate(function.register_types) if isinstance(kind, str)}
        self._root = _roots(steps, len(metas))
        self._memory = dict.fromkeys(range(len(metas)), HOST) | {r: s.memory for s in steps for r in s.call.results}
        self.producer = {r: call for call in steps for r in call.call.results}
        self.late = self._find_late()  # numbers of calls that wait for what asynchronous ones give
        self.is_asynchronous = any(call.lends or (call.kernel is not None and call.kernel.step) for call in steps)
        # Host kernels may hand over to the event-driven path, poison follows the order of the list.
        self.is_in_order = host.debug.poison or any(call.device is None for call in steps)
        self._fresh_calls: dict[int, FreshCall] = {}
        arguments = range(len(function.arg_names))
        lent = self._lent(function.results)
        self._uses = self._find_uses(lent)
        self.plan = plan_memory(self._uses)
        self.copied_feeds = self._choose_copied_feeds(arguments, lent)
        given = {*presets, *self.plan.slot_of, *self.copied_feeds}
        self.fixed = self._find_fixed(given)
        self.open = (*(r for r in range(len(metas)) if r not in self.fixed or r in arguments), len(metas))
        self.attached = tuple(n for n, s in enumerate(steps) if n not in self.late
                              and not (s.is_view and self.fixed.issuperset(s.call.results)))
        self._dying = self._find_dying({*function.results, *arguments})
        self.copied_results = self._find_copied(function.results, given.union(arguments, self._retained()))

    def plan_of(self, pieces: Pieces) -> MemoryPlan:
        """The memory plan for the flat list in pieces; it plans the same registers as `plan`."""
        return plan_memory([self._uses[n] for n in self.attached], pieces)

    def make_frame(self, plan: MemoryPlan | None = None) -> Frame:
        """A new frame, by `plan` or else for the flat list. Raises ResourceExhausted when a device has no memory for
        its buffers."""
        plan = plan or self.plan
        registers: list[Any] = [None] * (len(self._metas) + 1)
        for register, value in self._presets.items():
            registers[register] = value
        buffers = self._allocate(plan)
        arrays: dict[tuple[int, TensorMetadata], Any] = {}  # one object for each use of a slot: fewer cache lines
        for register, slot in plan.slot_of.items():
            key = slot, self._metas[register]
            if key not in arrays:
                buffer = buffers[slot][1]
                arrays[key] = typed(buffer, key[1]) if plan.slots[slot][0] == HOST else buffer
            registers[register] = arrays[key]
        copies = [(i, self._maker(i)()) for i in self.copied_feeds]
        for i, copy in copies:
            registers[i] = copy
        attached = [self._attach(self.calls[n], registers) for n in range(len(self.calls)) if n not in self.late]
        flat = [call for call in attached if call is not None]
        if plan is self.plan:  # pieces have another order
            flat = [partial(_then_forget, call, registers, self._dying[n]) if n in self._dying else call
                    for n, call in zip(self.attached, flat, strict=True)]
        if self._host.debug.poison:
            flat = self._poisoned(flat, [buffer for _, buffer in buffers], dict(copies))
        frame = Frame(registers, flat, copies)
        weakref.finalize(frame, free, buffers, self._host)
        return frame

    def _poisoned(self, flat: list[Attached], buffers: list[Any], copies: dict[int, Any]) -> list[Attached]:
        """The attached calls, which leave nothing to be read in host memory of the frame that is dead."""
        touched = [{self._root[r] for r in (*call.args, *call.results)}
                   for call in (self.calls[n].call for n in self.attached)]
        blocks = {r: buffers[slot] for r, slot in self.plan.slot_of.items() if self.plan.slots[slot][0] == HOST}
        return poisoned(flat, touched, blocks | {i: copy.reshape(-1).view(np.uint8) for i, copy in copies.items()})

    def _lent(self, results: Sequence[int]) -> frozenset[int]:
        """Registers whose arrays others read later: the user, a device that works through its queue, a kernel that
        has returned, a call that waits for one."""
        read_later = [a for step in self.calls if not step.sees_host
                      for a in step.call.args if self._memory[a] == HOST]
        read_later += [a for n, step in enumerate(self.calls) if step.lends or n in self.late for a in step.call.args]
        read_later += [r for n in self.late for r in self.calls[n].call.results]
        return frozenset(self._root[r] for r in (*results, *read_later)) | self._retained()

    def _retained(self) -> frozenset[int]:
        """Registers whose arrays a kernel keeps: they are neither the frame's nor the user's."""
        return frozenset(self._root[step.call.args[i]] for step in self.calls for i in step.retained)

    def _find_uses(self, lent: frozenset[int]) -> list[Use]:
        uses = []
        for step in self.calls:
            reads = tuple(self._root[a] for a in step.call.args)
            writes: tuple[tuple[int, int], ...] = ()
            if step.plannable:
                writes = tuple((r, self._metas[r].nbytes) for r in step.call.results
                               if r not in lent and self._has_size(r))
            over = step.kernel.inplace.items() if step.kernel is not None else ()
            shared = tuple((step.call.results[o], reads[i]) for o, i in over if self._same_layout(step, o, i))
            uses.append(Use(reads, writes, step.memory, shared))
        return uses

    def _choose_copied_feeds(self, arguments: range, lent: frozenset[int]) -> frozenset[int]:
        users = [0] * len(self._metas)
        for step in self.calls:
            for a in step.call.args:
                users[self._root[a]] += 1
        return frozenset(i for i in arguments if i not in lent and users[i] >= FEED_USERS and self._has_size(i)
                         and self._metas[i].nbytes <= SMALL_FEED)

    def _find_fixed(self, given: set[int]) -> frozenset[int]:
        fixed = set(given)
        for step in self.calls:
            if step.is_view and all(step.call.args[source] in fixed for source in step.alias.values()):
                fixed.update(step.call.results)
        return frozenset(fixed)

    def _find_dying(self, kept: set[int]) -> dict[int, list[int]]:
        """For calls of the flat list the open registers that no later call uses: what they hold dies there."""
        last = {r: n for n, step in enumerate(self.calls) for r in (*step.call.args, *step.call.results)}
        kept |= self.fixed | {r for n in self.late for r in self.calls[n].call.args}
        dying: dict[int, list[int]] = {}
        for register, number in last.items():
            if register not in kept and number not in self.late:
                dying.setdefault(number, []).append(register)
        return dying

    def _find_copied(self, results: Sequence[int], not_fresh: set[int]) -> tuple[int, ...]:
        """Which results are copied at the door: their elements are not this run's, or are returned already."""
        roots = [self._root[register] for register in results]
        return tuple(i for i, root in enumerate(roots) if (root in not_fresh or root in roots[:i])
                     and results[i] not in self._opaque)

    def _has_size(self, register: int) -> bool:
        return self._metas[register].is_static and self._metas[register].dtype.itemsize > 0

    def _same_layout(self, step: BoundCall, output: int, argument: int) -> bool:
        out, arg = self._metas[step.call.results[output]], self._metas[step.call.args[argument]]
        return out.is_static and out.shape == arg.shape and out.dtype.itemsize == arg.dtype.itemsize

    def _allocate(self, plan: MemoryPlan) -> list[Owned]:
        """A buffer for each slot. Host memory goes back when the last array over it is gone, which may be later than
        the frame: a kernel of an abandoned step may still use it."""
        buffers: list[Owned] = []
        try:
            for slot, (memory, nbytes) in enumerate(plan.slots):
                user = next(s for s in self.calls if any(plan.slot_of.get(r) == slot for r in s.call.results))
                buffers.append(self._allocate_slot(memory, nbytes, user))
        except BaseException:
            free(buffers)
            raise
        return buffers

    def _allocate_slot(self, memory: int, nbytes: int, user: BoundCall) -> Owned:
        try:
            if memory == HOST:
                return keep, self._host.allocator.allocate(nbytes)
            assert user.device is not None
            buffer = user.device.allocate(max(nbytes, 1))
            if buffer is None:
                raise ResourceExhausted(f"no memory for a buffer of {nbytes} bytes, of {self.plan.nbytes} bytes that a "
                                        "run of this program takes")
        except WeftError as error:
            device = None if user.device is None else user.device.type
            raise error.at(node=user.call.node, op=user.call.op, device=device)  # noqa: B904 - the same error
        return user.device.free, buffer

    def _maker(self, register: int) -> Maker:
        meta = self._metas[register]
        return array_maker(self._host.allocator, meta.dims, meta.dtype.numpy)

    def _attach(self, step: BoundCall, registers: list[Any]) -> Attached | None:
        """The step as a call without arguments over these registers; None where nothing is left to run."""
        args, results = step.call.args, step.call.results
        if step.is_view:
            return self._attach_view(step, registers)
        if step.lazy is not None:
            return partial(_run_lazy, registers, args, results, step.lazy)
        if step.device is None:
            run_host = _run_lazy if step.pends else _run_host
            return partial(run_host, registers, args, results, self._runner(step, registers))
        if step.call.code == COPY:
            copy = step.device.copy_in if step.memory != HOST else partial(_copy_out, step.device)
            return open_call(registers, args, results, self._fresh(step), partial(_on_stream, copy))
        run = self._runner(step, registers)
        if step.returns:
            return partial(_run_lazy, registers, args, results, run)
        if self.fixed.issuperset(args) and self.fixed.issuperset(results):
            inputs, outputs = tuple(registers[a] for a in args), tuple(registers[r] for r in results)
            attach = getattr(step.bound, "attach", None)
            return attach(inputs, outputs) if attach is not None else partial(run, *inputs, *outputs)
        return open_call(registers, args, results, self._fresh(step), run)

    def _runner(self, step: BoundCall, registers: list[Any]) -> Callable[..., Any]:
        """The call's run function; of one that returns its results, a function of the list of its arguments."""
        assert step.kernel is not None
        assert step.bound is not None
        run = run_of(step.bound)
        if step.kernel.step:
            run = partial(_with_step, registers, run)
        if step.device is None:
            return partial(_with_values, run) if step.kernel.nonstrict else lambda ins: run(*ins)
        if step.kernel.returns:
            return partial(_returning, run, [self._metas[r] for r in step.call.results], step.call.op, step.kernel)
        return run

    def fresh(self, number: int) -> FreshCall:
        """Call `number` as a function that writes no memory of the plan; made when it is first asked for."""
        if number not in self._fresh_calls:
            self._fresh_calls[number] = self._make_fresh(self.calls[number])
        return self._fresh_calls[number]

    def _make_fresh(self, bound: BoundCall) -> FreshCall:
        metas = [self._metas[r] for r in bound.call.results]
        if bound.is_view:
            sources = [bound.alias[i] for i in range(len(metas))]
            return lambda _, ins: [view(ins[s], m) for s, m in zip(sources, metas, strict=True)]
        if bound.lazy is not None:
            lazy = bound.lazy
            return lambda _, ins: lazy(ins)
        if bound.memory != HOST or bound.call.code == COPY:
            raise Unimplemented(f"{bound.call.code} beside asynchronous kernels of the host", node=bound.call.node)
        with_step = bound.kernel is not None and bound.kernel.step
        run = None if with_step else self._runner(bound, [])
        if bound.returns:
            return lambda step, ins: (run or self._runner(bound, [step]))(ins)
        makers = [self._maker(r) for r in bound.call.results]
        make = makers[0]

        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [make() for make in makers]
            (run or self._runner(bound, [step]))(*ins, *outs)
            return outs

        def call_for_one(_: Step, ins: list[Any]) -> list[Any]:
            out = make()
            run(*ins, out)  # type: ignore[misc]
            return [out]

        return call_for_one if run is not None and len(makers) == 1 else call

    def payload(self, register: int, value: Any) -> Any:
        """What an asynchronous kernel completed a value with, as the register holds it."""
        if register in self._opaque:
            return value
        producer = self.producer.get(register)
        return given(value, self._metas[register], "an argument" if producer is None else producer.call.op)

    def after(self, position: int, *, without: bool) -> list[int]:
        """The numbers of the calls that have not run when the flat list has come to this position, with or without
        the one that stands there."""
        if not self.attached:
            return sorted(self.late)
        start = self.attached[position] + without
        return sorted(self.late.union(range(start, len(self.calls))))

    def _find_late(self) -> frozenset[int]:
        """The calls that need, at whatever distance, a result of an asynchronous one."""
        pending: set[int] = set()
        late = set()
        for number, step in enumerate(self.calls):
            if not pending.isdisjoint(step.call.args):
                late.add(number)
            if number in late or step.pends:
                pending.update(step.call.results)
        return frozenset(late)

    def _fresh(self, step: BoundCall) -> tuple[Maker | None, ...]:
        return tuple(None if r in self.fixed else self._maker(r) for r in step.call.results)

    def _attach_view(self, step: BoundCall, registers: list[Any]) -> Attached | None:
        pairs = [(r, step.call.args[step.alias[i]], self._metas[r]) for i, r in enumerate(step.call.results)]
        if not self.fixed.issuperset(step.call.results):
            return partial(_run_view, registers, pairs)
        for result, source, meta in pairs:
            registers[result] = view(registers[source], meta) if step.memory == HOST else registers[source]
        return None


def _then_forget(call: Attached, registers: list[Any], dead: Sequence[int]) -> None:
    call()
    for register in dead:
        registers[register] = None


def open_call(
    registers: list[Any], args: tuple[int, ...], results: tuple[int, ...], fresh: tuple[Maker | None, ...],
    run: Callable[..., Any],
) -> Attached:
    """A call that reads its registers when it runs; `fresh` makes the outputs that are no buffers of the frame."""
    if len(results) == 1 and fresh[0] is not None and len(args) in (1, 2):
        make, result, first, last = fresh[0], results[0], args[0], args[-1]

        def unary() -> None:
            out = registers[result] = make()
            run(registers[first], out)

        def binary() -> None:
            out = registers[result] = make()
            run(registers[first], registers[last], out)

        return unary if len(args) == 1 else binary

    def call() -> None:
        for register, create in zip(results, fresh, strict=True):
            if create is not None:
                registers[register] = create()
        run(*[registers[a] for a in args], *[registers[r] for r in results])

    return call


def _roots(steps: Sequence[BoundCall], count: int) -> list[int]:
    """For every register the one whose buffer it shows: itself, or what it is an alias of."""
    root = list(range(count))
    for step in steps:
        for output, argument in step.alias.items():
            root[step.call.results[output]] = root[step.call.args[argument]]
    return root


def _run_lazy(
    registers: list[Any], args: Sequence[int], results: Sequence[int], run: Callable[[list[Any]], list[Any]]
) -> None:
    for register, value in zip(results, run([registers[a] for a in args]), strict=True):
        registers[register] = value


def _run_host(
    registers: list[Any], args: Sequence[int], results: Sequence[int], run: Callable[[list[Any]], list[Any]]
) -> None:
    """A host kernel that may give AsyncValues, and mostly does not. Raises HandOver when it does."""
    is_payload = True
    for register, value in zip(results, run([registers[a] for a in args]), strict=True):
        registers[register] = value
        is_payload = is_payload and not isinstance(value, AsyncValue)
    if not is_payload:
        raise HandOver


def _with_step(registers: list[Any], run: Callable[..., Any], *arrays: Any) -> Any:
    return run(registers[-1], *arrays)


def _returning(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], op: str, kernel: KernelDef, inputs: list[Any]
) -> list[Any]:
    """Results of a kernel that returns them: payloads where they are there, else AsyncValues. Raises Internal for
    AsyncValues of a kernel that does not say that it gives them."""
    if kernel.nonstrict:
        inputs = [x if isinstance(x, AsyncValue) else available(x) for x in inputs]
    values = returned(run(*inputs), metas, op)
    if not (kernel.asynchronous or kernel.nonstrict) and any(isinstance(v, AsyncValue) for v in values):
        raise Internal(f"the kernel of {op} gave an AsyncValue and is not declared asynchronous", op=op)
    return values


def _with_values(run: Callable[..., list[Any]], inputs: list[Any]) -> list[Any]:
    """A non-strict host kernel's results."""
    return run(*[x if isinstance(x, AsyncValue) else available(x) for x in inputs])


def _run_view(registers: list[Any], pairs: Sequence[tuple[int, int, TensorMetadata]]) -> None:
    for result, source, meta in pairs:
        registers[result] = view(registers[source], meta)


def _on_stream(copy: Callable[..., None], source: Any, result: Any) -> None:
    copy(source, result, STREAM)


def _copy_out(device: Device, source: Any, result: Any, stream: int) -> None:
    device.copy_out(source, result, stream)
    device.synchronize(device.record(stream))


def keep(_buffer: object) -> None:
    """Host memory is given back by the last array over it."""


def free(buffers: Sequence[Owned], _owner: object = None) -> None:
    """Give buffers back. Who owns their memory is named so that it lives until then."""
    for take_back, buffer in buffers:
        take_back(buffer)
