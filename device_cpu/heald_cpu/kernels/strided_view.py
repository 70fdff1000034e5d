"""Views by strides that stay within their array, for every shape that the caller computed."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import errors
from numpy.lib.stride_tricks import as_strided

from ..element_types import Array


def strided_view(array: Array, shape: Sequence[int], strides: Sequence[int], *, writeable: bool = False) -> Array:
    """The view of this shape and of these strides, in bytes, from the array's first element on.

    Raises InvalidArgument for a view that leaves the array.
    """
    first, last = _offsets(array.shape, array.strides)
    lowest, highest = _offsets(shape, strides)
    if 0 not in shape and (0 in array.shape or lowest < first or highest > last):
        raise errors.InvalidArgument(f"a view {list(shape)} with strides {list(strides)} leaves its array of shape "
                                     f"{list(array.shape)} and strides {list(array.strides)}")
    return as_strided(array, shape, strides, writeable=writeable)


def _offsets(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The least and the largest offset of an element."""
    reaches = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(reach for reach in reaches if reach < 0), sum(reach for reach in reaches if reach > 0)
