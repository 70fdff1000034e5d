"""Concatenation."""

from __future__ import annotations

from collections.abc import Collection

from heald.api import Bind, Kernels, errors

from ..attributes import attributes
from ..library import library
from ..memory import Layout, Operand, row_major
from ..primitives import RESULT, Primitive, describe_primitive
from .binding import check_elements, declining

FIRST_OF_MANY = 1024  # argument number of the first operand, for primitives with any number of operands
# elements from which NumPy's call is not cheaper in a network, whose data are in the cores' caches
SMALLEST_ELEMENTS = 1 << 15


def concat(b: Bind) -> Primitive:
    *arrays, axis = b.inputs
    shape = b.outputs[0].dims
    assert axis.value is not None
    check_elements(*(x.meta.dims for x in arrays))
    if b.outputs[0].size < SMALLEST_ELEMENTS:
        raise errors.Unimplemented("NumPy's call is cheaper for so few elements")
    layouts = [row_major(x.meta.dims, x.meta.dtype) for x in arrays]
    result = row_major(shape, b.outputs[0].dtype)
    description = describe_primitive(
        library().c.dnnl_concat_primitive_desc_create, result.descriptor, len(arrays),
        int(axis.value.reshape(-1)[0]) % len(shape), [layout.descriptor for layout in layouts], attributes(),
    )
    operands: dict[int, tuple[Layout, Operand]] = {FIRST_OF_MANY + i: (layout, i) for i, layout in enumerate(layouts)}
    return Primitive(description, operands | {RESULT: (result, len(b.inputs))})


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    kernels.kernel("ConcatV2", dtypes={"T": types})(declining(concat))
