"""Operators of TensorHandles by TensorFlow's rules (tensorflow/python/ops/tensor_math_operator_overrides.py).

A Python number takes the tensor's type. Tensors of different types are an error. Division converts integers of 16 bits
and less to float32, wider ones to float64. Operands of `==` that do not broadcast are unequal as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import errors

Execute = Callable[..., Any]

NARROW = 2  # bytes: integers of this size divide as float32


def promote(symbol: str, operands: Sequence[Any], execute: Execute) -> Sequence[Any]:
    """Return the operands, integers of a true division cast to float."""
    if symbol != "/":
        return operands
    handle = next(x for x in operands if hasattr(x, "to"))
    if handle.error is not None or handle.dtype.kind not in "iu":
        return operands
    dtype_name = "float32" if handle.dtype.itemsize <= NARROW else "float64"
    return [_cast(x, handle, dtype_name, execute) for x in operands]


def _cast(operand: Any, handle: Any, dtype_name: str, execute: Execute) -> Any:
    """Cast one operand of a true division of integers. Raises InvalidArgument for a number that is no integer."""
    if isinstance(operand, float):
        raise errors.InvalidArgument(f"{operand} is divided with a tensor of {handle.dtype.name}, which cannot hold it",
                                     hint="cast the tensor first")
    if isinstance(operand, int):
        return np.asarray(operand, dtype_name)
    return execute("Cast", operand, attrs={"DstT": dtype_name})


def index(handle: Any, key: Any, execute: Execute) -> Any:
    """`handle[key]`: integers, slices, Ellipsis, None, integer scalars, or one boolean mask.

    Raises InvalidArgument for any other key, and for an integer out of bounds.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) == 1 and _is_mask(parts[0]):
        return execute("GatherNd", handle, execute("Where", parts[0]))
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for i, part in enumerate(parts):
        first, last, step, marks = _part(part)
        begin.append(first)
        end.append(last)
        strides.append(step)
        for mark in marks:
            masks[mark] |= 1 << i
    return execute("StridedSlice", handle, begin, end, strides, attrs=masks)


def _part(part: Any) -> tuple[int, int, int, tuple[str, ...]]:
    """Begin, end and stride of one part of a key, and the masks that have its bit."""
    if part is Ellipsis:
        return 0, 0, 1, ("ellipsis_mask",)
    if part is None:
        return 0, 0, 1, ("new_axis_mask",)
    if isinstance(part, slice):
        masks = ("begin_mask",) * (part.start is None) + ("end_mask",) * (part.stop is None)
        return (0 if part.start is None else _integer(part.start), 0 if part.stop is None else _integer(part.stop),
                1 if part.step is None else _integer(part.step), masks)
    at = _integer(part)
    return at, at + 1, 1, ("shrink_axis_mask",)


def _integer(value: Any) -> int:
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise errors.InvalidArgument(f"a {type(value).__name__} is no index of a tensor", hint=(
            "give integers, slices, ..., None, integer scalars, or one boolean mask")) from None


def _is_mask(part: Any) -> bool:
    if isinstance(part, bool) or not hasattr(part, "dtype"):
        return False
    return getattr(part.dtype, "name", "") == "bool" and bool(part.shape)
