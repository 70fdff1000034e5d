"""Kernels of queues. If a queue is not known before the run, components are checked at each use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heald.api import AsyncValue, Bind, Kernels, Step, TensorMetadata, dtypes, errors

from ..element_types import Array
from ..resources.handles import from_handle
from ..resources.partial_shape import fits
from ..resources.queue import (
    Close,
    Dequeue,
    Enqueue,
    Queue,
    copies_of_parts,
    no_elements,
    pad_components,
    stack_components,
)
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
        queue = b.resource("queue", lambda: Queue(kind, b.attrs["shared_name"] or b.node, metas, capacity, make(b)))
        same_capacity = capacity < 0 or queue.capacity == capacity
        if (queue.kind, queue.metas) != (kind, metas) or not same_capacity:
            raise errors.InvalidArgument(f"{queue.title} has the components {list(queue.metas)} and capacity "
                                         f"{queue.capacity}, asked for as a {kind} of {list(metas)} and {capacity}")
        return lambda out: out.fill(queue)

    return bind


def shuffled_order(b: Bind) -> Order:
    return ShuffledOrder(b.attrs["min_after_dequeue"], b.attrs["seed"], b.attrs["seed2"])


def enqueue(b: Bind) -> Run:
    def run(step: Step, handle: Array, *components: Array) -> AsyncValue:
        queue = _queue(b, handle, "Tcomponents", [x.shape for x in components])
        return queue.bring(step, Enqueue([tuple(x.copy() for x in components)]))

    return run


def enqueue_many(b: Bind) -> Run:
    def run(step: Step, handle: Array, *components: Array) -> AsyncValue | None:
        queue = _queue(b, handle, "Tcomponents", [x.shape[1:] for x in components])
        if not len(components[0]):
            return None
        return queue.bring(step, Enqueue(zip(*map(copies_of_parts, components), strict=True)))

    return run


def dequeue(b: Bind) -> Run:
    def run(step: Step, handle: Array) -> list[AsyncValue]:
        queue = _queue(b, handle, "component_types")
        return queue.take(step, Dequeue(1, _only, len(queue.metas)))

    return run


def _only(elements: list[Element]) -> Element:
    return elements[0]


def dequeue_several(*, may_be_fewer: bool) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        def run(step: Step, handle: Array, n: Array) -> Sequence[AsyncValue | Array]:
            queue = _queue(b, handle, "component_types")
            if any(meta.shape is None for meta in queue.metas):
                raise errors.InvalidArgument(f"{queue.kind}'s DequeueMany and DequeueUpTo require the components to "
                                             "have specified shapes.")
            if not n:
                return no_elements(queue.metas)
            together = pad_components if queue.kind == PADDING else stack_components
            return queue.take(step, Dequeue(int(n), together, len(queue.metas), may_be_fewer=may_be_fewer))

        return run

    return bind


def _queue(b: Bind, handle: Array, attribute: str, shapes: Sequence[tuple[int, ...]] | None = None) -> Queue:
    """The queue of a handle. Raises InvalidArgument where its components have other dtypes or shapes."""
    queue = from_handle(handle, Queue)
    if b.inputs[0].handle is None:
        types = [meta.dtype for meta in queue.metas]
        if types != list(b.attrs[attribute]):
            raise errors.InvalidArgument(f"the components of {queue.title} are {types}, not {list(b.attrs[attribute])}")
        for number, (meta, shape) in enumerate(zip(queue.metas, shapes or (), strict=False)):
            if not fits(shape, meta.shape):
                raise errors.InvalidArgument(f"Shape mismatch in tuple component {number}. Expected {meta.shape}, got "
                                             f"{shape}")
    return queue


def close(b: Bind) -> Run:
    cancels = b.attrs["cancel_pending_enqueues"]

    def run(step: Step, handle: Array) -> AsyncValue:
        queue = from_handle(handle, Queue)
        return queue.close_now() if cancels else queue.bring(step, Close())

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("FIFOQueueV2")(queue(lambda _: FifoOrder()))
    kernels.kernel("PaddingFIFOQueueV2")(queue(lambda _: FifoOrder()))
    kernels.kernel("RandomShuffleQueueV2")(queue(shuffled_order))
    kernels.kernel("PriorityQueueV2")(queue(lambda _: PriorityOrder(), PRIORITY))
    for op, bind in {
        "QueueEnqueueV2": enqueue, "QueueEnqueueManyV2": enqueue_many, "QueueDequeueV2": dequeue,
        "QueueDequeueManyV2": dequeue_several(may_be_fewer=False),
        "QueueDequeueUpToV2": dequeue_several(may_be_fewer=True), "QueueCloseV2": close,
    }.items():
        kernels.kernel(op, asynchronous=True, step=True)(bind)
    kernels.kernel("QueueSizeV2")(lambda _: lambda handle, out: out.fill(len(from_handle(handle, Queue).order)))
    kernels.kernel("QueueIsClosedV2")(lambda _: lambda handle, out: out.fill(from_handle(handle, Queue).is_closed))
