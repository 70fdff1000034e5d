"""Explicit chains of calls: the values that a call waits for, and the value that tells its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heald.api import AsyncValue, OpAttrs, OpDef, failed
from heald.errors import HealdError, InvalidArgument, PluginError
from heald.runtime.values import error_among, when_available

from .handle_state import Failed, Pending, State
from .tensor_handle import TensorHandle


class CallEnd:
    """The end of one call: the device's handler says when the work is over, the results when they have come."""

    def __init__(self) -> None:
        self._work: AsyncValue | None = None

    def __call__(self, value: AsyncValue | None) -> None:
        self._work = value

    def chain(self, results: Sequence[TensorHandle]) -> AsyncValue:
        """The chain of the call: complete when its work is over and its results have come, or their first error."""
        states = [handle._current() for handle in results]
        error = first_error(states)
        if error is not None:
            return failed(error)
        waits = [state.value for state in states if isinstance(state, Pending)]
        waits += [] if self._work is None else [self._work]
        return merge_chains(waits)


def merge_chains(values: Sequence[AsyncValue]) -> AsyncValue:
    """A chain that completes after all these values, with their first error if there is one."""
    chain = AsyncValue()

    def complete() -> None:
        error = error_among(values)
        if error is None:
            chain.emplace(None)
        else:
            chain.set_error(error)

    when_available(values, complete)
    return chain


def values_of_chain(chain: Any) -> tuple[AsyncValue, ...]:
    """The values that a call with this argument `chain` waits for. Raises InvalidArgument for another object."""
    if isinstance(chain, AsyncValue):
        return (chain,)
    if isinstance(chain, TensorHandle):
        state = chain._current()
        if isinstance(state, Pending):
            return (state.demanded_value(),)
        return (failed(state.error),) if isinstance(state, Failed) else ()
    if isinstance(chain, list | tuple):
        return tuple([value for part in chain for value in values_of_chain(part)])
    raise InvalidArgument(f"chain is a {type(chain).__name__}; expected the chain of an earlier call, a handle, or a "
                          "list of these", hint="chain=() begins a chain")


def first_error(states: Sequence[State]) -> HealdError | None:
    return next((state.error for state in states if isinstance(state, Failed)), None)


def checked_results(results: Any, op: OpDef, attrs: OpAttrs, handler: str) -> list[Any]:
    """The handles that a handler's function returned. Raises PluginError for anything else."""
    expected = sum(arg.count(attrs) for arg in op.outputs)
    handles = list(results) if isinstance(results, list | tuple) else [results]
    if len(handles) != expected or not all(isinstance(handle, TensorHandle) for handle in handles):
        types = ", ".join(type(handle).__name__ for handle in handles) or "nothing"
        raise PluginError(f"the op handler '{handler}' returned {types} for {op.name}, expected {expected} "
                          "TensorHandles", op=op.name)
    return handles
