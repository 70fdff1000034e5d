"""Planted faults: a kernel that raises, and methods of the device that fail for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import heald
from heald.api import API, Bind, Kernels, Node, OpSpec, dtypes, hookimpl

from .subject import Subject
from .verdict import NotApplicable

OP = "HealdConformance>Fail"
MESSAGE = "this kernel always fails"
_registered: set[tuple[str, object, str]] = set()  # device types, runtimes and ops whose kernel is registered


class Fault(Exception):
    """The exception of a planted fault. It is unknown to heald, as a driver's own exceptions are."""


def failing_node(on: Subject, name: str, source: str) -> Node:
    """A node on the device whose kernel raises Fault when it is launched."""

    def run(*_buffers: Any) -> None:
        raise Fault(MESSAGE)

    register_op(on, OP, lambda _: run)
    return Node(name, OP, [source], attrs={"T": dtypes.float32}, device=on.name)


def register_op(on: Subject, op: str, bind: Callable[[Bind], Callable[..., None]]) -> None:
    """Register an op of one input and one output with this kernel for the device's type, once for each runtime."""
    runtime = on.here.runtime
    if (on.type, runtime, op) not in _registered:
        (heald.register if runtime is None else runtime.plugins.register)(_plugin(on.type, op, bind))
        _registered.add((on.type, runtime, op))


@contextmanager
def failing(on: Subject, method: str, instead: Callable[..., Any]) -> Iterator[None]:
    """Replace a method of the device, and `wrap`, by which the runtime would avoid some copies.

    Raises NotApplicable where the runtime would not call the method.
    """
    if on.host_visible:
        raise NotApplicable("the runtime uses its memory as host memory, and calls none of its methods for that")
    with replace_methods(on, {"wrap": nothing, method: instead}):
        yield


@contextmanager
def replace_methods(on: Subject, methods: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """Replace methods of the device. Raises NotApplicable for an object without a `__dict__`."""
    if not hasattr(on.device, "__dict__"):
        raise NotApplicable("its methods cannot be replaced: the object has no __dict__")
    vars(on.device).update(methods)
    try:
        yield
    finally:
        for method in methods:
            del vars(on.device)[method]


def nothing(_host: Any) -> None:
    return None


def raising(*_arguments: Any) -> Any:
    raise Fault("the device is made to fail")


def _plugin(device_type: str, op: str, bind: Callable[[Bind], Callable[..., None]]) -> ModuleType:
    """A plugin with a failing op, and the op's kernel for this device type."""
    module = ModuleType(f"heald_conformance_{op.partition('>')[2].lower()}_{device_type.lower()}")

    def register(kernels: Kernels) -> None:
        kernels.kernel(op)(bind)

    @hookimpl
    def heald_ops(registry: Any) -> None:
        registry.add(OpSpec(op, ["x: T"], ["y: T"], ["T: type"], metadata=lambda _attrs, x: x))

    @hookimpl
    def heald_kernels(registry: Any) -> None:
        registry.kernels(device_type, register)

    vars(module).update(HEALD_API=API, heald_ops=heald_ops, heald_kernels=heald_kernels)
    return module
