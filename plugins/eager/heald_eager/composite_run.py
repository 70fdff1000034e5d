"""CompositeRun: one call of a composite op as a program, from its arguments, which may be pending, to its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heald.api import AsyncValue, TensorMetadata
from heald.errors import HealdError, InvalidArgument, Location
from heald.graphs.session import AsynchronousStep
from heald.runtime.executor import Executable
from heald.runtime.values import error_among, when_available

from .core_runtime import CoreRuntime
from .handle_state import Failed, Pending, Ready, State
from .layouts import dense_argument
from .promise import Promise
from .queued_call import QueuedCall, Started
from .tensor_handle import raisable


class CompositeRun:
    """One call of a function, whose name is `name`. The caller's place in its program is `location`."""

    def __init__(
        self, runtime: CoreRuntime, step: AsynchronousStep, name: str, location: Callable[[], Location | None]
    ) -> None:
        self._context, self._transfers, self._chains = runtime.context, runtime.transfers, runtime.chains
        self._step, self._name, self._location = step, name, location

    def queue(self, states: Sequence[State], executable: Executable | None) -> list[State]:
        """Start the run when its arguments are in host memory, as a task of the work queue. Returns the results.

        `executable`: the program linked for the arguments, or None while a shape is unknown. A run with effects starts
        after the earlier runs of its session.
        """
        context, step = self._context, self._step
        moved = [self._on_host(state) for state in states]
        needs = []
        for state in moved:
            if isinstance(state, Pending):
                needs.append(state.read())

        def start() -> Started:
            ready = [state if isinstance(state, Ready) else state.value.get()  # type: ignore[union-attr]
                     for state in moved]
            arrays = [dense_argument(context, argument).value for argument in ready]
            linked = step.link([array.shape for array in arrays]) if executable is None else executable
            return self._begin(linked, arrays)

        keys = (step.session,) if step.has_effects else ()
        after = self._chains.before(keys)
        call = QueuedCall(context, needs, self._metas(executable), context.default_device, start, self._locate, after)
        if keys and call.started is not None:
            self._chains.add(keys, call.started)
        return list(call.results)

    def _on_host(self, state: State) -> State:
        default = self._context.default_device
        is_on_host = state.kind.native is None if isinstance(state, Ready) else (
            isinstance(state, Failed) or state.device == default)
        return state if is_on_host else self._transfers.move(state, default)

    def _metas(self, executable: Executable | None) -> list[TensorMetadata]:
        if executable is None:
            return list(self._step.fetched)
        return [executable.layout.registers.metas[register] for register in executable.function.results]

    def _begin(self, executable: Executable, arrays: Sequence[Any]) -> Started:
        """Start the linked program. Its results are settled together, when the run is over."""
        context = self._context
        values, over = self._step.start(executable, arrays)
        promises = [context.promises.make() for _ in values]
        end = context.promises.make()
        when_available((*values, over), lambda: self._settle(promises, end, values, over))
        pending = [context.pending_state(meta, context.default_device, promise.value)
                   for meta, promise in zip(self._metas(executable), promises, strict=True)]
        return pending, end.value

    def _settle(
        self, promises: Sequence[Promise], end: Promise, values: Sequence[AsyncValue], over: AsyncValue
    ) -> None:
        error = over.error or error_among(values)
        if error is None and any(value.is_dead() for value in values):
            error = InvalidArgument("a result is dead: control flow did not take its branch",
                                    hint="return what a Merge makes of it")
        if error is not None:
            error = self._locate(raisable(error))
            self._context.host.report(error)
        for promise, value, meta in zip(promises, values, self._step.fetched, strict=True):
            promise.settle(self._context.ready_state(value.get(), meta.dtype) if error is None else Failed(error))
        end.settle_after(None)  # an error of an earlier run is none of the later one's

    def _locate(self, error: HealdError) -> HealdError:
        """The error with the name of the function and the line of the call."""
        return error.at(op=self._name, location=self._location())
