"""Casts between float32 and bfloat16. Numbers below the smallest normal one may become 0."""

from __future__ import annotations

from collections.abc import Collection

from heald.api import Bind, Kernels, errors

from ..memory import dense
from ..primitives import RESULT, SOURCE, Primitive, reorder_description
from .binding import check_elements, declining

SMALLEST_ELEMENTS = 1 << 13  # elements from which NumPy's call is not cheaper


def cast(b: Bind) -> Primitive:
    check_elements(b.outputs[0].dims)
    size = b.outputs[0].size
    if size < SMALLEST_ELEMENTS:
        raise errors.Unimplemented("NumPy's call is cheaper for so few elements")
    source, result = dense((size,), b.inputs[0].meta.dtype), dense((size,), b.outputs[0].dtype)
    return Primitive(reorder_description(source, result), {SOURCE: (source, 0), RESULT: (result, 1)})


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    """Register casts between the first of `types`, the widest, and the others."""
    widest, *others = types
    if others:
        kernels.kernel("Cast", dtypes={"SrcT": others, "DstT": widest})(declining(cast))
        kernels.kernel("Cast", dtypes={"SrcT": widest, "DstT": others})(declining(cast))
