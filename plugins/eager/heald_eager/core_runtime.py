"""CoreRuntime: executes ops one at a time on one host, as handles that are returned at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from heald.api import AsyncValue, DType, OpAttrs, OpDef, OpInvocation, TensorMetadata, dtypes
from heald.errors import Cancelled, FailedPrecondition, HealdError, InvalidArgument, Location, typed_error
from heald.runtime.config import EagerConfig
from heald.runtime.contract import convert_attribute
from heald.runtime.host import Host
from heald.runtime.service import HostContext, convert_feed
from heald.runtime.values import DENSE

from .asynchrony import Mode
from .bound_op_cache import BoundOpCache
from .call_end import CallEnd, checked_results, first_error, values_of_chain
from .call_memo import CallMemo, CallRecorder, DeferredCall, DeviceCall, Key, key_of
from .context import EagerContext
from .dispatch import Dispatch, EagerCall
from .execute import FastTable, execute_over
from .handle_state import Failed, Pending, Ready, State
from .layouts import convert_layout
from .op_chains import OpChains
from .op_executor import OpExecutor
from .op_handlers import HandlerContext, LinkedHandler, OpHandlers, handler_guard
from .signature import MatchedCall, MatchMemo, array_like, natural_dtype
from .source_line import call_site, calling_line
from .tensor_handle import TensorHandle, handle_of, raisable
from .transfers import Transfers

NO_INPUTS: frozenset[int] = frozenset()
_KEY = "the core runtime of calls"


class CoreRuntime:
    """Executes ops on the devices of a host. Several threads may share one.

    `handler`: the name of the op handler of calls that choose none, as `[eager] handler`; "" for the devices' own.
    `asynchronous`: which calls return before their kernel has run, as `[eager] asynchronous`.

    `execute` is `heald.execute` over this host.
    """

    def __init__(
        self, host: Host, handler: str | Sequence[str] = "", fast: FastTable | None = None,
        asynchronous: Mode = "auto",
    ) -> None:
        self.host = host
        self.context = context = EagerContext(host, self, asynchronous)
        self.memo = CallMemo({} if fast is None else fast)
        self.bound_ops = BoundOpCache(context, self.memo.clear)
        self.transfers = Transfers(context)
        self.chains = OpChains()
        self._dispatch = Dispatch(context, self.bound_ops, self.transfers)
        self.executor = OpExecutor(context, self._dispatch, self.chains)
        handler_context = HandlerContext(context, self._dispatch, self.call)
        self.handlers = OpHandlers(context, self.executor, handler_context, handler)
        self.execute = execute_over(self.memo.fast, self.call)
        self._recorder = CallRecorder(context, self.bound_ops, self.memo)
        self._matches = MatchMemo()
        self._run_kernel = context.run_kernel
        host.lasting[id(self)] = self
        if host.cancellation.is_cancelled:
            self.cancel(Cancelled("the host was cancelled"))

    @property
    def default_device(self) -> str:
        """As `EagerContext.default_device`."""
        return self.context.default_device

    def call(
        self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None = None, device: str | None = None,
        handler: Any = None, chain: Any = None, donate: Sequence[int] = (), location: Location | None = None,
        diagnostics: Callable[[HealdError], Any] | None = None, host: Host | None = None,
    ) -> Any:
        """Execute an op as `heald.execute` does. Returns a handle, or a tuple of them."""
        if host is not None and host is not self.host:
            return runtime_of(host).call(op, inputs, attrs, device, handler, chain, donate, location, diagnostics)
        if (handler is None and chain is None and not donate and location is None and diagnostics is None
                and isinstance(op, str) and (device is None or isinstance(device, str))):
            memoized = self.run_memoized(op, inputs, attrs, device)
            if memoized is not None:
                return memoized
        place = call_site(location, diagnostics, 2)
        try:
            definition = self.host.registries.ops.get(_checked_name(op, "op"))
            matched = self._matches.match(definition, inputs, attrs)
            results = self._execute(definition, matched, device, handler, chain, donate, place, inputs, attrs)
        except HealdError as error:
            raise error.at(op=op if isinstance(op, str) else None, location=place())  # noqa: B904 - the same error
        except Exception as error:
            raise typed_error(error).at(op=op, location=place()) from error
        return results[0] if len(results) == 1 and chain is None else tuple(results)

    def execute_matched(
        self, op: OpDef, matched: MatchedCall, handler: LinkedHandler, chain: AsyncValue | None,
        location: Callable[[], Any],
    ) -> list[Any]:
        """Execute an op through this handler, for a caller that knows the location. Returns the handles, with `chain`
        behind the chain of the call. Errors have no place yet."""
        states = [self.state_of(x, dtype) for x, dtype in zip(matched.inputs, matched.types, strict=True)]
        return self._execute_in_chain(op, matched, states, None, handler, chain, NO_INPUTS, location)

    def handle(self, value: Any, dtype: Any = None) -> TensorHandle:
        """Return a handle of a copy of this value in host memory. Raises InvalidArgument for an object that is no
        tensor, and for one that the dtype cannot hold."""
        try:
            return handle_of(self.context.ready_state(*self.array_copy(value, dtype, "value")))
        except HealdError as error:
            raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place

    def array_copy(self, value: Any, dtype: Any, name: str) -> tuple[Any, DType]:
        """A new array for a user's argument, and its type. Raises as `handle`."""
        if isinstance(value, TensorHandle):
            value = value.numpy()
        value = array_like(value, f"the {name}")
        element_type = _element_type(dtype, value)
        if element_type in (dtypes.resource, dtypes.variant):
            raise InvalidArgument(f"the {name} is no {element_type.name}: ops make tensors of this type",
                                  hint="VarHandleOp, for example, returns a resource")
        array = convert_feed(value, TensorMetadata(element_type, None), name, self.host.memory, "argument")
        if np.may_share_memory(array, value) if isinstance(value, np.ndarray) else array is value:
            array = array.copy()
        return array, element_type

    def wait(self, state: Pending) -> None:
        """Block until a pending value has come. An interrupt ends the waiting alone."""
        self.context.wait(state)

    def array_of(self, state: Ready) -> Any:
        """The array of a device's value: a copy. Waits; raises the error."""
        pending = self.transfers.to_host(state)
        self.context.wait(pending)
        if pending.value.error is not None:
            raise raisable(pending.value.error)
        return pending.value.get().value

    def copy_to(self, state: Ready | Pending, device: str) -> State:
        """The state of `TensorHandle.to`: the state itself where the value is on this device."""
        try:
            moved = self.transfers.move(state, _checked_name(device, "device"))
        except HealdError as error:
            raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place
        if moved is state:
            return state
        return moved if self.context.cancelled is None else Failed(self.context.cancelled)

    def to_layout(self, state: Ready | Pending, layout: str) -> State:
        """The state of `TensorHandle.to_dense` and `to_coo`: the state itself where the tensor has this layout."""
        return convert_layout(self.context, state, layout)

    def cancel(self, error: HealdError) -> None:
        """Turn all pending handles, and the results of all later calls, into errors, until `restart`."""
        self.context.cancelled = error
        self.memo.clear()
        self.context.step.cancel(error)
        self.transfers.cancel(error)
        self.context.promises.fail(error)

    def restart(self) -> None:
        """Execute calls again after `cancel`."""
        self.context.step.restart()
        self.context.cancelled = None

    def _execute(
        self, op: OpDef, matched: MatchedCall, device: str | None, handler: Any, chain: Any, donate: Sequence[int],
        location: Callable[[], Any], inputs: Sequence[Any], attrs: Mapping[str, Any] | None,
    ) -> list[Any]:
        tensors, full_attrs, borrowed, types = matched
        states = [self.state_of(x, dtype) for x, dtype in zip(tensors, types, strict=True)]
        linked = self.handlers.chain_of(handler)
        if device is not None:
            _checked_name(device, "device")
        if donate:
            donated = _consume_donated(tensors, donate)
            donated_states = {i: states[i] for i in donated}
            try:
                return self._execute_in_chain(op, matched, states, device, linked, chain, donated, location)
            except BaseException:
                for i, state in donated_states.items():
                    tensors[i]._become(state)
                raise
        if chain is None and linked is None:
            states_before = list(states)
            results = self.executor.run(op, full_attrs, states, device, NO_INPUTS, location, borrowed=borrowed)
            handles = [handle_of(state) for state in results]
            self._recorder.record(op, matched, inputs, states_before, handles, attrs, device)
            return handles
        return self._execute_in_chain(op, matched, states, device, linked, chain, NO_INPUTS, location)

    def _execute_in_chain(
        self, op: OpDef, matched: MatchedCall, states: list[State], device: str | None, linked: LinkedHandler | None,
        chain: Any, donated: frozenset[int], location: Callable[[], Any],
    ) -> list[Any]:
        """Execute a call through a handler, after a chain, or with donations."""
        end = None if chain is None else CallEnd()
        after = () if chain is None else values_of_chain(chain)
        is_error = first_error(states) is not None or self.context.cancelled is not None
        if linked is None or is_error:
            results = [handle_of(state) for state in self.executor.run(
                op, matched.attrs, states, device, donated, location, after, end, matched.borrowed)]
        else:
            handles = tuple([x if isinstance(x, TensorHandle) and i not in donated else handle_of(states[i])
                             for i, x in enumerate(matched.inputs)])
            for i in matched.borrowed:
                handles[i]._value = handles[i]._value.copy()
            function = linked.make_op(op.name)
            invocation = OpInvocation(op.name, handles, matched.attrs, donated, device, location, after, end)
            with handler_guard(linked.name, linked.handler):
                returned = function(invocation)
            results = checked_results(returned, op, matched.attrs, linked.name)
        return results if end is None else [end.chain(results), *results]

    def state_of(self, value: Any, dtype: DType) -> State:
        """The state of an input of this moment; its handle may be of another runtime."""
        if not isinstance(value, TensorHandle):
            return self.context.ready_state(value, dtype)
        state = value._current()
        if isinstance(state, Failed):
            return state
        if isinstance(state, Ready) and state.kind.owner is self:
            if state.kind.native is not None and state.value.work.error is not None:
                return Failed(state.value.work.error)
            return state
        if isinstance(state, Pending) and state.owner is self:
            return state
        ready = value._ready_state()
        tensor = value.numpy() if ready.kind.layout == DENSE else ready.value
        return self.context.ready_state(tensor, value.dtype)

    def run_memoized(
        self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, device: str | None = None
    ) -> TensorHandle | tuple[TensorHandle, ...] | None:
        """The results of a call whose like has succeeded before. None for another call, and when the kernel fails."""
        key = key_of(op, inputs, attrs, device)
        call = self.memo.get(key)
        if call is None:
            return None
        if isinstance(call, DeviceCall):
            return self._run_on_device(call, inputs)
        if isinstance(call, DeferredCall):
            return self._defer(key, call, inputs)
        try:
            value = self._run_kernel(call.function, *call.arrays(inputs))
        except Exception:  # noqa: BLE001 - the long way raises it again, typed
            return None
        if len(call.kinds) == 1:
            return handle_of(Ready(call.kinds[0], value))
        return tuple([handle_of(Ready(kind, array)) for kind, array in zip(call.kinds, value, strict=True)])

    def memoize_operator(
        self, symbol: str, op: str, operands: tuple[Any, ...], attrs: Mapping[str, Any] | None
    ) -> None:
        """Let calls of an operator take the short way of its op, which has just been executed."""
        self._recorder.record_operator(symbol, op, operands, attrs)

    def _run_on_device(
        self, device_call: DeviceCall, inputs: Sequence[Any]
    ) -> TensorHandle | tuple[TensorHandle, ...] | None:
        """Enqueue a call whose like has succeeded before. None when an input is an error by now."""
        states: list[State] = [x._current() for x in inputs]
        if not all(isinstance(state, Ready) and state.value.work.error is None for state in states):
            return None
        op, attrs, bound = device_call
        call = EagerCall(op, attrs, states, bound.device_name, False, NO_INPUTS, calling_line(3))
        handles = [handle_of(state) for state in self._dispatch.run_on_device(call, bound)]
        return handles[0] if len(handles) == 1 else tuple(handles)

    def _defer(
        self, key: Key | None, deferred: DeferredCall, inputs: Sequence[Any]
    ) -> TensorHandle | tuple[TensorHandle, ...] | None:
        """Queue a long call whose like has succeeded before. None when its kernel turns out to be short, when an input
        is an error by now, and on a thread that may not wait."""
        asynchrony, bound = self.context.asynchrony, deferred.bound
        if not asynchrony.is_long(bound):
            self.memo.drop(key)
            return None
        states = deferred.states(inputs)
        if not all(isinstance(state, Ready) for state in states) or not asynchrony.may_wait():
            return None
        call = EagerCall(deferred.op, deferred.attrs, states, bound.device_name, False, NO_INPUTS, calling_line(3))
        handles = [handle_of(state) for state in self._dispatch.defer(call, bound)]
        return handles[0] if len(handles) == 1 else tuple(handles)


def runtime_of(host: Host, fast: FastTable | None = None, config: EagerConfig | None = None) -> CoreRuntime:
    """The runtime of a host, made at the first call. `config`: by default that of a HostContext. Raises InvalidArgument
    for an object that is no host."""
    if not isinstance(host, Host):
        raise InvalidArgument(f"host is a {type(host).__name__}, expected a HostContext",
                              hint="heald.HostContext() makes one", location=calling_line(2)())

    def make() -> CoreRuntime:
        eager = config or (host.config.eager if isinstance(host, HostContext) else EagerConfig())
        return CoreRuntime(host, eager.handler, fast, eager.asynchronous)

    return host.resources.get(_KEY, make)


def _consume_donated(inputs: Sequence[Any], donate: Sequence[int]) -> frozenset[int]:
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


def _checked_name(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} is a {type(value).__name__}, expected a name")
    return value


def _element_type(dtype: Any, value: Any) -> DType:
    """The type that a caller asks for, else the value's own."""
    if dtype is not None:
        from heald.runtime.contract import AttrDef

        return convert_attribute(AttrDef("dtype", "type"), OpAttrs(dtype=dtype)["dtype"])  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray | np.generic):
        return dtypes.of_numpy(value.dtype.newbyteorder("="))
    return natural_dtype(value)
