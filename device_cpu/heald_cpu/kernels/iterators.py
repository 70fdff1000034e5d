"""Kernels of iterators. An iterator of a name, or of a node, belongs to the session; an anonymous one to its run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any
from weakref import WeakValueDictionary

from heald.api import AsyncValue, Bind, Kernels, Step, errors, run_or_promise

from ..datasets.interface import Spec, check_element, check_spec, dataset_of
from ..datasets.iterator_resource import IteratorResource, next_element
from ..element_types import Array
from ..resources.handles import from_handle, to_handle
from .optionals import Optional

Run = Callable[..., Any]
START = "run the MakeIterator of the iterator first"
Registry = WeakValueDictionary[bytes, IteratorResource]


def spec_of(b: Bind) -> Spec:
    """The types and shapes of elements that a node states."""
    types, shapes = b.attrs["output_types"], b.attrs["output_shapes"]
    if len(types) != len(shapes):
        raise errors.InvalidArgument(f"{len(types)} types of components, but {len(shapes)} shapes")
    return Spec(types, shapes)


def iterator(b: Bind) -> Run:
    spec = spec_of(b)
    resource = b.resource("iterator", lambda: IteratorResource(spec))
    if resource.spec is not None:
        check_spec(resource.spec, spec)
    return lambda out: out.fill(resource)


def anonymous_iterator(b: Bind) -> Run:
    spec = spec_of(b)

    def run(out: Array, *deleter: Array) -> None:
        out.fill(IteratorResource(spec))
        for variant in deleter:
            variant.fill(None)

    return run


def make_iterator(_: Bind) -> Run:
    return lambda dataset, handle: from_handle(handle, IteratorResource).start(dataset_of(dataset))


def get_next(b: Bind) -> Run:
    spec = spec_of(b)
    feeds = [f"'{b.node}:{output}'" for output in sorted(b.needed)]
    remedy = f"{START}, or feed {', '.join(feeds)}"

    def run(step: Step, handle: Array) -> list[Any]:
        element = next_element(from_handle(handle, IteratorResource), spec, step, remedy)
        return run_or_promise(step, element, len(spec.types))

    return run


def get_next_as_optional(b: Bind) -> Run:
    spec = spec_of(b)

    def run(step: Step, handle: Array) -> list[Any]:
        return run_or_promise(step, _optional(from_handle(handle, IteratorResource), spec, step), 1)

    return run


def _optional(resource: IteratorResource, spec: Spec, step: Step) -> Generator[list[AsyncValue], None, list[Array]]:
    element = yield from resource.pull(step, START)
    if element is not None:
        check_element(spec, element)
    return [to_handle(Optional(element))]


def to_string(b: Bind) -> Run:
    registry = _registry(b)

    def run(handle: Array, out: Array) -> None:
        resource = from_handle(handle, IteratorResource)
        name = resource.name.encode()
        registry[name] = resource
        out.fill(name)

    return run


def from_string(b: Bind) -> Run:
    registry, types, shapes = _registry(b), b.attrs["output_types"], b.attrs["output_shapes"]

    def run(text: Array, out: Array) -> None:
        resource = registry.get(text.item())
        if resource is None:
            raise errors.NotFound(f"this session has no iterator of the string handle {text.item()!r}")
        if types and resource.spec is not None:
            check_spec(Spec(types, shapes or (None,) * len(types)), resource.spec)
        out.fill(resource)

    return run


def _registry(b: Bind) -> Registry:
    """The session's iterators that were asked for a string handle."""
    registry: Registry = b.keep("iterators by string handle", WeakValueDictionary, None)
    return registry


def delete(_: Bind) -> Run:
    return lambda handle, _deleter: from_handle(handle, IteratorResource).stop()


def register_kernels(kernels: Kernels) -> None:
    for op in ("Iterator", "IteratorV2"):
        kernels.kernel(op)(iterator)
    for op in ("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"):
        kernels.kernel(op)(anonymous_iterator)
    kernels.kernel("MakeIterator")(make_iterator)
    for op in ("IteratorGetNext", "IteratorGetNextSync"):
        kernels.kernel(op, asynchronous=True, step=True)(get_next)
    kernels.kernel("IteratorGetNextAsOptional", asynchronous=True, step=True)(get_next_as_optional)
    kernels.kernel("IteratorToStringHandle")(to_string)
    for op in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
        kernels.kernel(op)(from_string)
    kernels.kernel("DeleteIterator")(delete)
