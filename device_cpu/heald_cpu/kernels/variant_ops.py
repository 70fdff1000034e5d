"""AddN and ZerosLike of variants: tensor lists, element by element, and the 0 of an empty variant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, dtypes, errors, shape_text

from ..element_types import NUMBERS, Array, zeros
from ..resources.partial_shape import agreed_shape
from ..resources.tensor_list import Cell, TensorList


def add_n(_: Bind) -> Callable[..., None]:
    def run(first: Array, *others_and_out: Array) -> None:
        *others, out = others_and_out
        total = first[()]
        for other in others:
            total = _sum(total, other[()])
        out.fill(total)

    return run


def zeros_like(_: Bind) -> Callable[..., None]:
    return lambda x, out: out.fill(_zero(x[()]))


def _sum(a: Any, z: Any) -> Any:
    if isinstance(a, TensorList) and isinstance(z, TensorList):
        return _sum_of_lists(a, z)
    if isinstance(a, int) and isinstance(z, int):
        return a + z
    raise errors.InvalidArgument(f"variants cannot be added: a {type(a).__name__} and a {type(z).__name__}")


def _sum_of_lists(a: TensorList, z: TensorList) -> TensorList:
    if a.dtype is not z.dtype:
        raise errors.InvalidArgument(f"Trying to add two lists of tensors of different dtypes. One is {a.dtype} and "
                                     f"the other is {z.dtype}")
    if a.count != z.count:
        raise errors.InvalidArgument(f"Trying to add two lists of tensors with different lengths. One is {a.count} and "
                                     f"the other is {z.count}")
    cells = [_sum_of_cells(x, y, a.dtype) for x, y in zip(a.cells, z.cells, strict=True)]
    return a.holding(cells, agreed_shape(a.shape, z.shape))


def _sum_of_cells(a: Cell, z: Cell, dtype: DType) -> Cell:
    """The sum of two cells. An uninitialized cell counts as zero."""
    if a is None or z is None:
        return z if a is None else a
    if a.shape != z.shape:
        raise errors.InvalidArgument("Trying to add two tensors with incompatible element shapes. One is "
                                     f"{shape_text(a.shape)} and the other is {shape_text(z.shape)}")
    if dtype is dtypes.variant:
        return _each(_sum, a, z)
    if dtype.name not in NUMBERS:
        raise errors.InvalidArgument(f"Trying to add unsupported dtype {dtype}")
    return np.asarray(np.add(a, z))


def _zero(x: Any) -> Any:
    if not isinstance(x, TensorList):
        return _none(x)
    return x.holding([None if cell is None else _zeros_of_cell(cell, x.dtype) for cell in x.cells])


def _none(x: Any) -> int:
    if not isinstance(x, int):
        raise errors.InvalidArgument(f"there is no zero of a {type(x).__name__}")
    return 0


def _zeros_of_cell(cell: Array, dtype: DType) -> Array:
    if dtype is dtypes.variant:
        return _each(_zero, cell)
    if dtype is dtypes.string:
        raise errors.InvalidArgument("Trying to compute zeros_like for unsupported dtype string")
    return zeros(dtype, cell.shape)


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """The tensor of `function` applied elementwise to variant tensors of one shape."""
    out = np.empty(arrays[0].shape, object)
    for at in np.ndindex(out.shape):
        out[at] = function(*(array[at] for array in arrays))
    return out


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("AddN", dtypes={"T": "variant"})(add_n)
    kernels.kernel("ZerosLike", dtypes={"T": "variant"}, priority=1)(zeros_like)
