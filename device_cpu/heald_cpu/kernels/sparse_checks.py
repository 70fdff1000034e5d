"""The order and the bounds of a sparse tensor's indices, which all kernels on sparse tensors share."""

from __future__ import annotations

import numpy as np
from heald.api import InvalidArgument

from ..element_types import Array


def check_inside(indices: Array, shape: Array) -> None:
    outside = (indices < 0) | (indices >= shape)
    if outside.any():
        position = outside.any(1).argmax()
        raise InvalidArgument(f"indices[{position}] = {indices[position].tolist()} is out of bounds: need 0 <= "
                              f"index < {shape.tolist()}")


def check_increasing(indices: Array) -> None:
    """Raise InvalidArgument if indices repeat or are not in lexicographic order."""
    rises = np.zeros(max(len(indices) - 1, 0), np.bool_)
    for column in indices.T[::-1]:  # NumPy is slow along axes as short as an index
        before, after = column[:-1], column[1:]
        rises = (after > before) | (after == before) & rises
    if not rises.all():
        position = rises.argmin() + 1
        raise InvalidArgument(f"indices[{position}] = {indices[position].tolist()} is repeated or out of order")


def row_major(indices: Array) -> Array:
    """The order of the indices that is row-major."""
    return np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(len(indices))
