"""Metadata of iterators: elements have the types and shapes that the node states."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import dims_of_rank


def components_of(attrs: Attrs) -> tuple[ValueInfo, ...]:
    """Return the metadata of an element's components. Raises InvalidArgument for more types than shapes, or fewer."""
    types = attrs["Toutput_types"] if "Toutput_types" in attrs else attrs["output_types"]
    shapes = attrs["output_shapes"]
    if len(types) != len(shapes):
        raise InvalidArgument(f"{len(types)} types of components, but {len(shapes)} shapes")
    return tuple(info(dtype, None if shape is None else tuple(shape))
                 for dtype, shape in zip(types, shapes, strict=True))


@rule("IteratorGetNext", "IteratorGetNextSync")
def iterator_get_next(attrs: Attrs, iterator: ValueInfo) -> tuple[ValueInfo, ...]:
    dims_of_rank(iterator, 0, "iterator")
    return components_of(attrs)


@rule("IteratorGetNextAsOptional")
def iterator_get_next_as_optional(attrs: Attrs, iterator: ValueInfo) -> ValueInfo:
    iterator_get_next(attrs, iterator)
    return info(dtypes.variant, ())


@rule("Iterator", "IteratorV2", "AnonymousIterator", "AnonymousIteratorV3", "OneShotIterator")
def iterator(attrs: Attrs) -> ValueInfo:
    components_of(attrs)
    return info(dtypes.resource, ())


@rule("AnonymousIteratorV2")
def iterator_with_deleter(attrs: Attrs) -> tuple[ValueInfo, ValueInfo]:
    return iterator(attrs), info(dtypes.variant, ())


@rule("MakeIterator")
def make_iterator(_: Attrs, dataset: ValueInfo, iterator: ValueInfo) -> tuple[()]:
    dims_of_rank(dataset, 0, "dataset")
    dims_of_rank(iterator, 0, "iterator")
    return ()


@rule("DeleteIterator", "DeleteMemoryCache", "DeleteRandomSeedGenerator", "DeleteSeedGenerator")
def delete_resource(_: Attrs, handle: ValueInfo, deleter: ValueInfo) -> tuple[()]:
    dims_of_rank(handle, 0, "handle")
    dims_of_rank(deleter, 0, "deleter")
    return ()


@rule("IteratorToStringHandle")
def iterator_to_string(_: Attrs, handle: ValueInfo) -> ValueInfo:
    dims_of_rank(handle, 0, "resource_handle")
    return info(dtypes.string, ())


@rule("IteratorFromStringHandle", "IteratorFromStringHandleV2")
def iterator_from_string(attrs: Attrs, text: ValueInfo) -> ValueInfo:
    dims_of_rank(text, 0, "string_handle")
    types, shapes = attrs["output_types"], attrs["output_shapes"]
    if shapes and len(types) != len(shapes):
        raise InvalidArgument(f"If both 'output_types' and 'output_shapes' are set, they must have the same length, "
                              f"given {len(types)} and {len(shapes)}.")
    return info(dtypes.resource, ())
