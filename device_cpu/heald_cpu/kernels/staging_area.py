"""Kernels of staging areas: buffers of tuples between steps, on the queues of `resources`. An area has no handle: the
ops of one area have its name and container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.api import AsyncValue, Bind, Kernels, Step, TensorMetadata, errors

from ..element_types import Array
from ..resources.queue import Dequeue, Enqueue, Peek, Queue
from ..resources.queue_order import Element, FifoOrder

Run = Callable[..., Any]
KIND = "StagingArea"


def area(b: Bind) -> Queue:
    """The session's area for this node. Raises InvalidArgument for one of other dtypes or capacity, Unimplemented for
    a limit of memory."""
    if b.attrs["memory_limit"]:
        raise errors.Unimplemented(f"a staging area has no limit of memory, given memory_limit "
                                   f"{b.attrs['memory_limit']}", hint="limit the number of elements: capacity")
    metas = tuple(TensorMetadata(dtype, None) for dtype in b.attrs["dtypes"])
    name, capacity = b.attrs["shared_name"] or b.node, b.attrs["capacity"] or -1
    staging_area = b.resource("staging area", lambda: Queue(KIND, name, metas, capacity, FifoOrder()))
    if staging_area.metas != metas:
        raise errors.InvalidArgument(f"{staging_area.title} has the dtypes "
                                     f"{[meta.dtype.name for meta in staging_area.metas]}, used with "
                                     f"{[meta.dtype.name for meta in metas]}")
    return staging_area


def stage(b: Bind) -> Run:
    staging_area = area(b)

    def run(step: Step, *values: Array) -> AsyncValue:
        return staging_area.bring(step, Enqueue([tuple(value.copy() for value in values)]))

    return run


def unstage(b: Bind) -> Run:
    staging_area = area(b)
    return lambda step: staging_area.take(step, Dequeue(1, _only, len(staging_area.metas)))


def peek(b: Bind) -> Run:
    staging_area = area(b)

    def run(step: Step, index: Array) -> list[AsyncValue]:
        if index < 0:
            raise errors.InvalidArgument(f"the index of an element is {int(index)}, where 0 is the first")
        return staging_area.take(step, Peek(int(index), len(staging_area.metas)))

    return run


def _only(elements: list[Element]) -> Element:
    return elements[0]


def size(b: Bind) -> Run:
    staging_area = area(b)
    return lambda out: out.fill(len(staging_area.order))


def clear(b: Bind) -> Run:
    staging_area = area(b)
    return lambda step: staging_area.clear()


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"Stage": stage, "Unstage": unstage, "StagePeek": peek, "StageClear": clear}.items():
        kernels.kernel(op, asynchronous=True, step=True)(bind)
    kernels.kernel("StageSize")(size)
