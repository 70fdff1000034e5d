"""Kernels of queues. If a queue is not known before the run, components are checked at each use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heald.api import AsyncValue, Bind, Kernels, Step, TensorMetadata, dtypes, errors

from ..element_types import Array
from ..resources.handles import from_handle
from ..resources.partial_shape import fits
from ..resources.queue import Close, Dequeue, Enqueue, Queue, copied, no_elements, padded, stacked
from ..resources.queue_order import Element, FifoOrder, Order, PriorityOrder, ShuffledOrder

Run = Callable[..., Any]
PADDING = "PaddingFIFOQueue"
PRIORITY = TensorMetadata(dtypes.int64, ())


def queue(make: Callable[[Bind], Order], *first: TensorMetadata) -> Callable[[Bind], Run]:
    """The bind function of a queue that the session owns. `first`: components in front of the attributes' ones."""

    def bind(b: Bind) -> Run:
        kind, capacity, types = b.op.removesuffix("V2"), b.attrs["capacity"], b.attrs["component_types"]
        shapes = b.attrs["shapes"] or [None] * len(types)
        metas = (*first, *map(TensorMetadata, types, shapes))
        mine = b.resource("queue", lambda: Queue(kind, b.attrs["shared_name"] or b.node, metas, capacity, make(b)))
        if (mine.kind, mine.metas) != (kind, metas) or mine.capacity != (capacity if capacity >= 0 else mine.capacity):
            raise errors.InvalidArgument(f"{mine.title} has the components {list(mine.metas)} and capacity "
                                         f"{mine.capacity}, asked for as a {kind} of {list(metas)} and {capacity}")
        return lambda out: out.fill(mine)

    return bind


def shuffled(b: Bind) -> Order:
    return ShuffledOrder(b.attrs["min_after_dequeue"], b.attrs["seed"], b.attrs["seed2"])


def enqueue(b: Bind) -> Run:
    def run(step: Step, handle: Array, *components: Array) -> AsyncValue:
        mine = _queue(b, handle, "Tcomponents", [x.shape for x in components])
        return mine.bring(step, Enqueue([tuple(x.copy() for x in components)]))

    return run


def enqueue_many(b: Bind) -> Run:
    def run(step: Step, handle: Array, *components: Array) -> AsyncValue | None:
        mine = _queue(b, handle, "Tcomponents", [x.shape[1:] for x in components])
        return mine.bring(step, Enqueue(zip(*map(copied, components), strict=True))) if len(components[0]) else None

    return run


def dequeue(b: Bind) -> Run:
    def run(step: Step, handle: Array) -> list[AsyncValue]:
        mine = _queue(b, handle, "component_types")
        return mine.take(step, Dequeue(1, _only, len(mine.metas)))

    return run


def _only(elements: list[Element]) -> Element:
    return elements[0]


def dequeue_several(*, may_be_fewer: bool) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        def run(step: Step, handle: Array, n: Array) -> Sequence[AsyncValue | Array]:
            mine = _queue(b, handle, "component_types")
            if any(meta.shape is None for meta in mine.metas):
                raise errors.InvalidArgument(f"{mine.kind}'s DequeueMany and DequeueUpTo require the components to "
                                             "have specified shapes.")
            if not n:
                return no_elements(mine.metas)
            together = padded if mine.kind == PADDING else stacked
            return mine.take(step, Dequeue(int(n), together, len(mine.metas), may_be_fewer=may_be_fewer))

        return run

    return bind


def _queue(b: Bind, handle: Array, attribute: str, shapes: Sequence[tuple[int, ...]] | None = None) -> Queue:
    """The queue of a handle. Raises InvalidArgument where its components have other dtypes or shapes."""
    mine = from_handle(handle, Queue)
    if b.inputs[0].handle is None:
        types = [meta.dtype for meta in mine.metas]
        if types != list(b.attrs[attribute]):
            raise errors.InvalidArgument(f"the components of {mine.title} are {types}, not {list(b.attrs[attribute])}")
        for number, (meta, shape) in enumerate(zip(mine.metas, shapes or (), strict=False)):
            if not fits(shape, meta.shape):
                raise errors.InvalidArgument(f"Shape mismatch in tuple component {number}. Expected {meta.shape}, got "
                                             f"{shape}")
    return mine


def close(b: Bind) -> Run:
    cancels = b.attrs["cancel_pending_enqueues"]

    def run(step: Step, handle: Array) -> AsyncValue:
        mine = from_handle(handle, Queue)
        return mine.close_now() if cancels else mine.bring(step, Close())

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("FIFOQueueV2")(queue(lambda _: FifoOrder()))
    kernels.kernel("PaddingFIFOQueueV2")(queue(lambda _: FifoOrder()))
    kernels.kernel("RandomShuffleQueueV2")(queue(shuffled))
    kernels.kernel("PriorityQueueV2")(queue(lambda _: PriorityOrder(), PRIORITY))
    for op, bind in {
        "QueueEnqueueV2": enqueue, "QueueEnqueueManyV2": enqueue_many, "QueueDequeueV2": dequeue,
        "QueueDequeueManyV2": dequeue_several(may_be_fewer=False),
        "QueueDequeueUpToV2": dequeue_several(may_be_fewer=True), "QueueCloseV2": close,
    }.items():
        kernels.kernel(op, asynchronous=True, step=True)(bind)
    kernels.kernel("QueueSizeV2")(lambda _: lambda handle, out: out.fill(len(from_handle(handle, Queue).order)))
    kernels.kernel("QueueIsClosedV2")(lambda _: lambda handle, out: out.fill(from_handle(handle, Queue).is_closed))
