"""Metadata of optionals: variants that hold the components of a value, or none."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import dims_of_rank


@rule("OptionalFromValue")
def from_value(_: Attrs, *_components: ValueInfo) -> ValueInfo:
    return info(dtypes.variant, ())


@rule("OptionalNone")
def none(_: Attrs) -> ValueInfo:
    return info(dtypes.variant, ())


@rule("OptionalHasValue")
def has_value(_: Attrs, optional: ValueInfo) -> ValueInfo:
    dims_of_rank(optional, 0, "optional")
    return info(dtypes.bool_, ())


@rule("OptionalGetValue")
def get_value(attrs: Attrs, optional: ValueInfo) -> tuple[ValueInfo, ...]:
    dims_of_rank(optional, 0, "optional")
    types, shapes = attrs["output_types"], attrs["output_shapes"]
    if len(types) != len(shapes):
        raise InvalidArgument(f"output_types and output_shapes must be equally long, given {len(types)} and "
                              f"{len(shapes)}")
    return tuple(info(dtype, shape) for dtype, shape in zip(types, shapes, strict=True))
