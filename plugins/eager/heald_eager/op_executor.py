"""OpExecutor: executes an op on its device, after the calls whose effects it has to see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heald.api import AsyncValue, OpAttrs, OpDef, failed
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.contract import CONST, CONTROL_TRIGGER, NO_KERNEL, NO_OP, DeviceName

from .call_end import first_error
from .context import EagerContext
from .dispatch import Dispatch, EagerCall
from .handle_state import Failed, Pending, Ready, State
from .op_chains import OpChains, resources_of
from .tensor_handle import raisable


class OpExecutor:
    """Executes ops for one runtime. Any thread may call."""

    def __init__(self, context: EagerContext, dispatch: Dispatch, chains: OpChains) -> None:
        self._context = context
        self._dispatch = dispatch
        self._chains = chains

    def run(
        self, op: OpDef, attrs: OpAttrs, states: list[State], device: str | None, donate: frozenset[int],
        location: Callable[[], Any], after: tuple[AsyncValue, ...] = (),
        on_end: Callable[[AsyncValue | None], None] | None = None, borrowed: frozenset[int] = frozenset(),
    ) -> list[State]:
        """Execute an op on a device: the one that is requested, that of the inputs, or the default device."""
        error = (self._context.cancelled or first_error(states)
                 or next((chain.error for chain in after if chain.error is not None), None))
        if error is not None:
            outputs = sum(arg.count(attrs) for arg in op.outputs)
            if on_end is not None:
                on_end(failed(error))
            elif not outputs:
                raise raisable(error)
            return [Failed(error)] * outputs
        if op.name in NO_KERNEL:
            return self._run_without_kernel(op, attrs)
        name = self._device_of(states) if device is None else DeviceName.of_this_process(device).short
        chain = tuple([value for value in after if not value.is_available()])
        call = EagerCall(op, attrs, states, name, device is None, donate, location, borrowed, chain,
                         is_followed=op.stateful or on_end is not None or not op.outputs)
        if op.stateful:
            keys = resources_of(states)
            call.after = self._chains.before(keys)
            results = self._dispatch.start(call)
            if call.started is not None:
                self._chains.add(keys, call.started)
        else:
            results = self._dispatch.start(call)
        if on_end is not None:
            on_end(call.ended)
        elif not results and call.ended is not None and call.ended.error is not None:
            raise raisable(call.ended.error)  # no handle would carry it
        return results

    def _run_without_kernel(self, op: OpDef, attrs: OpAttrs) -> list[State]:
        """The results of an op that the compiler itself interprets. Raises Unimplemented for ops of graphs alone."""
        if op.name == CONST:
            value, dtype = attrs["value"], attrs["dtype"]
            if value.dtype is not dtype:
                raise InvalidArgument(f"the value is {value.dtype.name}, and attribute 'dtype' is {dtype.name}",
                                      hint=f"give an array: np.array(..., '{dtype.name}')")
            return [self._context.ready_state(value.array(), value.dtype)]
        if op.name in (NO_OP, CONTROL_TRIGGER):
            return []
        raise Unimplemented(f"op {op.name} has a meaning in graphs only", op=op.name,
                            hint="run a graph that has it, with heald.Session")

    def _device_of(self, states: Sequence[State]) -> str:
        """The device of the inputs outside host memory, else the default. Raises InvalidArgument for two devices."""
        default = self._context.default_device
        name = None
        for state in states:
            if isinstance(state, Ready) and state.kind.native is not None:
                device = state.kind.device
            elif isinstance(state, Pending) and state.device != default:
                device = state.device
            else:
                continue
            if name is not None and name != device:
                raise InvalidArgument(f"the inputs are on {name} and on {device}",
                                      hint=f"copy one of them, x.to('{name}'), or choose: device='{name}'")
            name = device
        return default if name is None else name
