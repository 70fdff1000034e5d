"""Op handlers of core: devices, logging, null; and chains of handlers by name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

from heald.api import (
    AsyncValue,
    OpDef,
    OpFunction,
    OpHandler,
    OpHandlerContext,
    OpInvocation,
    TensorMetadata,
    inherited,
)
from heald.errors import (
    HealdError,
    InvalidArgument,
    NotFound,
    PluginError,
    Unimplemented,
    closest,
    describe_exception,
    display_text,
)
from heald.runtime.contract import NO_KERNEL, DeviceName
from heald.runtime.support import fault_place

from .attrs_text import attrs_text
from .context import EagerContext
from .dispatch import Dispatch, EagerCall
from .handle_state import Failed, Pending
from .op_executor import OpExecutor
from .signature import inferred_attributes
from .tensor_handle import TensorHandle, handle_of

LARGEST_LOGGED_CHARACTERS = 200  # characters of a value


class DeviceOpHandler:
    """Executes ops on one device; without a name on the device of the inputs."""

    def __init__(self, context: EagerContext, executor: OpExecutor, device: str | None = None) -> None:
        self._context = context
        self._executor = executor
        self._device = device

    def make_op(self, op: str) -> OpFunction | None:
        """The function of an op. None when the device has no kernel for the op. Ops that need none run everywhere."""
        registries = self._context.host.registries
        if self._device is not None and op not in registries.ops:
            return None
        definition = registries.ops.get(op)
        if self._device is not None and op not in NO_KERNEL:
            kind, kernels = self._context.host.open(self._device).type, registries.kernels
            if not kernels.candidates(op, kind) and not kernels.of_layouts(op, kind):
                return None
        return partial(self._execute, definition)

    def _execute(self, op: OpDef, invocation: OpInvocation) -> Sequence[Any]:
        states = [handle._current() for handle in invocation.inputs]
        results = self._executor.run(op, invocation.attrs, states, invocation.device or self._device,
                                     invocation.donate, invocation.location, invocation.after, invocation.ended)
        return tuple([handle_of(state) for state in results])


class NullOpHandler:
    """Supports no op: every call is an error."""

    def __init__(self, context: OpHandlerContext, fallback: OpHandler) -> None:
        pass

    def make_op(self, op: str) -> OpFunction | None:
        raise Unimplemented(f"{op} was not supported by NullOpHandler.", op=op)


class LoggingOpHandler:
    """Writes each call to stderr: its inputs, its outputs when they are known, and the time of the dispatch.

    With `sync` it waits for the outputs, and writes their values. Otherwise it waits for nothing.
    """

    def __init__(self, context: HandlerContext, fallback: OpHandler, *, sync: bool = False) -> None:
        self._context = context
        self._fallback = fallback
        self._sync = sync
        self._numbers = count()

    def make_op(self, op: str) -> OpFunction | None:
        function = self._fallback.make_op(op)
        return None if function is None else partial(self._execute, function)

    def _execute(self, function: OpFunction, invocation: OpInvocation) -> Sequence[Any]:
        number, op = next(self._numbers), invocation.op
        inputs = "".join(f"\n  {_handle_text(handle)}" for handle in invocation.inputs)
        attrs = self._context.chosen_attributes(invocation)
        _log(f"[{number}] dispatch '{op}' {len(invocation.inputs)} argument(s), {self._context.count(invocation)} "
             f"result(s), {attrs_text(attrs) if attrs else 'no attributes'}")
        _log(f"Inputs for [{number}]: '{op}':{inputs}")
        started = perf_counter()
        try:
            results = function(invocation)
        except Exception as error:
            _log(f"[{number}] '{op}' failed: {error}")
            raise
        seconds = perf_counter() - started
        if self._sync:
            self._context.wait(results)
        outputs = "".join(f"\n  {_handle_text(handle)}" for handle in results)
        _log(f"Outputs for [{number}]: '{op}' after {seconds * 1e6:.1f} us:{outputs}")
        return results


@contextmanager
def handler_guard(name: str, handler: object = None) -> Iterator[None]:
    """Turn an exception of a handler into PluginError with the line of its code. Errors of heald pass."""
    try:
        yield
    except HealdError:
        raise
    except Exception as error:
        text = f"the op handler '{name}' raised {describe_exception(error)}"
        raise PluginError(fault_place.with_place(text, error, type(handler).__module__)) from error


def _handle_text(handle: Any) -> str:
    return display_text(repr(handle), LARGEST_LOGGED_CHARACTERS)


def _log(text: str) -> None:
    if sys.stderr is not None:  # a process without a console has none
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class HandlerContext:
    """The OpHandlerContext of one runtime. `call` is `CoreRuntime.call`."""

    def __init__(self, context: EagerContext, dispatch: Dispatch, call: Callable[..., Any]) -> None:
        self._context = context
        self._dispatch = dispatch
        self._call = call

    def count(self, invocation: OpInvocation) -> int:
        """The number of a call's results."""
        if invocation.composite is not None:
            return invocation.composite
        outputs = self._context.host.registries.ops.get(invocation.op).outputs
        return sum(arg.count(invocation.attrs) for arg in outputs)

    def chosen_attributes(self, invocation: OpInvocation) -> dict[str, Any]:
        """The attributes of a call that its inputs and tensor attributes do not determine."""
        if invocation.composite is not None:
            return {}
        inferred = inferred_attributes(self._context.host.registries.ops.get(invocation.op))
        return {name: value for name, value in invocation.attrs.items() if name not in inferred}

    def wait(self, handles: Sequence[TensorHandle]) -> None:
        """Block until the handles are values or errors."""
        for handle in handles:
            state = handle._current()
            if isinstance(state, Pending):
                self._context.wait(state)

    def metadata(self, invocation: OpInvocation) -> tuple[TensorMetadata, ...] | None:
        context = self._context
        if invocation.composite is not None:
            return None
        op = context.host.registries.ops.get(invocation.op)
        states = [handle._current() for handle in invocation.inputs]
        if any(isinstance(state, Failed) for state in states):
            return None
        call = EagerCall(op, invocation.attrs, states, "", True, frozenset(), invocation.location)
        metas = tuple([o.meta for o in context.ops.infer(op, invocation.attrs, self._dispatch.infos(call))])
        return metas if all(meta.is_static for meta in metas) else None

    def promise(
        self, metas: Sequence[TensorMetadata], demand: Callable[[], object]
    ) -> tuple[tuple[TensorHandle, ...], AsyncValue]:
        context, value = self._context, AsyncValue()
        promises = [context.promises.make() for _ in metas]

        def settle() -> None:
            error = value.error
            states = [handle._current() for handle in value.get()] if error is None else [Failed(error)] * len(metas)
            for promise, state in zip(promises, states, strict=True):
                promise.settle(state)

        def on_demand() -> None:
            try:
                demand()
            except Exception as error:  # noqa: BLE001 - a plugin's fault is the state of its handles
                typed = error if isinstance(error, HealdError) else PluginError(
                    f"an op handler raised {describe_exception(error)}")
                for promise in promises:
                    promise.settle(Failed(typed))

        value.and_then(settle)
        return tuple([handle_of(context.pending_state(meta, context.default_device, promise.value, on_demand))
                      for meta, promise in zip(metas, promises, strict=True)]), value

    def execute(self, op: str, *inputs: Any, attrs: Mapping[str, Any] | None = None) -> Any:
        return self._call(op, inputs, attrs, handler=())


class LinkedHandler:
    """A handler of a chain. Ops that it does not support go to the next handler."""

    def __init__(self, name: str, handler: OpHandler, fallback: LinkedHandler | None) -> None:
        self.name = name
        self.handler = handler
        self._fallback = fallback
        self._functions: dict[str, OpFunction] = {}

    def make_op(self, op: str) -> OpFunction:
        """The function of an op, made once. Raises Unimplemented when no handler of the chain supports the op."""
        function = self._functions.get(op)
        if function is None:
            with handler_guard(self.name, self.handler):
                function = self.handler.make_op(op)
            if function is not None and not callable(function):
                raise PluginError(f"make_op of the op handler '{self.name}' ({type(self.handler).__module__}) returned "
                                  f"{type(function).__name__}, expected a function or None", op=op)
            if function is None and self._fallback is not None:
                function = self._fallback.make_op(op)
            if function is None:
                raise Unimplemented(f"{op} is not supported by the op handler '{self.name}'", op=op,
                                    hint=f"give it a fallback: handler=('{self.name}', another handler)")
            self._functions[op] = function
        return function


class OpHandlers:
    """The op handlers of one runtime, made when they are first asked for.

    `context`: that of handlers by name.
    `default`: the names of the handlers of calls that choose none; empty for the devices' own handlers.
    """

    def __init__(
        self, context: EagerContext, executor: OpExecutor, handler_context: HandlerContext,
        default: str | Sequence[str],
    ) -> None:
        self.context = handler_context
        self._eager = context
        self._executor = executor
        self._default = default
        self._chains: dict[tuple[Any, ...], LinkedHandler] = {}
        self._lock = threading.RLock()
        inherited.add(self)

    def forked(self) -> None:
        self._lock = threading.RLock()

    def device_handler(self, device: str | None = None) -> DeviceOpHandler:
        """The handler of a device; without a name that of the inputs' devices."""
        return DeviceOpHandler(self._eager, self._executor, device)

    def chain_of(self, handler: Any) -> LinkedHandler | None:
        """The chain for `handler`: a name, an OpHandler, or a sequence of these. None for the devices' own handlers.

        Raises NotFound for an unknown name, InvalidArgument for another object.
        """
        choice = self._default if handler is None else handler
        if isinstance(choice, str):
            links: tuple[Any, ...] = (choice,) if choice else ()
        else:
            links = tuple(choice) if isinstance(choice, Sequence) else (choice,)
        if not links:
            return None
        key = tuple([link if isinstance(link, str) else id(link) for link in links])
        with self._lock:
            if key not in self._chains:
                self._chains[key] = self._make_chain(links, self.device_handler())
            return self._chains[key]

    def make_chain_over(self, handler: Any, last: OpHandler) -> LinkedHandler | None:
        """A new chain for `handler` in front of `last`, which executes a composite op.

        Raises as `chain_of`, and InvalidArgument for a device.
        """
        choice = self._default if handler is None else handler
        if choice in ("", ()):
            return None
        links = (choice,) if isinstance(choice, str) or not isinstance(choice, Sequence) else tuple(choice)
        return self._make_chain(links, last)

    def _make_chain(self, links: Sequence[Any], last: OpHandler) -> LinkedHandler:
        chain = LinkedHandler("default", last, None)
        for i, link in enumerate(reversed(links)):
            if isinstance(link, str) and ":" in link:
                if not isinstance(last, DeviceOpHandler):
                    raise InvalidArgument(f"the device {link} is no handler of a function: its graph is placed once",
                                          hint=f"choose it where the function is made: device='{link}'")
                name = DeviceName.of_this_process(link).short
                chain = LinkedHandler(name, self.device_handler(name), chain if i else None)
            elif isinstance(link, str):
                chain = LinkedHandler(link, self._handler_factory(link)(self.context, chain), chain)
            elif callable(getattr(link, "make_op", None)):
                chain = LinkedHandler(type(link).__name__, link, chain)
            else:
                raise InvalidArgument(f"handler is a {type(link).__name__}, which has no method make_op",
                                      hint="give a name, an OpHandler, or a list of them")
        return chain

    def _handler_factory(self, name: str) -> Callable[[Any, Any], OpHandler]:
        handlers = self._eager.host.registries.op_handlers
        if name not in handlers:
            similar = closest(name, handlers)
            raise NotFound(f"no op handler is called '{name}'; known: {', '.join(sorted(handlers))}",
                           hint=f"did you mean {similar[0]}?" if similar
                           else "a device's handler has its name: 'CPU:0'")
        return handlers[name].make
