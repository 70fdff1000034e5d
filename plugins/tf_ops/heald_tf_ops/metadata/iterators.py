"""Metadata of iterators: elements have the types and shapes that the node states. A user feeds them."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, TensorMetadata, ValueInfo

from .rules import rule


@rule("IteratorGetNext")
@rule("IteratorGetNextSync")
def iterator_get_next(attrs: Attrs, _: ValueInfo) -> tuple[ValueInfo, ...]:
    types, shapes = attrs["output_types"], attrs["output_shapes"]
    if len(types) != len(shapes):
        raise InvalidArgument(f"{len(types)} types of components, but {len(shapes)} shapes")
    return tuple(ValueInfo(TensorMetadata(dtype, None if shape is None else tuple(shape)))
                 for dtype, shape in zip(types, shapes, strict=True))
