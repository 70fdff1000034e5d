"""Dispatch: runs a call on its device, or queues it until its inputs have come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from heald.api import AsyncValue, OpAttrs, OpDef, TensorMetadata, ValueInfo
from heald.errors import Cancelled, HealdError, Location, Unimplemented
from heald.runtime.support import kernel_errors
from heald.runtime.values import COO, layout_of

from .asynchrony import are_large
from .bound_op import BoundOp
from .bound_op_cache import BoundOpCache
from .context import EagerContext
from .handle_state import DeviceValue, DeviceWork, Failed, Pending, Ready, State
from .layouts import dense, elements
from .queued_call import QueuedCall, Started, Task
from .references import has_only_array, is_temporary
from .source_line import report_error
from .transfers import Transfers


@dataclass(slots=True)
class EagerCall:
    """One call of an op, matched with its signature.

    `inputs`: states, of which none is Failed.
    `device`: the short name of the device, which may have no kernel if `is_soft`.
    `borrowed`: indices of the inputs whose arrays the caller may write after the call.
    `chain`: values that are complete before the call starts, and whose errors are its own.
    `after`: values that are complete before the call starts; their errors do not matter.
    """

    op: OpDef
    attrs: OpAttrs
    inputs: list[State]
    device: str
    is_soft: bool
    donate: frozenset[int]
    location: Callable[[], Location | None]
    borrowed: frozenset[int] = frozenset()
    chain: tuple[AsyncValue, ...] = ()
    after: tuple[AsyncValue, ...] = ()
    started: AsyncValue | None = None  # of a call that was queued: completed when it has started
    ended: AsyncValue | None = None  # of work that goes on: completed when it is over
    is_followed: bool = True  # False for a call whose start and end nothing asks for
    is_in_task: bool = False  # True while a task runs the call: it is not deferred again

    def locate(self, error: HealdError) -> HealdError:
        """The error with the place of this call."""
        return error.at(op=self.op.name, location=self.location())

    def copy_borrowed(self) -> None:
        """Copy the arrays that the caller may write, before the call outlives the caller's frame."""
        for i in self.borrowed:
            state = self.inputs[i]
            if isinstance(state, Ready):
                self.inputs[i] = Ready(state.kind, state.value.copy())
        self.borrowed = frozenset()


class Dispatch:
    """Runs calls for one context. Any thread may call."""

    def __init__(self, context: EagerContext, bound_ops: BoundOpCache, transfers: Transfers) -> None:
        self._context = context
        self._bound_ops = bound_ops
        self._transfers = transfers

    def start(self, call: EagerCall) -> list[State]:
        """Run the call, or queue it while an input is pending. Returns the states of its results.

        Raises InvalidArgument when the metadata of the inputs does not fit the op, Unimplemented without a kernel, and
        as DeviceSet.open. An error of the kernel becomes the state of all results.
        """
        if call.chain or call.after or any(isinstance(state, Pending) for state in call.inputs):
            return self._queue(call)
        if not self._fetch_elements(call):
            return self._queue(call)
        infos = self.infos(call)
        bound = self._bound_ops.find(call.op, call.attrs, call.device, call.inputs, infos)
        if bound is None:
            if not call.is_in_task and (metas := self._metas_before_binding(call, infos)) is not None:
                return self._queue(call, metas, self._context.asynchrony.lane.add_after_caller)
            bound = self._bind(call, infos)
        if not self._move_inputs(call, bound):
            return self._queue(call)
        if bound.native is not None:
            return self.run_on_device(call, bound)
        if bound.is_deferrable and not call.is_in_task and self._is_deferred(call, bound):
            return self.defer(call, bound)
        return self._run_on_host(call, bound)

    def defer(self, call: EagerCall, bound: BoundOp) -> list[State]:
        """Let the lane of long kernels run the call. Returns the states of its results."""
        return self._queue(call, bound.metas, self._context.asynchrony.lane.add)

    def _metas_before_binding(self, call: EagerCall, infos: Sequence[ValueInfo]) -> list[TensorMetadata] | None:
        """The metadata of the results of a large call whose op the lane may bind, too; None for any other.

        Binding loads kernels and prepares them, which takes longer than all else of a first call.
        """
        context, states = self._context, call.inputs
        if any(state.kind.native is not None for state in states):  # type: ignore[union-attr]
            return None
        layouts = [state.kind.layout for state in states]  # type: ignore[union-attr]
        if COO in layouts or not context.asynchrony.may_defer_unbound():
            return None
        metas = [o.meta for o in context.ops.infer(call.op, call.attrs, infos)]
        if not are_large([*[info.meta for info in infos], *metas]):
            return None
        if not context.ops.binds_later(call.op, call.attrs, call.device, layouts):
            return None
        return metas if context.asynchrony.may_wait() else None

    def _is_deferred(self, call: EagerCall, bound: BoundOp) -> bool:
        inputs = [state.kind.meta for state in call.inputs]  # type: ignore[union-attr]
        borrowed_bytes = sum([inputs[i].nbytes for i in call.borrowed])
        return self._context.asynchrony.defers(bound, inputs, borrowed_bytes)

    def _queue(
        self, call: EagerCall, metas: Sequence[TensorMetadata] | None = None,
        add_task: Callable[[Task], object] | None = None,
    ) -> list[State]:
        """Start the call when its inputs have come. Raises InvalidArgument for metadata that does not fit already.

        `metas`: those of the results, where they are known. `add_task`: takes the task; by default as asynchrony says.
        """
        context = self._context
        call.copy_borrowed()
        if metas is None:
            metas = [o.meta for o in context.ops.infer(call.op, call.attrs, self.infos(call))]
        needs = [*call.chain, *[state.read() for state in call.inputs if isinstance(state, Pending)]]
        inputs = list(call.inputs)

        def start() -> Started:
            call.inputs = [state.value.get() if isinstance(state, Pending) else state for state in inputs]
            call.donate = frozenset([i for i in range(len(inputs)) if is_temporary(inputs, i)
                                     or (i in call.donate and _is_only_reader(inputs[i]))])
            inputs.clear()
            call.chain = call.after = ()
            call.started = call.ended = None
            call.is_in_task = True
            try:
                states = self.start(call)
                if end is not None:
                    end.settle_after(call.ended)
                return states, call.started
            except HealdError as error:  # metadata that was pending when the call was made
                report_error(context.host, call.location, call.locate(error))
                raise
            finally:
                call.inputs = []  # a donated array has no other owner when calls on the results run

        end = context.promises.make() if call.is_followed else None
        all_metas = [*metas, *map(_meta_of, inputs)]
        has_effects = call.op.stateful
        asynchrony = context.asynchrony
        queued = QueuedCall(context, needs, metas, call.device, start, call.locate, call.after,
                            add_task or asynchrony.adder_of(all_metas, has_effects=has_effects),
                            lambda: asynchrony.runs_here(all_metas, has_effects=has_effects),
                            is_followed=call.is_followed)
        started = queued.started
        if started is not None and end is not None:
            started.and_then(lambda: None if started.error is None else end.settle(Failed(started.error)))
            call.started, call.ended = started, end.value
        return list(queued.results)

    def infos(self, call: EagerCall) -> list[ValueInfo]:
        """The facts about the inputs that are known now."""
        rule = self._context.ops.rule(call.op)
        names = [t.arg for t in call.op.expand_inputs(call.attrs)] if rule is not None and rule.values else ()
        infos = []
        for i, state in enumerate(call.inputs):
            if not isinstance(state, Ready):
                assert isinstance(state, Pending)
                infos.append(ValueInfo(state.meta))
                continue
            reads = rule is not None and rule.values and names[i] in rule.values and state.kind.native is None
            infos.append(ValueInfo(state.kind.meta, elements(state) if reads else None, handle=state.kind.handle))
        return infos

    def _fetch_elements(self, call: EagerCall) -> bool:
        """Begin to copy the inputs whose elements the metadata function reads. False when one is not there yet."""
        rule = self._context.ops.rule(call.op)
        if rule is None or not rule.values:
            return True
        is_complete = True
        for i, tensor in enumerate(call.op.expand_inputs(call.attrs)):
            state = call.inputs[i]
            if tensor.arg in rule.values and isinstance(state, Ready) and state.kind.native is not None:
                call.inputs[i] = self._transfers.to_host(state)
                is_complete = False
        return is_complete

    def _bind(self, call: EagerCall, infos: Sequence[ValueInfo]) -> BoundOp:
        """The op bound for these inputs on the call's device, or on the host's where a soft call finds no kernel."""
        try:
            return self._bound_ops.get(call.op, call.attrs, call.device, call.inputs, infos)
        except Unimplemented:
            default = self._context.default_device
            if not call.is_soft or call.device == default:
                raise
            call.device = default
            return self._bound_ops.get(call.op, call.attrs, default, call.inputs, infos)

    def _move_inputs(self, call: EagerCall, bound: BoundOp) -> bool:
        """Bring each input into the memory in which the kernel reads it. False when one is not there yet."""
        is_complete = True
        for i, state in enumerate(call.inputs):
            assert isinstance(state, Ready)
            if state.kind.layout != bound.layouts[i]:
                state = call.inputs[i] = dense(self._context, state)
            target = None if i in bound.on_host else bound.native
            if state.kind.native is target:
                continue
            if state.kind.native is not None:
                call.inputs[i] = self._transfers.to_host(state)
                is_complete = False
            else:
                if i in call.borrowed:
                    state = Ready(state.kind, state.value.copy())
                assert target is not None
                call.inputs[i] = self._transfers.to_device(state, target, bound.device_name)
        call.borrowed = call.borrowed & bound.on_host
        return is_complete

    def _run_on_host(self, call: EagerCall, bound: BoundOp) -> list[State]:
        context, kernel = self._context, bound.kernel
        if bound.is_view or kernel.asynchronous or kernel.nonstrict or bound.retained or bound.returns:
            call.copy_borrowed()
        arrays = [state.value for state in call.inputs]  # type: ignore[union-attr]
        kinds = bound.kinds
        if bound.is_view:
            return [Ready(kind, array) for kind, array in zip(kinds, bound.views(arrays), strict=True)]
        assert bound.run is not None
        first = (context.step,) if kernel.step else ()
        began = perf_counter()
        try:
            if bound.returns:
                values = context.run_kernel(bound.run, *first, *arrays)
                bound.note_seconds(perf_counter() - began)
                return self._states_of(call, bound, values)
            outs = [self._donated_array(call, bound, i) if call.donate else None for i in range(len(kinds))]
            outs = [make() if out is None else out for out, make in zip(outs, bound.makers, strict=True)]
            returned = context.run_kernel(bound.run, *first, *arrays, *outs)
            if returned is not None and (not outs or returned is not outs[0]):
                bound.check(returned, outs)
        except BaseException as error:  # noqa: BLE001 - the state of the results; an interrupt is raised on
            return self._failed_states(call, bound, error)
        bound.note_seconds(perf_counter() - began)
        return [Ready(kind, out) for kind, out in zip(kinds, outs, strict=True)]

    def _donated_array(self, call: EagerCall, bound: BoundOp, output: int) -> Any:
        """The array of the donated or temporary input that this output may be written over; None when there is none, or
        when an array that the user has read still shows its memory."""
        source = bound.inplace.get(output)
        if source is None or source not in call.donate or source in bound.retained:
            return None
        state, meta = call.inputs[source], bound.metas[output]
        assert isinstance(state, Ready)
        if state.kind.meta != meta or not has_only_array(call.inputs, source):
            return None
        array = state.value
        return array if array.flags.writeable and array.base is None else None

    def _states_of(self, call: EagerCall, bound: BoundOp, values: Sequence[Any]) -> list[State]:
        """The states of values that a kernel returned: arrays, or AsyncValues of arrays."""
        states: list[State] = []
        for value, output in zip(values, bound.outputs, strict=False):
            if isinstance(value, AsyncValue):
                states.append(self._pending_result(call, value, output, bound))
            else:
                states.append(self._ready_result(value, output, bound.device_name))
        if not bound.outputs and values and isinstance(values[0], AsyncValue):
            call.ended = values[0]
        return states

    def _ready_result(self, array: Any, output: ValueInfo, device: str) -> Ready:
        meta = output.meta if output.meta.is_static else TensorMetadata(output.dtype, array.shape)
        return Ready(self._context.kinds.get(meta, device, None, output.handle, layout_of(array)), array)

    def _pending_result(self, call: EagerCall, value: AsyncValue, output: ValueInfo, bound: BoundOp) -> Pending:
        """The state of a value that an asynchronous kernel returns later."""
        promise = self._context.promises.make()

        def settle() -> None:
            error = value.error
            if error is None and not value.is_dead():
                promise.settle(self._ready_result(value.get(), output, bound.device_name))
                return
            error = call.locate(error or Cancelled("the value is dead"))
            report_error(self._context.host, call.location, error)
            promise.settle(Failed(error))

        value.and_then(settle)
        call.ended = promise.value
        return self._context.pending_state(output.meta, bound.device_name, promise.value)

    def _failed_states(self, call: EagerCall, bound: BoundOp, error: BaseException) -> list[State]:
        """The states of a call whose kernel raised. An interrupt of the main thread is raised on."""
        if kernel_errors.is_interrupt(error):
            raise error
        typed = kernel_errors.kernel_fault(error, f"the kernel of {bound.kernel.pack}", bound.kernel)
        typed = call.locate(typed.at(device=bound.device_name))
        self._context.host.note_failure(bound.device, typed)
        report_error(self._context.host, call.location, typed)
        return self.error_states(call, typed, len(bound.outputs))

    def error_states(self, call: EagerCall, error: HealdError, count: int) -> list[State]:
        """`count` Failed states. The error of a call without results is its end."""
        ended = AsyncValue()
        ended.set_error(error)
        call.ended = ended
        return [Failed(error)] * count

    def run_on_device(self, call: EagerCall, bound: BoundOp) -> list[State]:
        """Enqueue the kernel. An error of the device comes with the event behind it."""
        context, device = self._context, bound.device
        memory = context.host.device_memory
        values = [state.value for state in call.inputs]  # type: ignore[union-attr]
        works = tuple(v.work for v in values if isinstance(v, DeviceValue)
                      and (v.work.error is not None or not v.work.is_done))
        work = DeviceWork(call.op.name, works, call.location)
        kinds = bound.kinds
        if bound.is_view:
            return [Ready(kind, values[source]) for kind, source in zip(kinds, bound.alias, strict=True)]
        assert bound.run is not None
        first = (context.step,) if bound.kernel.step else ()
        inputs = [v.buffer if isinstance(v, DeviceValue) else v for v in values]
        try:
            context.host.check((device,))
            outs = []
            for meta in bound.metas:
                buffer = memory.allocate(device, meta.nbytes, f"a result of {call.op.name}")
                outs.append(DeviceValue(buffer, work, device.free, memory.dropped))
            with self._transfers.enqueuing:
                returned = context.run_kernel(bound.run, *first, *inputs, *[out.buffer for out in outs])
                self._transfers.watch(work, device, bound.device_name, (values, outs))
            bound.check(returned, [out.buffer for out in outs])
        except BaseException as error:  # noqa: BLE001 - the state of the results; an interrupt is raised on
            return self._failed_states(call, bound, error)
        return [Ready(kind, out) for kind, out in zip(kinds, outs, strict=True)]


def _meta_of(state: State) -> TensorMetadata:
    assert not isinstance(state, Failed)
    return state.kind.meta if isinstance(state, Ready) else state.meta


def _is_only_reader(state: State) -> bool:
    """True when no other call reads this input of a donating call later, from the same pending value."""
    return not isinstance(state, Pending) or len(state.readers) == 1
