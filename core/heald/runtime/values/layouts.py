"""Layouts of host tensors: dense arrays, ScalarTensor (equal elements), CooTensor (coordinates), and conversions.

A tensor of strings is a dense array of bytes, or a ScalarTensor of one text. Layouts describe the memory of one value:
metadata functions, graphs and sessions know dense tensors only.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgument, callers_code
from ..support.records import dataclass
from .dtypes import DType, of_numpy
from .tensor import LARGEST_ELEMENT_COUNT, MOST_DIMS, shape_text

if TYPE_CHECKING:
    import numpy as np

DENSE, SCALAR, COO = "dense", "scalar", "coo"
LAYOUTS = (DENSE, SCALAR, COO)


@dataclass(frozen=True, slots=True, eq=False)
class ScalarTensor:
    """A tensor whose elements are all equal. `value`: an array of shape [], read-only."""

    shape: tuple[int, ...]
    value: np.ndarray[Any, Any]

    @property
    def dtype(self) -> DType:
        return of_numpy(self.value.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class CooTensor:
    """A sparse tensor in coordinate format: every element without coordinates is 0.

    `indices`: int64 of shape (elements, rank), the coordinates in row-major order, none twice.
    `values`: an array of shape (elements,). It may have zeros.
    """

    shape: tuple[int, ...]
    indices: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]

    @property
    def dtype(self) -> DType:
        return of_numpy(self.values.dtype)


HostTensor = Any  # a NumPy array, a ScalarTensor or a CooTensor


def layout_of(tensor: HostTensor) -> str:
    """The layout of an array, ScalarTensor or CooTensor."""
    if isinstance(tensor, ScalarTensor):
        return SCALAR
    return COO if isinstance(tensor, CooTensor) else DENSE


def fill_dense(tensor: ScalarTensor | CooTensor, out: np.ndarray[Any, Any]) -> None:
    """Write the elements of a tensor to an array of its shape and type."""
    if isinstance(tensor, ScalarTensor):
        out[...] = tensor.value
        return
    out[...] = 0
    if tensor.shape:
        out[tuple(tensor.indices.T)] = tensor.values
    elif len(tensor.values):
        out[...] = tensor.values[0]


def broadcast(tensor: ScalarTensor) -> np.ndarray[Any, Any]:
    """A read-only array of all elements of a ScalarTensor, without memory for them."""
    import numpy as np

    return np.broadcast_to(tensor.value, tensor.shape)


def coo_of(tensor: np.ndarray[Any, Any] | ScalarTensor) -> CooTensor:
    """The elements that are not 0. Raises InvalidArgument for types without a 0."""
    import numpy as np

    array = broadcast(tensor) if isinstance(tensor, ScalarTensor) else tensor
    _check_has_zero(array.dtype)
    return CooTensor(array.shape, np.argwhere(array), array[array != 0])


def scalar_tensor(shape: Iterable[int], value: np.ndarray[Any, Any]) -> ScalarTensor:
    """A ScalarTensor of a copy of this value. Raises InvalidArgument for a wrong shape, or a value of another shape
    than []."""
    dims = checked_shape(shape)
    if value.shape != ():
        raise InvalidArgument(f"the value of a scalar tensor has shape {shape_text(value.shape)}, expected []",
                              hint="give the one element that all elements are equal to")
    copied = value.copy()
    copied.flags.writeable = False
    return ScalarTensor(dims, copied)


def coo_tensor(indices: Any, values: np.ndarray[Any, Any], shape: Iterable[int]) -> CooTensor:
    """A CooTensor of copies of these arrays, in row-major order.

    Raises InvalidArgument for indices that are not integers of shape (elements, rank), lie outside of `shape`, or are
    given twice; for values of another shape than (elements,); and for types without a 0.
    """
    import numpy as np

    dims = checked_shape(shape)
    with callers_code("indices cannot be read as an array"):
        coordinates = np.asarray(indices)
    if not coordinates.size:  # NumPy gives empty lists the type float64
        coordinates = coordinates.astype(np.int64) if coordinates.ndim == 2 else np.empty((0, len(dims)), np.int64)
    if coordinates.dtype.kind not in "iu" or coordinates.ndim != 2 or coordinates.shape[1] != len(dims):
        raise InvalidArgument(f"indices are {coordinates.dtype}{shape_text(coordinates.shape)}, "
                              f"expected integers of shape [?,{len(dims)}]",
                              hint=f"a row of {len(dims)} coordinates for each value")
    if values.shape != coordinates.shape[:1]:
        raise InvalidArgument(f"values have shape {shape_text(values.shape)}, expected [{len(coordinates)}]: "
                              "one for each row of indices")
    _check_has_zero(values.dtype)
    outside = np.flatnonzero(((coordinates < 0) | (coordinates >= np.array(dims, np.int64))).any(axis=1))
    if len(outside):
        raise InvalidArgument(f"indices[{outside[0]}] = {coordinates[outside[0]].tolist()} is outside of shape "
                              f"{shape_text(dims)}")
    order = np.lexsort(coordinates.T[::-1]) if dims else np.arange(len(coordinates))
    ordered = coordinates.astype(np.int64)[order]
    twice = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    if len(twice):
        raise InvalidArgument(f"the indices {ordered[twice[0]].tolist()} are given twice",
                              hint="add their values up first")
    return CooTensor(dims, ordered, values[order])


def checked_shape(shape: Iterable[int]) -> tuple[int, ...]:
    """A user's shape as a tuple. Raises InvalidArgument for lengths that are no natural numbers, and for too many."""
    from math import prod

    with callers_code("shape is no sequence of integers"):
        dims = tuple([index(dim) for dim in shape])
    if any(dim < 0 for dim in dims) or len(dims) > MOST_DIMS or prod(dims) > LARGEST_ELEMENT_COUNT:
        raise InvalidArgument(f"{shape_text(dims)[:200]} is no shape of a tensor", hint=(
            f"give at most {MOST_DIMS} lengths of 0 or more, for fewer than 2**63 elements"))
    return dims


def _check_has_zero(dtype: np.dtype[Any]) -> None:
    if of_numpy(dtype).kind == "o":
        raise InvalidArgument(f"a sparse tensor of {of_numpy(dtype).name} has no element to leave out",
                              hint="keep such a tensor dense")
