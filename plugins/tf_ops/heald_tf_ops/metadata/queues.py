"""Metadata of ops on queues.

A handle carries the types and shapes of an element's components, if the op that made it gives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heald.api import Attrs, DType, InvalidArgument, Shape, TensorMetadata, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import dims_of_rank, same_dim, same_shape, single_integer

PRIORITY = TensorMetadata(dtypes.int64, ())


@rule("FIFOQueueV2")
def fifo_queue(attrs: Attrs) -> ValueInfo:
    return _handle(_whole(_components(attrs)))


@rule("RandomShuffleQueueV2")
def random_shuffle_queue(attrs: Attrs) -> ValueInfo:
    floor, capacity = attrs["min_after_dequeue"], attrs["capacity"]
    if floor < 0 or 0 <= capacity <= floor:
        raise InvalidArgument(f"min_after_dequeue {floor} must be at least 0 and less than the capacity {capacity}")
    return fifo_queue(attrs)


@rule("PriorityQueueV2")
def priority_queue(attrs: Attrs) -> ValueInfo:
    return _handle((PRIORITY, *_whole(_components(attrs))))


@rule("PaddingFIFOQueueV2")
def padding_fifo_queue(attrs: Attrs) -> ValueInfo:
    components = _components(attrs)
    if any(component.shape is None for component in components):
        raise InvalidArgument("a PaddingFIFOQueue needs the rank of each component")
    return _handle(components)


def _components(attrs: Attrs) -> tuple[TensorMetadata, ...]:
    types, shapes = attrs["component_types"], attrs["shapes"]
    if shapes and len(shapes) != len(types):
        raise InvalidArgument(f"{len(types)} component types, but {len(shapes)} shapes")
    return tuple(TensorMetadata(t, None if s is None else tuple(s))
                 for t, s in zip(types, shapes or [None] * len(types), strict=True))


def _whole(components: tuple[TensorMetadata, ...]) -> tuple[TensorMetadata, ...]:
    for component in components:
        if component.shape is not None and not component.is_static:
            raise InvalidArgument(f"the shape {shape_text(component.shape)} of a component is not fully defined")
    return components


def _handle(components: tuple[TensorMetadata, ...]) -> ValueInfo:
    return ValueInfo(TensorMetadata(dtypes.resource, ()), handle=components)


@rule("QueueEnqueueV2")
def queue_enqueue(attrs: Attrs, x: ValueInfo, *components: ValueInfo) -> tuple[()]:
    _check(attrs, x, attrs["Tcomponents"], [component.shape for component in components])
    return ()


@rule("QueueEnqueueManyV2")
def queue_enqueue_many(attrs: Attrs, x: ValueInfo, *components: ValueInfo) -> tuple[()]:
    shapes: list[Shape] = []
    count = None
    for number, component in enumerate(components):
        shape = component.shape
        if shape == ():
            raise InvalidArgument(f"component {number} of several elements is a scalar, and must have an axis of them")
        count = same_dim(count, None if shape is None else shape[0], "the numbers of elements of all components")
        shapes.append(None if shape is None else shape[1:])
    _check(attrs, x, attrs["Tcomponents"], shapes)
    return ()


@rule("QueueDequeueV2")
def queue_dequeue(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    types = attrs["component_types"]
    return tuple(map(ValueInfo, _check(attrs, x, types, [None] * len(types))))


@rule("QueueDequeueManyV2", values=("n",))
def queue_dequeue_many(attrs: Attrs, x: ValueInfo, n: ValueInfo) -> tuple[ValueInfo, ...]:
    return _several(attrs, x, n, single_integer(n, "n"))


@rule("QueueDequeueUpToV2", values=("n",))
def queue_dequeue_up_to(attrs: Attrs, x: ValueInfo, n: ValueInfo) -> tuple[ValueInfo, ...]:
    return _several(attrs, x, n, None)


def _several(attrs: Attrs, x: ValueInfo, n: ValueInfo, lead: int | None) -> tuple[ValueInfo, ...]:
    """Return the components of `n` elements that are taken at once. `lead`: the first dimension of each."""
    count = single_integer(n, "n")
    if count is not None and count < 0:
        raise InvalidArgument(f"{count} elements are asked of a queue, where 0 are the fewest")
    types = attrs["component_types"]
    components = _check(attrs, x, types, [None] * len(types))
    if x.handle and any(component.shape is None for component in components):
        raise InvalidArgument("a queue gives several elements at once only where it was told the components' shapes")
    return tuple(info(c.dtype, None if c.shape is None else (lead, *c.shape)) for c in components)


def _check(
    attrs: Attrs, x: ValueInfo, types: Sequence[DType], shapes: Sequence[Shape]
) -> tuple[TensorMetadata, ...]:
    """Return the components' metadata, merged from the queue's handle and these types and shapes.

    Raises InvalidArgument when the handle contradicts them.
    """
    dims_of_rank(x, 0, "the handle of a queue")
    if attrs["timeout_ms"] != -1:
        raise InvalidArgument("an op of a queue has no timeout of its own: timeout_ms must be -1",
                              hint="give the run one: RunOptions(timeout=)")
    if not x.handle:
        return tuple(map(TensorMetadata, types, shapes))
    if [component.dtype for component in x.handle] != list(types):
        raise InvalidArgument(f"the components of the queue's elements are {_names(c.dtype for c in x.handle)}, not "
                              f"{_names(types)}")
    return tuple(
        TensorMetadata(c.dtype, same_shape((c.shape, shape), f"component {number} does not fit the queue"))
        for number, (c, shape) in enumerate(zip(x.handle, shapes, strict=True)))


def _names(types: Iterable[DType]) -> str:
    return ", ".join(t.name for t in types)


@rule("QueueCloseV2")
def queue_close(_: Attrs, x: ValueInfo) -> tuple[()]:
    dims_of_rank(x, 0, "the handle of a queue")
    return ()


@rule("QueueSizeV2")
def queue_size(_: Attrs, x: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a queue")
    return info(dtypes.int32, ())


@rule("QueueIsClosedV2")
def queue_is_closed(_: Attrs, x: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a queue")
    return info(dtypes.bool_, ())
