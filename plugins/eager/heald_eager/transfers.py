"""Transfers: asynchronous copies of values between host memory and devices, and the end of a device's work."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from heald.api import AsyncValue, Device, inherited
from heald.errors import HealdError, InvalidArgument
from heald.runtime.values import COO

from .context import EagerContext
from .handle_state import DeviceValue, DeviceWork, Failed, Pending, Ready, State
from .layouts import dense
from .queued_call import QueuedCall
from .source_line import no_location, report_error


class Transfers:
    """The copies of one context. Any thread may call.

    `enqueuing`: held from the launch of a call to the event behind it, so that an event's error is that call's.
    """

    def __init__(self, context: EagerContext) -> None:
        self._context = context
        self.enqueuing = threading.RLock()
        self._running: dict[int, DeviceWork] = {}  # by id: enqueued, and not done
        inherited.add(self)

    def forked(self) -> None:
        self.enqueuing = threading.RLock()

    def to_device(self, state: Ready, device: Device, name: str) -> Ready:
        """Enqueue a copy of an array, which must not change. Raises ResourceExhausted, InvalidArgument for elements
        without a fixed size, and the errors of the device."""
        context, meta = self._context, state.kind.meta
        if state.kind.layout == COO:
            raise InvalidArgument(f"a sparse tensor of {meta} stays in host memory", device=name,
                                  hint=f"convert it first: x.to_dense().to('{name}')")
        state = dense(context, state)
        if not meta.dtype.itemsize:
            raise InvalidArgument(f"a tensor of {meta} has no fixed element size: it stays in host memory",
                                  device=name)
        memory = context.host.device_memory
        context.host.check((device,))
        work = DeviceWork("a copy", (), no_location)
        with self.enqueuing:
            buffer = memory.enter(device, state.value, "an input")
            value = DeviceValue(buffer, work, device.free, memory.dropped)
            self.watch(work, device, name, (state.value, value))
        return Ready(context.kinds.get(meta, name, device), value)

    def to_host(self, state: Ready) -> Pending:
        """Enqueue a copy of a device's value into a new array."""
        context, kind, source = self._context, state.kind, state.value
        device, meta = kind.native, kind.meta
        assert device is not None
        promise = context.promises.make()
        result = context.pending_state(meta, context.default_device, promise.value)
        array = context.host.memory.maker(meta.dims, meta.dtype.numpy, "a copy")()
        with self.enqueuing:
            copied = context.host.waiter(device).leave(source.buffer, array)
        target = context.kinds.get(meta, context.default_device)

        def settle() -> None:
            error = source.work.error or copied.error
            if error is not None and error is not source.work.error:
                error = error.at(device=kind.device, location=source.work.location())
                context.host.note_failure(device, error)
            promise.settle(Ready(target, array) if error is None else Failed(error))

        copied.and_then(settle)
        return result

    def move(self, state: State, device: str) -> State:
        """Return the state of a copy on another device, by its short name. Raises as `to_device`, and NotFound and
        Unavailable for the device."""
        context = self._context
        target = context.host.open(device)
        native = None if target.attributes.get("host_visible") else target
        if isinstance(state, Failed):
            return state
        if isinstance(state, Ready):
            if state.kind.device == device:
                return state
            if native is None and state.kind.native is None:
                return Ready(context.kinds.get(state.kind.meta, device, None, state.kind.handle,
                                               state.kind.layout), state.value)
            if state.kind.native is None:
                assert native is not None
                return self.to_device(state, native, device)
            state = self.to_host(state)
            if native is None and device == context.default_device:
                return state
        need = state.read()
        call = QueuedCall(context, (need,), (state.meta,), device,
                          lambda: ([self.move(Ready(*need.get()), device)], None), _same_error)
        return call.results[0]

    def watch(self, work: DeviceWork, device: Device, name: str, buffers: Any) -> None:
        """Complete `work` when the device has done all that is enqueued so far. `buffers` live until then."""
        self._running[id(work)] = work
        reached = self._context.host.waiter(device).reach()
        reached.and_then(partial(self._complete, work, device, name, reached, buffers))

    def cancel(self, error: HealdError) -> None:
        """Give the error to all work that is not done."""
        for work in list(self._running.values()):
            work.error = work.error or error

    def _complete(self, work: DeviceWork, device: Device, name: str, reached: AsyncValue, _buffers: Any) -> None:
        self._running.pop(id(work), None)
        device_error = reached.error
        input_error = next((source.error for source in work.inputs if source.error is not None), None)
        if work.error is None and input_error is not None:
            work.error = input_error
        elif work.error is None and device_error is not None:
            work.error = device_error.at(op=work.op, device=name, location=work.location())
            self._context.host.note_failure(device, work.error)
            report_error(self._context.host, work.location, work.error)
        work.inputs = ()
        work.is_done = True


def _same_error(error: HealdError) -> HealdError:
    return error
