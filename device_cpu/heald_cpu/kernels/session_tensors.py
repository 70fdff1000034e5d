"""Kernels of tensors that a session keeps from run to run. A session has one store, whatever nodes use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.api import Bind, Kernels

from ..resources.handles import to_handle
from ..resources.session_tensors import SessionTensors

Run = Callable[..., Any]
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"  # the part of a handle that TensorFlow's clients read


def store_of(b: Bind) -> SessionTensors:
    """The session's store, which `Session.reset` drops with the container without a name."""
    store = b.keep("session tensors", SessionTensors, "")
    assert isinstance(store, SessionTensors)
    return store


def keep_tensor(b: Bind) -> Run:
    store, node, dtype = store_of(b), b.node, b.attrs["T"]
    return lambda value: to_handle(store.add(node, DEVICE, dtype, value.copy()))


def get_tensor(b: Bind) -> Run:
    store, dtype = store_of(b), b.attrs["dtype"]
    return lambda handle: store.get(handle.item(), dtype).copy()


def delete_tensor(b: Bind) -> Run:
    store = store_of(b)
    return lambda handle: store.delete(handle.item())


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"GetSessionHandle": keep_tensor, "GetSessionHandleV2": keep_tensor,
                     "GetSessionTensor": get_tensor}.items():
        kernels.kernel(op, allocates=True)(bind)
    kernels.kernel("DeleteSessionTensor")(delete_tensor)
