"""States of a handle: Ready metadata of a value, Pending, or Failed.

A handle's first slot holds one of these objects. A Kind is shared by all handles of equal metadata on one device, so
that tables of bound ops find it by identity. A Pending or Failed object is in no such table: a pending handle misses
the fast path without a test for it.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from heald.api import AsyncValue, Device, TensorMetadata, inherited
from heald.errors import HealdError, Location
from heald.runtime.host import Host
from heald.runtime.values import DENSE


class HandleOwner(Protocol):
    """A runtime, as its handles know it."""

    host: Host
    execute: Callable[..., Any]

    def wait(self, state: Pending) -> None:
        """Block until a pending value has come."""

    def array_of(self, state: Ready) -> Any:
        """The array of a device's value: a copy. Waits; raises the error."""

    def copy_to(self, state: Ready | Pending, device: str) -> State:
        """The state of a copy on another device, or the state itself."""

    def to_layout(self, state: Ready | Pending, layout: str) -> State:
        """The state in another layout, or the state itself."""

    def run_memoized(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None) -> Any:
        """The results of a call whose like has succeeded before, else None."""

    def memoize_operator(
        self, symbol: str, op: str, operands: tuple[Any, ...], attrs: Mapping[str, Any] | None
    ) -> None:
        """Let calls of an operator take the short way of its op."""


class Kind:
    """Metadata of a value that is available, and its place.

    `device`: the short name of the device.
    `native`: the device, or None when the value is in host memory.
    `handle`: metadata of the content of a resource, as in ValueInfo.
    `layout`: "dense", "scalar" or "coo". Values outside host memory are dense.
    `owner`: the runtime of the handles.
    """

    __slots__ = ("__weakref__", "device", "handle", "layout", "meta", "native", "owner")

    def __init__(
        self, meta: TensorMetadata, device: str, native: Device | None, handle: tuple[TensorMetadata, ...] | None,
        owner: HandleOwner, layout: str,
    ) -> None:
        self.owner = owner
        self.meta = meta
        self.device = device
        self.native = native
        self.handle = handle
        self.layout = layout


class Kinds:
    """Every Kind in use of one runtime, one object for each metadata and place."""

    def __init__(self, owner: HandleOwner) -> None:
        self._owner = weakref.ref(owner)
        self._kinds: weakref.WeakValueDictionary[Any, Kind] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        inherited.add(self)

    def get(
        self, meta: TensorMetadata, device: str, native: Device | None = None,
        handle: tuple[TensorMetadata, ...] | None = None, layout: str = DENSE,
    ) -> Kind:
        key = meta, device, handle, layout
        with self._lock:
            kind = self._kinds.get(key)
            if kind is None:
                owner = self._owner()
                assert owner is not None
                kind = self._kinds[key] = Kind(meta, device, native, handle, owner, layout)
            return kind

    def forked(self) -> None:
        self._lock = threading.Lock()


class Ready(NamedTuple):
    """An available value: its Kind, and an array, a ScalarTensor, a CooTensor, or a DeviceValue."""

    kind: Kind
    value: Any


class Pending:
    """The state of a value that comes later.

    `meta`: its shape is not static while the metadata is pending, too.
    `value`: its payload will be a Ready.
    `demand`: called when a consumer first needs the value.
    `readers`: an entry for each call that reads the value when it has come.
    """

    __slots__ = ("demand", "device", "meta", "owner", "readers", "value")

    def __init__(
        self, meta: TensorMetadata, device: str, value: AsyncValue, owner: HandleOwner,
        demand: Callable[[], object] | None = None,
    ) -> None:
        self.owner = owner
        self.meta = meta
        self.device = device
        self.value = value
        self.demand = demand
        self.readers: list[None] = []  # a list: threads add to it in one step

    def demanded_value(self) -> AsyncValue:
        """The value, for a consumer that waits for it."""
        if self.demand is not None:
            self.demand()
        return self.value

    def read(self) -> AsyncValue:
        """The value, for a call that reads its payload later. A donation must not overwrite it before."""
        self.readers.append(None)
        return self.demanded_value()


class Failed:
    """The state of a value that is an error."""

    __slots__ = ("error",)

    def __init__(self, error: HealdError) -> None:
        self.error = error


State = Ready | Pending | Failed


def settled_state(state: Pending) -> Ready | Failed | None:
    """The state that a pending value has come to, or None while it is pending."""
    value = state.value
    if not value.is_available():
        return None
    error = value.error
    return Failed(error) if error is not None else value.get()


class DeviceWork:
    """Work that is enqueued on a device: one call of an op, or one copy.

    `error`: set by the thread that waits for the device, before `is_done`.
    `inputs`: the work that made the inputs, until this work is done. Events happen in the order of the stream, so the
        errors of inputs are known when this work is done.
    """

    __slots__ = ("error", "inputs", "is_done", "location", "op")

    def __init__(self, op: str, inputs: tuple[DeviceWork, ...], location: Callable[[], Location | None]) -> None:
        self.op = op
        self.inputs = inputs
        self.location = location
        self.error: HealdError | None = None
        self.is_done = False


class DeviceValue:
    """A buffer on a device, and the work that fills it. The buffer is noted for release with the last handle."""

    __slots__ = ("_dropped", "_free", "buffer", "work")

    def __init__(
        self, buffer: Any, work: DeviceWork, free: Callable[[Any], None],
        dropped: deque[tuple[Callable[[Any], None], Any]],
    ) -> None:
        self.buffer = buffer
        self.work = work
        self._free = free
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append((self._free, self.buffer))
