"""Eager ops within programs: the core runtime of a host, its named op handlers, and calls at places of a program.

A call of a program differs from `heald.execute`: its handler is a value of the program, the errors name the place of
the program, and its results become registers, which are complete when the tensors are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from heald.api import AsyncValue, OpAttrs, OpDef, TensorValue, available, dtypes, failed, inherited
from heald.errors import HealdError, Location, NotFound, closest, typed_error
from heald.runtime.contract import AttrDef
from heald.runtime.program import ELEMENT_TYPES, number_type, plain_value

from .core_runtime import CoreRuntime
from .handle_state import Failed, Pending
from .op_handlers import LinkedHandler, LoggingOpHandler, NullOpHandler
from .signature import constant_types, match
from .tensor_handle import TensorHandle, handle_of

if TYPE_CHECKING:
    from heald.runtime.host import Host

_TYPES = {text: dtypes.named(name) for name, text in ELEMENT_TYPES.items()}
_KEY = "the core runtime of programs"


class ProgramRuntime:
    """Executes ops for the programs of one host. Any thread may call."""

    def __init__(self, host: Host) -> None:
        self.core = CoreRuntime(host, asynchronous="never")  # prints of a program keep their order
        self._handlers: dict[str, LinkedHandler] = {}
        self._lock = RLock()
        inherited.add(self)

    def forked(self) -> None:
        self._lock = RLock()

    def null_handler(self) -> LinkedHandler:
        """A handler that supports no op: every call of it is an error."""
        return LinkedHandler("null", NullOpHandler(self.core.handlers.context, None), None)  # type: ignore[arg-type]

    def host_handler(self, fallback: LinkedHandler) -> LinkedHandler:
        """The handler of the host's own device. Raises FailedPrecondition without a device on host memory."""
        device = self.core.default_device
        return LinkedHandler(device, self.core.handlers.device_handler(device), fallback)

    def logging_handler(self, fallback: LinkedHandler, sync: bool) -> LinkedHandler:
        """A handler that writes the calls of its fallback. With `sync` it waits for the results, and writes them."""
        handler = LoggingOpHandler(self.core.handlers.context, fallback, sync=sync)
        return LinkedHandler("logging", handler, fallback)

    def register(self, name: str, handler: LinkedHandler) -> None:
        """Name a handler; the name may have had another one."""
        with self._lock:
            self._handlers[name] = handler

    def handler_of(self, name: str) -> LinkedHandler:
        """Raises NotFound for a name without a handler."""
        with self._lock:
            handler = self._handlers.get(name)
            if handler is None:
                similar = closest(name, self._handlers)
                raise NotFound(f"op_handler not found: {name}", hint=(
                    f"did you mean {similar[0]}?" if similar else "corert.register_op_handler names a handler"))
            return handler

    def execute(
        self, handler: LinkedHandler, op: str, inputs: Sequence[TensorHandle], attrs: Mapping[str, Any],
        location: Location | None, chain: AsyncValue | None = None,
    ) -> list[AsyncValue]:
        """Execute an op. Returns a value for each result, complete when its tensor is; with `chain` first one that
        completes after the call.

        `attrs` may have the typed numbers of programs. Raises as `heald.execute`, with `location`.
        """
        try:
            handler.make_op(op)  # an op that no handler knows is the last handler's error
            definition = self.core.host.registries.ops.get(op)
            matched = match(definition, inputs, _attributes(definition, attrs))
            results = self.core.execute_matched(definition, matched, handler, chain, partial(_same_location, location))
        except HealdError as error:
            raise error.at(op=op, location=location)  # noqa: B904 - the same error
        except Exception as error:
            raise typed_error(error).at(op=op, location=location) from error
        return [result if isinstance(result, AsyncValue) else completion(result) for result in results]

    def tensor(self, array: Any) -> TensorHandle:
        """A handle of an array in host memory, which no other object writes."""
        dtype = dtypes.string if array.dtype == object else dtypes.of_numpy(array.dtype)
        return handle_of(self.core.context.ready_state(array, dtype))


def runtime_of(host: Host) -> ProgramRuntime:
    """Return the host's runtime for programs, made at the first call."""
    return host.resources.get(_KEY, lambda: ProgramRuntime(host))


def completion(handle: TensorHandle) -> AsyncValue:
    """A value that completes with this handle when its tensor is there, or with its error."""
    state = handle._current()
    if isinstance(state, Failed):
        return failed(state.error)
    if not isinstance(state, Pending):
        return available(handle)
    completed, value = AsyncValue(), state.demanded_value()

    def complete() -> None:
        error = value.error
        if error is None:
            completed.emplace(handle)
        else:
            completed.set_error(error)

    value.and_then(complete)
    return completed


def _same_location(location: Location | None) -> Location | None:
    return location


def _attributes(op: OpDef, attrs: Mapping[str, Any]) -> OpAttrs:
    """The attributes of a program as the op takes them. A tensor attribute gives the type of the outputs."""
    typed = {name: _attribute(op.attrs.get(name), value) for name, value in attrs.items()}
    for name, tensor in constant_types(op).items():
        if isinstance(typed.get(tensor), TensorValue):
            typed.setdefault(name, typed[tensor].dtype)
    return OpAttrs(typed)


def _attribute(declared: AttrDef | None, value: Any) -> Any:
    """Numbers of a tensor attribute keep their type, and types may have their names in programs."""
    kind = "" if declared is None else declared.type
    first = value[0] if isinstance(value, tuple) and value else value
    dtype = number_type(first)
    if kind == "tensor" and dtype is not None:
        return TensorValue(np.array(plain_value(value), dtype.numpy))
    if kind == "type" and isinstance(value, str):
        return _TYPES.get(value, value)
    return TensorValue(value) if isinstance(value, np.ndarray) else plain_value(value)
