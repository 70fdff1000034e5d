"""States of a handle: Ready metadata of a value, Pending, or Failed.

A handle's first slot holds one of these objects. A Kind is shared by all handles of equal metadata on one device, so
that tables of bound ops find it by identity. A Pending or Failed object is in no such table: a pending handle misses
the fast path without a test for it.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.api import AsyncValue, Device, TensorMetadata, inherited
from heald.errors import HealdError, Location
from heald.runtime.values import DENSE

if TYPE_CHECKING:
    from .core_runtime import CoreRuntime


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
        owner: CoreRuntime, layout: str,
    ) -> None:
        self.owner = owner
        self.meta = meta
        self.device = device
        self.native = native
        self.handle = handle
        self.layout = layout


class Kinds:
    """Every Kind in use of one runtime, one object for each metadata and place."""

    def __init__(self, owner: CoreRuntime) -> None:
        self._owner = weakref.ref(owner)
        self._known: weakref.WeakValueDictionary[Any, Kind] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        inherited.add(self)

    def get(
        self, meta: TensorMetadata, device: str, native: Device | None = None,
        handle: tuple[TensorMetadata, ...] | None = None, layout: str = DENSE,
    ) -> Kind:
        key = meta, device, handle, layout
        with self._lock:
            found = self._known.get(key)
            if found is None:
                owner = self._owner()
                assert owner is not None
                found = self._known[key] = Kind(meta, device, native, handle, owner, layout)
            return found

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
    """

    __slots__ = ("demand", "device", "meta", "owner", "value")

    def __init__(
        self, meta: TensorMetadata, device: str, value: AsyncValue, owner: CoreRuntime,
        demand: Callable[[], object] | None = None,
    ) -> None:
        self.owner = owner
        self.meta = meta
        self.device = device
        self.value = value
        self.demand = demand


class Failed:
    """The state of a value that is an error."""

    __slots__ = ("error",)

    def __init__(self, error: HealdError) -> None:
        self.error = error


State = Ready | Pending | Failed


def settled(state: Pending) -> Ready | Failed | None:
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
