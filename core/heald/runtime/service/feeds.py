"""Feeds: converts array-like objects of users to a tensor's element type, by one rule.

Python numbers and lists take the tensor's type if every value survives. Arrays are cast when that is safe, from float64
to any float (as TensorFlow does), and between integers when all values fit. Any other feed is an error that names the
cast to write.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...errors import HealdError, InvalidArgument, callers_code
from ..host.host_memory import HostMemory
from ..values import dtypes
from ..values.dtypes import DType
from ..values.foreign_array import ForeignArray
from ..values.tensor import MOST_DIMS, TensorMetadata, fits, shape_text

POINTER_BYTES = 8  # bytes of an element that is a Python object


def convert_feed(
    value: Any, meta: TensorMetadata, name: str, memory: HostMemory | None = None, what: str = "feed"
) -> Any:
    """Return a C-contiguous, aligned array of the tensor's type, which shares memory with `value` where possible.

    `name` is the user's name of the tensor, `what` the word for it in errors. Raises InvalidArgument when the type or
    the shape does not fit, and ResourceExhausted when `memory` has no room for a copy.
    """
    name = f"{what} '{name}'"
    with callers_code(f"{name} is no tensor of {meta.dtype.name}"):
        if memory is None or (isinstance(value, np.ndarray) and value.dtype == meta.dtype.numpy
                              and value.flags.c_contiguous and value.flags.aligned):
            return _convert_values(value, meta, name)
        nbytes = _count(value) * (meta.dtype.itemsize or POINTER_BYTES)
        asker = f"{name}, converted to {meta.dtype.name},"
        return memory.lend(nbytes, asker, partial(_convert_values, value, meta, name))


def convert_or_wrap(value: Any, meta: TensorMetadata, name: str, memory: HostMemory) -> Any:
    """As `convert_feed`, and for an array in a device's memory a ForeignArray of exactly the tensor's type."""
    with callers_code(f"feed '{name}' is no tensor of {meta.dtype.name}"):
        foreign = ForeignArray(value) if ForeignArray.is_one(value) else None
    if foreign is None:
        return convert_feed(value, meta, name, memory)
    if foreign.dtype is not meta.dtype or not fits(foreign.shape, meta):
        raise InvalidArgument(f"feed '{name}' is {foreign.dtype.name}{shape_text(foreign.shape)} in a device's memory, "
                              f"the tensor is {meta}", hint="cast it there, or give an array of NumPy")
    return foreign


def _count(value: Any) -> int:
    """Count the elements of an array, or of nested lists, judged by their first items."""
    if isinstance(value, np.ndarray):
        return value.size
    count = 1
    for _ in range(MOST_DIMS):  # a list may hold itself
        if not isinstance(value, list | tuple):
            return count
        count *= len(value)
        value = value[0] if value else None
    return 0  # too deep: the conversion refuses it


def _convert_values(value: Any, meta: TensorMetadata, name: str) -> Any:
    array = _array(value, meta.dtype, name)
    if not fits(array.shape, meta):
        raise InvalidArgument(f"{name} has shape {shape_text(array.shape)}, "
                              f"the tensor's is {shape_text(meta.shape)}")
    return np.require(array, requirements=("C", "A"))


def _array(value: Any, dtype: DType, name: str) -> Any:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidArgument(f"{name} is a masked array with masked elements",
                              hint="give them a value: x.filled(0)")
    if isinstance(value, np.ndarray | np.generic):
        return _cast(np.asarray(value), dtype, name)
    if dtype is dtypes.string:
        return _strings(value, name)
    if dtype.kind == "q":
        return _array(value, _numbers_of(dtype), name).view(dtype.numpy)
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind in "SU":
        raise InvalidArgument(f"{name} is {type(value).__name__} of {array.dtype}, the tensor is {dtype.name}",
                              hint="give numbers, or lists of numbers of equal lengths")
    if array.size == 0:
        return array.astype(dtype.numpy)
    return _survives(array, dtype, name) if not hasattr(value, "dtype") else _cast(array, dtype, name)


def _cast(array: Any, dtype: DType, name: str) -> Any:
    """Cast an array to the tensor's type, if the rule allows it."""
    if dtype is dtypes.string:
        return _strings(array, name)
    target_dtype = dtype.numpy
    if array.dtype == target_dtype:
        return array if array.dtype.isnative else array.astype(target_dtype)
    if dtype.kind == "q":
        return _cast(array, _numbers_of(dtype), name).view(target_dtype)
    try:
        kind = dtypes.of_numpy(array.dtype.newbyteorder("=")).kind
    except HealdError:
        kind = "o"
    if kind != "o" and np.can_cast(array.dtype, target_dtype, "safe"):
        return array.astype(target_dtype)
    if array.dtype == np.float64 and dtype.kind == "f":
        with np.errstate(over="ignore"):
            return array.astype(target_dtype)
    if kind in "iu" and dtype.kind in "iu":
        cast = array.astype(target_dtype)
        if np.array_equal(cast, array):
            return cast
    raise InvalidArgument(f"{name} is {array.dtype}, the tensor is {dtype.name}, and the cast may lose values",
                          hint=f"write it: x.astype('{dtype.name}')")


def _numbers_of(dtype: DType) -> DType:
    """The integers that elements of a quantised type are."""
    return dtypes.of_numpy(dtype.numpy[0])


def _survives(array: Any, dtype: DType, name: str) -> Any:
    """Convert Python numbers to the tensor's type: integers exactly, floats rounded but never to infinity."""
    kinds = array.dtype.kind, dtype.kind
    is_kept = (kinds[0] == "b") == (kinds[1] == "b") and (kinds[0] != "c" or kinds[1] == "c")
    if is_kept:
        with np.errstate(all="ignore"):
            cast = array.astype(dtype.numpy)
        if kinds[1] in "fc":
            is_kept = np.array_equal(np.isfinite(cast.astype(complex)), np.isfinite(array.astype(complex)))
        else:
            is_kept = np.array_equal(cast, array)
    if not is_kept:
        lost = array.reshape(-1)[0] if array.size == 1 else array.tolist()
        raise InvalidArgument(f"{name} is {str(lost)[:60]}, which {dtype.name} cannot hold")
    return cast


def _strings(value: Any, name: str) -> Any:
    """Return an object array of bytes. Text is encoded as UTF-8."""
    is_array = isinstance(value, np.ndarray)
    objects = value.astype(object, order="C") if is_array else np.asarray(value, dtype=object)
    flat = objects.reshape(-1).tolist()
    if is_array and set(map(type, flat)) == {bytes}:
        return objects  # a copy already, and no element needs a look
    result = np.empty(objects.shape, object)
    result.reshape(-1)[:] = [_bytes(item, name) for item in flat]
    return result


def _bytes(item: Any, name: str) -> bytes:
    if isinstance(item, str):
        return item.encode("utf-8")
    if isinstance(item, bytes):
        return bytes(item)
    raise InvalidArgument(f"{name} has an element of type {type(item).__name__}; strings are bytes or str")
