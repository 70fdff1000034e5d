"""Casts between float32 and bfloat16. Numbers below the smallest normal one may become 0."""

from __future__ import annotations

from collections.abc import Collection

from heald.api import Bind, Kernels, errors

from ..memory import dense
from ..primitives import RESULT, SOURCE, Primitive, reordered
from .binding import declining, has_elements

LEAST = 1 << 13  # elements from which NumPy's call is not cheaper


def cast(b: Bind) -> Primitive:
    has_elements(b.outputs[0].dims)
    size = b.outputs[0].size
    if size < LEAST:
        raise errors.Unimplemented("NumPy's call is cheaper for so few elements")
    source, result = dense((size,), b.inputs[0].meta.dtype), dense((size,), b.outputs[0].dtype)
    return Primitive(reordered(source, result), {SOURCE: (source, 0), RESULT: (result, 1)})


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    """Register casts between the first of `types`, the widest, and the others."""
    widest, *others = types
    if others:
        kernels.kernel("Cast", dtypes={"SrcT": others, "DstT": widest})(declining(cast))
        kernels.kernel("Cast", dtypes={"SrcT": widest, "DstT": others})(declining(cast))
