"""Known elements of small integer tensors: shapes that a graph computes itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import TensorMetadata, ValueInfo

LARGEST_FOLDED_ELEMENTS = 64  # elements; a longer tensor is no shape
Array = np.ndarray[Any, Any]


def fold(
    function: Callable[..., Any], mask_function: Callable[..., Any], meta: TensorMetadata, *inputs: ValueInfo
) -> ValueInfo:
    """Return `function` of the inputs' elements as a tensor with this metadata, as far as they are known.

    `mask_function` maps the masks of the inputs' known elements to the mask of the result's.
    """
    elements = [_elements(x) for x in inputs]
    if None in elements or meta.dtype.kind not in "iu" or not meta.is_static or meta.size > LARGEST_FOLDED_ELEMENTS:
        return ValueInfo(meta)
    arrays, masks = zip(*elements, strict=True)
    result, mask = np.asarray(function(*arrays)), np.asarray(mask_function(*masks))
    if mask.all():
        return ValueInfo(meta, result)
    if len(meta.dims) > 1:
        return ValueInfo(meta)
    pairs = zip(result.flat, mask.flat, strict=True)
    return ValueInfo(meta, dims=tuple(int(element) if is_known else None for element, is_known in pairs))


def _elements(x: ValueInfo) -> tuple[Array, Array] | None:
    """Return the elements, 0 for unknown ones, and the mask of the known ones.

    Returns None for a tensor without known elements, and for one that is no shape.
    """
    if x.dtype.kind not in "iu" or (x.value is None and x.dims is None):
        return None
    if x.value is not None:
        return (x.value, np.ones(x.value.shape, bool)) if x.value.size <= LARGEST_FOLDED_ELEMENTS else None
    dims = np.array([d or 0 for d in x.dims or ()], np.int64).astype(x.dtype.numpy)
    shape = () if x.rank == 0 else dims.shape
    return dims.reshape(shape), np.array([d is not None for d in x.dims or ()], bool).reshape(shape)


def move(function: Callable[..., Any], meta: TensorMetadata, *inputs: ValueInfo) -> ValueInfo:
    """`fold` for a function that only moves elements: unknown elements stay unknown one by one."""
    return fold(function, function, meta, *(_with_unknown_elements(x) for x in inputs))


def _with_unknown_elements(x: ValueInfo) -> ValueInfo:
    """Return `x` with all elements marked unknown, if it may be a shape and no element was known."""
    if x.value is not None or x.dims is not None or x.shape is None or len(x.shape) > 1:
        return x
    if x.dtype.kind not in "iu" or None in x.shape or x.size > LARGEST_FOLDED_ELEMENTS:
        return x
    return ValueInfo(x.meta, dims=(None,) * x.size)
