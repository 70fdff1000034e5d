"""CoreRuntime: executes ops one at a time on one host, as handles that are returned at once."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from heald.api import (
    AsyncValue,
    DType,
    OpAttrs,
    OpDef,
    OpInvocation,
    Step,
    TensorMetadata,
    ValueInfo,
    dtypes,
    failed,
    inherited,
    install_hint,
)
from heald.errors import Cancelled, FailedPrecondition, HealdError, InvalidArgument, Unimplemented, typed_error
from heald.runtime.contract import CONST, CONTROL_TRIGGER, NO_KERNEL, NO_OP, DeviceName, convert_attribute
from heald.runtime.host import Host, KernelContext, Resources
from heald.runtime.service import convert_feed
from heald.runtime.values import DENSE, layout_of

from .bound_op import Binding, BoundOp
from .call_end import CallEnd, chained, checked_results, first_error
from .call_memo import CallMemo, DeviceCall, key_of, remember
from .dispatch import Dispatch, EagerCall
from .execute import FastTable, execute_over
from .handle_state import Failed, Kinds, Pending, Ready, State
from .op_chains import OpChains, resources_of
from .op_handlers import LinkedHandler, OpHandlers, handler_guard
from .promise import Promises
from .signature import Matched, MatchMemo, entered, natural_dtype
from .source_line import calling_line
from .tensor_handle import TensorHandle, handle_of, raisable
from .transfers import Transfers

NONE: frozenset[int] = frozenset()


class CoreRuntime:
    """Executes ops on the devices of a host. Several threads may share one.

    `handler`: the name of the op handler of calls that choose none, as `[eager] handler`; "" for the devices' own.

    `execute` is `heald.execute` over this host.
    """

    def __init__(self, host: Host, handler: str | Sequence[str] = "", fast: FastTable | None = None) -> None:
        self.host = host
        self.kinds = Kinds(self)
        self.promises = Promises()
        self.transfers = Transfers(self)
        self.resources = Resources()
        self.binding = Binding(host, self.resources)
        self.dispatch = Dispatch(self)
        self.chains = OpChains()
        self.handlers = OpHandlers(self, handler)
        self.step = Step(host, resources=self.resources)
        self.cancelled: HealdError | None = None
        self.fast: FastTable = {} if fast is None else fast
        self.memo = CallMemo()
        self.execute = execute_over(self.fast, self.call)
        self.functions: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # each has a fast table
        self._bound: dict[Any, BoundOp] = {}
        self._matches = MatchMemo()
        self._nodes: dict[tuple[str, OpAttrs], str] = {}
        self._numbers = count()
        self._contexts: deque[KernelContext] = deque()  # idle ones
        self._lock = threading.Lock()
        self._default_device: dict[None, str] = {}  # at most one: `setdefault` is atomic
        inherited.add(self)
        host.lasting[id(self)] = self
        if host.cancellation.is_cancelled:
            self.cancel(Cancelled("the host was cancelled"))

    @property
    def default_device(self) -> str:
        """The device of calls that name none and whose inputs are in host memory. Raises FailedPrecondition without a
        device that works on host memory."""
        for known in self._default_device.values():
            return known
        name = self.host.host_device()
        if name is None:
            raise FailedPrecondition("no device works on host memory", hint=install_hint("heald-cpu"))
        return self._default_device.setdefault(None, name)

    def call(
        self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None = None, device: str | None = None,
        handler: Any = None, chain: Any = None, donate: Sequence[int] = (),
    ) -> Any:
        """Execute an op as `heald.execute` does. Returns a handle, or a tuple of them."""
        if (handler is None and chain is None and not donate and isinstance(op, str)
                and (device is None or isinstance(device, str))):
            remembered = self.remembered(op, inputs, attrs, device)
            if remembered is not None:
                return remembered
        location = calling_line(2)
        try:
            definition = self.host.registries.ops.get(_text(op, "op"))
            matched = self._matches.match(definition, inputs, attrs)
            results = self._called(definition, matched, device, handler, chain, donate, location, inputs, attrs)
        except HealdError as error:
            raise error.at(op=op if isinstance(op, str) else None, location=location())  # noqa: B904 - the same error
        except Exception as error:
            raise typed_error(error).at(op=op, location=location()) from error
        return results[0] if len(results) == 1 and chain is None else tuple(results)

    def called(
        self, op: OpDef, matched: Matched, handler: LinkedHandler, chain: AsyncValue | None,
        location: Callable[[], Any],
    ) -> list[Any]:
        """Execute an op through this handler, for a caller that knows the location. Returns the handles, with `chain`
        behind the chain of the call. Errors have no place yet."""
        states = [self.state_of(x, dtype) for x, dtype in zip(matched.inputs, matched.types, strict=True)]
        return self._in_chain(op, matched, states, None, handler, chain, NONE, location)

    def handle(self, value: Any, dtype: Any = None) -> TensorHandle:
        """Return a handle of a copy of this value in host memory. Raises InvalidArgument for an object that is no
        tensor, and for one that the dtype cannot hold."""
        try:
            return handle_of(self.ready(*self.array(value, dtype, "value")))
        except HealdError as error:
            raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place

    def array(self, value: Any, dtype: Any, name: str) -> tuple[Any, DType]:
        """An array of its own for a user's argument, and its type. Raises as `handle`."""
        if isinstance(value, TensorHandle):
            value = value.numpy()
        value = entered(value, f"the {name}")
        wanted = _dtype(dtype, value)
        if wanted in (dtypes.resource, dtypes.variant):
            raise InvalidArgument(f"the {name} is no {wanted.name}: ops make tensors of this type",
                                  hint="VarHandleOp, for example, returns a resource")
        array = convert_feed(value, TensorMetadata(wanted, None), name, self.host.memory, "argument")
        if np.may_share_memory(array, value) if isinstance(value, np.ndarray) else array is value:
            array = array.copy()
        return array, wanted

    def ready(self, tensor: Any, dtype: DType | None = None) -> Ready:
        """The state of an array, a ScalarTensor or a CooTensor in host memory. `dtype`: the type of an object array."""
        if isinstance(tensor, np.ndarray | np.generic):
            meta, layout = TensorMetadata(dtype or dtypes.of_numpy(tensor.dtype), tensor.shape), DENSE
        else:
            meta, layout = TensorMetadata(tensor.dtype, tensor.shape), layout_of(tensor)
        return Ready(self.kinds.get(meta, self.default_device, layout=layout), tensor)

    def wait(self, state: Pending) -> None:
        """Block until a pending value has come. An interrupt ends the waiting alone."""
        if state.demand is not None:
            state.demand()
        self.host.await_values([state.value])

    def array_of(self, state: Ready) -> Any:
        """The array of a device's value: a copy. Waits; raises the error."""
        pending = self.transfers.to_host(state)
        self.wait(pending)
        if pending.value.error is not None:
            raise raisable(pending.value.error)
        return pending.value.get().value

    def copy_to(self, handle: TensorHandle, device: str) -> TensorHandle:
        """`TensorHandle.to`."""
        state = handle._current()
        try:
            moved = self.transfers.move(state, _text(device, "device"))
        except HealdError as error:
            raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place
        if moved is state:
            return handle
        return handle_of(moved if self.cancelled is None else Failed(self.cancelled))

    def in_context(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel in a KernelContext that no other thread is in."""
        try:
            context = self._contexts.pop()
        except IndexError:
            context = KernelContext()
        try:
            return context.run(function, *arguments)
        finally:
            self._contexts.append(context)

    def bound(
        self, op: OpDef, attrs: OpAttrs, device: str, inputs: Sequence[State], infos: Sequence[ValueInfo]
    ) -> BoundOp:
        """The op bound for these inputs, from the cache or anew. Raises as `Binding.bind`."""
        kinds = tuple([state.kind for state in inputs])  # type: ignore[union-attr]
        elements = tuple([_elements(info.distinct()) for info in infos if info.value is not None])
        key = op.name, attrs, device, kinds, elements
        found = self._bound.get(key)
        if found is None:
            layouts = [kind.layout for kind in kinds]
            found = self.binding.bind(op, attrs, infos, device, self._node(op, attrs), layouts)
            found.kinds = [self.kinds.get(o.meta, device, found.native, o.handle) for o in found.outputs]
            self._bound[key] = found
            self.host.memory.bound_calls.keep(self, key, found.nbytes)
        return found

    def forget(self, key: Any) -> None:
        """Drop a bound op, and all fast entries: they are made again by their next calls."""
        found = self._bound.pop(key, None)
        if found is not None:
            self.clear()

    def clear(self) -> None:
        """Drop all short ways of calls: the next call of each kind takes the long way."""
        self.fast.clear()
        self.memo.clear()
        for ref in self.functions.valuerefs():  # a list that is made in one go
            if (function := ref()) is not None:
                function.clear()

    def cancel(self, error: HealdError) -> None:
        """Turn all pending handles, and the results of all later calls, into errors, until `restart`."""
        self.cancelled = error
        self.clear()
        self.step.cancel(error)
        self.transfers.cancel(error)
        self.promises.fail(error)

    def restart(self) -> None:
        self.step.restart()
        self.cancelled = None

    def forked(self) -> None:
        self._lock = threading.Lock()
        self._contexts.clear()

    def _node(self, op: OpDef, attrs: OpAttrs) -> str:
        """The name under which a kernel keeps state for all calls of this op with these attributes."""
        if not op.stateful:
            return op.name
        with self._lock:
            return self._nodes.setdefault((op.name, attrs), f"{op.name}_{next(self._numbers)}")

    def run(
        self, op: OpDef, attrs: OpAttrs, states: list[State], device: str | None, donate: frozenset[int],
        location: Callable[[], Any], after: tuple[AsyncValue, ...] = (),
        ended: Callable[[AsyncValue | None], None] | None = None, borrowed: frozenset[int] = frozenset(),
    ) -> list[State]:
        """Execute an op on a device: the one that is requested, that of the inputs, or the default device."""
        error = self.cancelled or first_error(states) or next((v.error for v in after if v.error is not None), None)
        if error is not None:
            outputs = sum(arg.count(attrs) for arg in op.outputs)
            if ended is not None:
                ended(failed(error))
            elif not outputs:
                raise raisable(error)
            return [Failed(error)] * outputs
        if op.name in NO_KERNEL:
            return self._of_compiler(op, attrs)
        name = self._device_of(states) if device is None else DeviceName.of_this_process(device).short
        chain = tuple([value for value in after if not value.is_available()])
        call = EagerCall(op, attrs, states, name, device is None, donate, location, borrowed, chain)
        if op.stateful:
            keys = resources_of(states)
            call.after = self.chains.before(keys)
            results = self.dispatch.start(call)
            if call.started is not None:
                self.chains.add(keys, call.started)
        else:
            results = self.dispatch.start(call)
        if ended is not None:
            ended(call.ended)
        elif not results and call.ended is not None and call.ended.error is not None:
            raise raisable(call.ended.error)  # no handle would carry it
        return results

    def _of_compiler(self, op: OpDef, attrs: OpAttrs) -> list[State]:
        """The results of an op that the compiler itself interprets. Raises Unimplemented for ops of graphs alone."""
        if op.name == CONST:
            value, dtype = attrs["value"], attrs["dtype"]
            if value.dtype is not dtype:
                raise InvalidArgument(f"the value is {value.dtype.name}, and attribute 'dtype' is {dtype.name}",
                                      hint=f"give an array: np.array(..., '{dtype.name}')")
            return [self.ready(value.array(), value.dtype)]
        if op.name in (NO_OP, CONTROL_TRIGGER):
            return []
        raise Unimplemented(f"op {op.name} has a meaning in graphs only", op=op.name,
                            hint="run a graph that has it, with heald.Session")

    def _called(
        self, op: OpDef, matched: Matched, device: str | None, handler: Any, chain: Any, donate: Sequence[int],
        location: Callable[[], Any], given: Sequence[Any], raw: Mapping[str, Any] | None,
    ) -> list[Any]:
        inputs, attrs, borrowed, types = matched
        states = [self.state_of(x, dtype) for x, dtype in zip(inputs, types, strict=True)]
        linked = self.handlers.chosen(handler)
        if device is not None:
            _text(device, "device")
        if donate:
            gone = self._donated(inputs, donate)
            kept = {i: states[i] for i in gone}
            try:
                return self._in_chain(op, matched, states, device, linked, chain, gone, location)
            except BaseException:
                for i, state in kept.items():
                    inputs[i]._become(state)
                raise
        if chain is None and linked is None:
            before = list(states)
            results = self.run(op, attrs, states, device, NONE, location, borrowed=borrowed)
            made = [handle_of(state) for state in results]
            remember(self, op, matched, given, before, made, raw, device)
            return made
        return self._in_chain(op, matched, states, device, linked, chain, NONE, location)

    def _in_chain(
        self, op: OpDef, matched: Matched, states: list[State], device: str | None, linked: LinkedHandler | None,
        chain: Any, gone: frozenset[int], location: Callable[[], Any],
    ) -> list[Any]:
        """Execute a call through a handler, after a chain, or with donations."""
        ended = None if chain is None else CallEnd()
        after = () if chain is None else chained(chain)
        is_error = first_error(states) is not None or self.cancelled is not None
        if linked is None or is_error:
            results = [handle_of(s) for s in self.run(op, matched.attrs, states, device, gone, location, after, ended,
                                                      matched.borrowed)]
        else:
            handles = tuple([x if isinstance(x, TensorHandle) and i not in gone else handle_of(states[i])
                             for i, x in enumerate(matched.inputs)])
            for i in matched.borrowed:
                handles[i]._value = handles[i]._value.copy()
            function = linked.make_op(op.name)
            invocation = OpInvocation(op.name, handles, matched.attrs, gone, device, location, after, ended)
            with handler_guard(linked.name):
                made = function(invocation)
            results = checked_results(made, op, matched.attrs, linked.name)
        return results if ended is None else [ended.chain(results), *results]

    def state_of(self, value: Any, dtype: DType) -> State:
        """The state of an input of this moment; its handle may be of another runtime."""
        if not isinstance(value, TensorHandle):
            return self.ready(value, dtype)
        state = value._current()
        if isinstance(state, Failed):
            return state
        if isinstance(state, Ready) and state.kind.owner is self:
            if state.kind.native is not None and state.value.work.error is not None:
                return Failed(state.value.work.error)
            return state
        if isinstance(state, Pending) and state.owner is self:
            return state
        awaited = value._awaited()
        return self.ready(value.numpy() if awaited.kind.layout == DENSE else awaited.value, value.dtype)

    def _donated(self, inputs: Sequence[Any], donate: Sequence[int]) -> frozenset[int]:
        """Consume the donated handles. Raises InvalidArgument for an index that is no handle's."""
        if not isinstance(donate, Collection) or isinstance(donate, str | bytes):
            raise InvalidArgument(f"donate is {donate!r}, expected the indices of inputs", hint="donate=(0,)")
        for i in donate:
            if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < len(inputs):
                raise InvalidArgument(f"donate names input {i!r}, the inputs are 0 to {len(inputs) - 1}")
            if not isinstance(inputs[i], TensorHandle):
                raise InvalidArgument(f"input {i} is donated and is no TensorHandle: only handles own their buffers")
        for i in donate:
            inputs[i]._become(Failed(FailedPrecondition(
                "this handle was donated to an op, which may have overwritten its value",
                hint="use the op's result, or leave the input out of donate=")))
            inputs[i]._value = None
        return frozenset(donate)

    def _device_of(self, states: Sequence[State]) -> str:
        """The device of the inputs outside host memory, else the default. Raises InvalidArgument for two devices."""
        name = None
        for state in states:
            if isinstance(state, Ready) and state.kind.native is not None:
                found = state.kind.device
            elif isinstance(state, Pending) and state.device != self.default_device:
                found = state.device
            else:
                continue
            if name is not None and name != found:
                raise InvalidArgument(f"the inputs are on {name} and on {found}",
                                      hint=f"copy one of them, x.to('{name}'), or choose: device='{name}'")
            name = found
        return self.default_device if name is None else name

    def remembered(
        self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, device: str | None = None
    ) -> TensorHandle | tuple[TensorHandle, ...] | None:
        """The results of a call whose like has succeeded before. None for another call, and when the kernel fails."""
        found = self.memo.get(key_of(op, inputs, attrs, device))
        if found is None:
            return None
        if isinstance(found, DeviceCall):
            return self._on_device(found, inputs)
        try:
            value = self.in_context(found.function, *found.arrays(inputs))
        except Exception:  # noqa: BLE001 - the long way raises it again, typed
            return None
        if len(found.kinds) == 1:
            return handle_of(Ready(found.kinds[0], value))
        return tuple([handle_of(Ready(kind, each)) for kind, each in zip(found.kinds, value, strict=True)])

    def _on_device(self, known: DeviceCall, inputs: Sequence[Any]) -> TensorHandle | tuple[TensorHandle, ...] | None:
        """Enqueue a call whose like has succeeded before. None when an input is an error by now."""
        states: list[State] = [x._current() for x in inputs]
        if not all(isinstance(state, Ready) and state.value.work.error is None for state in states):
            return None
        call = EagerCall(known.op, known.attrs, states, known.bound.device_name, False, NONE, calling_line(3))
        handles = [handle_of(state) for state in self.dispatch.run_on_device(call, known.bound)]
        return handles[0] if len(handles) == 1 else tuple(handles)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} is a {type(value).__name__}, expected a name")
    return value


def _dtype(given: Any, value: Any) -> DType:
    """The type that a caller asks for, else the value's own."""
    if given is not None:
        from heald.runtime.contract import AttrDef

        return convert_attribute(AttrDef("dtype", "type"), OpAttrs(dtype=given)["dtype"])  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray | np.generic):
        return dtypes.of_numpy(value.dtype.newbyteorder("="))
    return natural_dtype(value)


def _elements(array: Any) -> Any:
    return tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()

