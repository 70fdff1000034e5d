"""Composite ops: a graph, a function of a graph or a signature of a SavedModel, called like an op.

A call runs the function as a program, on the host's work queue. A function that is one kernel on host memory after
placement and fusion runs as this kernel at once, without a program. Calls with handles of known kinds find it in a
table. A function that is one kernel on another device runs as this op.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import OpAttrs, OpDef, OpFunction, OpInvocation, TensorMetadata, shape_text
from heald.errors import HealdError, InvalidArgument, Location, PluginError, boundary, typed_error
from heald.runtime.executor import Executable, only_call
from heald.runtime.host import KERNEL_MODES, Host
from heald.runtime.service import inputs_in_order
from heald.runtime.support import kernel_errors
from heald.runtime.values import DENSE, fits

from .call_end import first_error
from .call_memo import LARGEST_TABLE_ENTRIES
from .composite_run import CompositeRun
from .core_runtime import CoreRuntime
from .default_runtime import default_runtime
from .execute import local_context
from .function_source import FunctionSource, function_source
from .handle_state import Failed, Kind, Pending, Ready, State
from .layouts import dense_argument
from .op_handlers import handler_guard
from .signature import array_like, convert_input
from .source_line import calling_line
from .tensor_handle import TensorHandle, handle_of


@boundary
def function(
    source: Any, inputs: Any = None, outputs: Any = None, *, name: str | None = None,
    attrs: Mapping[str, Any] | None = None, signature: str | None = None, device: str | None = None,
    handler: Any = None, config: Any = None,
) -> CompositeOp:
    """Return a composite op: `f(x, y)` or `f(x=..., y=...)`, with everything that `heald.execute` takes.

    `source`: one of
        a Graph, whose tensors `inputs` are the arguments, and `outputs` the results: a handle for a name, a tuple for a
            list, a dict for a dict. `inputs` are names, or a dict of tensors by the arguments' names. By default they
            are the placeholders that the outputs need, and the nodes without consumers;
        a Graph with `name`, a function of its library; `attrs` gives the types of a polymorphic one. One result is a
            handle, several are a tuple;
        a SavedModel's path, or a loaded file or one of its signatures. `signature` chooses one by its name. The results
            are a dict by name.
    `device`: for nodes that request none, such as "CPU:0".
    `handler`: executes the calls, as in `heald.execute`.
    `config`: a dict, a path or a Config, for this function alone.

    The state of the graph, such as its variables, belongs to the function; signatures of one model share it. Calls of a
    function with effects keep their order.

    Raises InvalidArgument and NotFound for names and objects that do not fit, and as `heald.Session` and `heald.load`.
    """
    step_source = function_source(source, inputs, outputs, name, attrs, signature, device, config)
    return CompositeOp(default_runtime(), step_source, handler)


class DeviceOp(NamedTuple):
    """The one op that a function comes to, on a device outside host memory.

    `sources`: for each of its inputs the index of the function's argument.
    """

    op: OpDef
    attrs: OpAttrs
    device: str
    sources: list[int]


SingleCall = DeviceOp | Callable[..., Any]


def _device_call(executable: Executable, host: Host) -> DeviceOp | None:
    """The one op of an executable on a device of this host, or None."""
    call_and_sources = only_call.only_device_call(executable)
    if call_and_sources is None:
        return None
    bound, sources = call_and_sources
    device = next((entry.name for entry in host.devices_in_use() if host.open(entry.name) is bound.device), None)
    if device is None:
        return None
    op = host.registries.ops.get(bound.call.op)
    return DeviceOp(op, OpAttrs({name: bound.call.attrs[name] for name in op.attrs}), device, sources)


class CompositeOp:
    """A composite op. Several threads may call it.

    `inputs`: the names of the arguments, in order.
    `outputs`: the names of the results of a SavedModel's signature, else None.

    A call returns handles at once: one, a tuple, or a dict by name. It raises errors of arguments and of shapes that
    are known. Every later error is the state of all results, with the line of the call.
    """

    def __init__(self, runtime: CoreRuntime, source: FunctionSource, handler: Any = None) -> None:
        self.inputs = source.inputs
        self.outputs = source.outputs if isinstance(source.outputs, tuple) else None
        self.__name__ = self.__qualname__ = source.name
        self._runtime, self._context, self._step = runtime, runtime.context, source.step
        self._is_single = source.outputs is None
        self._calls: weakref.WeakKeyDictionary[Executable, SingleCall | None] = weakref.WeakKeyDictionary()
        self._fast: dict[tuple[Any, ...], tuple[Callable[..., Any], Kind]] = {}  # by kinds of handles
        self._linked = runtime.handlers.make_chain_over(handler, self)
        runtime.memo.table_owners[id(self)] = self

    def __repr__(self) -> str:
        return f"heald.function {self.__name__}({', '.join(self.inputs)})"

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if not named:
            try:
                if len(inputs) == 2:
                    x, y = inputs
                    function, kind = self._fast[x._kind, y._kind]
                    arrays: Any = x._value, y._value
                else:
                    function, kind = self._fast[tuple([x._kind for x in inputs])]
                    arrays = [x._value for x in inputs]
                run, get, set_modes, before = local_context.parts
                get(before)
                try:
                    set_modes(KERNEL_MODES)
                    value = run(function, *arrays)
                finally:
                    set_modes(before)
            except Exception:  # noqa: BLE001, S110 - the slow path raises it again, typed, unless the entry is missing
                pass
            else:
                result = object.__new__(TensorHandle)
                result._value, result._kind = value, kind
                return result if self._is_single else self._in_structure([result])
        return self._call_slowly(inputs, named)

    def clear(self) -> None:
        """Drop the short ways of calls: a cancelled runtime must not take them."""
        self._fast.clear()

    def make_op(self, op: str) -> OpFunction | None:
        """Execute the function's calls as the last handler of a chain."""
        return self._execute_invocation if op == self.__name__ else None

    def _execute_invocation(self, invocation: OpInvocation) -> Sequence[Any]:
        states = [handle._current() for handle in invocation.inputs]
        return tuple([handle_of(state) for state in self._run(states, invocation.location)])

    def _call_slowly(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        location = calling_line(2)
        try:
            arguments = inputs_in_order(self.inputs, inputs, named, f"function {self.__name__}")
            return self._in_structure(self._execute(arguments, location))
        except HealdError as error:
            raise error.at(op=self.__name__, location=location())  # noqa: B904 - the same error
        except Exception as error:
            raise typed_error(error).at(op=self.__name__, location=location()) from error

    def _in_structure(self, results: Sequence[TensorHandle]) -> Any:
        if self._is_single:
            return results[0]
        return tuple(results) if self.outputs is None else dict(zip(self.outputs, results, strict=True))

    def _execute(self, arguments: Sequence[Any], location: Callable[[], Location | None]) -> list[TensorHandle]:
        states = [self._argument_state(value, meta, name)
                  for value, meta, name in zip(arguments, self._step.fed, self.inputs, strict=True)]
        error = self._context.cancelled or first_error(states)
        if error is not None:
            return [handle_of(Failed(error)) for _ in self._step.fetched]
        if self._linked is None:
            results = [handle_of(state) for state in self._run(states, location)]
            if all(isinstance(x, TensorHandle) for x in arguments):
                self._memoize(states, results)
            return results
        handles = tuple([handle_of(state) for state in states])
        invocation = OpInvocation(self.__name__, handles, OpAttrs(), frozenset(), None, location,
                                  composite=len(self._step.fetched))
        with handler_guard(self._linked.name):
            returned = self._linked.make_op(self.__name__)(invocation)
        if len(returned) != len(self._step.fetched) or not all(isinstance(handle, TensorHandle) for handle in returned):
            raise PluginError(f"the op handler '{self._linked.name}' returned no {len(self._step.fetched)} "
                              f"TensorHandles for {self.__name__}", op=self.__name__)
        return list(returned)

    def _argument_state(self, value: Any, meta: TensorMetadata, name: str) -> State:
        """The state of an argument in host memory. An array of the caller is copied: the call may outlive its frame."""
        tensor = convert_input(array_like(value, f"input '{name}'"), meta.dtype, name)
        if tensor is value or (isinstance(tensor, np.ndarray) and isinstance(value, np.ndarray)):
            tensor = tensor if isinstance(tensor, TensorHandle) else tensor.copy()
        state = self._runtime.state_of(tensor, meta.dtype)
        actual = state.kind.meta if isinstance(state, Ready) else state.meta if isinstance(state, Pending) else None
        if actual is not None and actual.is_static and not fits(actual.dims, meta):
            raise InvalidArgument(f"input '{name}' has shape {shape_text(actual.dims)}, "
                                  f"expected {shape_text(meta.shape)}")
        return state

    def _run(self, states: Sequence[State], location: Callable[[], Location | None]) -> list[State]:
        """Execute the function: at once if it is one kernel and its arguments are in host memory, else on the queue."""
        metas = [state.kind.meta if isinstance(state, Ready) else state.meta  # type: ignore[union-attr]
                 for state in states]
        states = [dense_argument(self._context, state) if isinstance(state, Ready) else state for state in states]
        executable = self._step.link([meta.dims for meta in metas]) if all(meta.is_static for meta in metas) else None
        only = None if executable is None else self._only_call(executable)
        if isinstance(only, DeviceOp):
            return self._runtime.executor.run(only.op, only.attrs, [states[source] for source in only.sources],
                                              only.device, frozenset(), location)
        if only is None or any(not isinstance(state, Ready) or state.kind.native is not None for state in states):
            return CompositeRun(self._runtime, self._step, self.__name__, location).queue(states, executable)
        try:
            value = self._context.run_kernel(only, *[state.value for state in states])  # type: ignore[union-attr]
        except Exception as raised:  # noqa: BLE001 - the state of the result
            error = kernel_errors.as_heald_error(raised, f"function {self.__name__}")
            error = error.at(op=self.__name__, location=location())
            self._context.host.report(error)
            return [Failed(error)]
        return [self._context.ready_state(value, self._step.fetched[0].dtype)]

    def _only_call(self, executable: Executable) -> SingleCall | None:
        if executable not in self._calls:
            self._calls[executable] = only_call.only_call(executable, self._context.host) or _device_call(
                executable, self._context.host)
        return self._calls[executable]

    def _memoize(self, states: Sequence[State], results: Sequence[TensorHandle]) -> None:
        """Keep the kernel of a call with dense handles that ran at once and has succeeded."""
        if any(not isinstance(state, Ready) or state.kind.native is not None or state.kind.layout != DENSE
               for state in states):
            return
        executable = self._step.link([state.kind.meta.dims for state in states])  # type: ignore[union-attr]
        only = self._only_call(executable)
        if not callable(only) or not isinstance(results[0]._kind, Kind) or self._context.cancelled is not None:
            return
        if len(self._fast) >= LARGEST_TABLE_ENTRIES:
            self._fast.clear()
        self._fast[tuple([state.kind for state in states])] = only, results[0]._kind  # type: ignore[union-attr]
        if self._context.cancelled is not None:  # by another thread, meanwhile
            self.clear()
