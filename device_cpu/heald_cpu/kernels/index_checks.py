"""Checks of indices that a run brings. Errors have TensorFlow's wording: an index out of range is an error on CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from heald.api import errors


def check_inside(indices: Any, length: int, name: str = "indices") -> None:
    """Raise InvalidArgument for the first index that is not in [0, length)."""
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= length:  # negative ones are large without a sign
        position = np.unravel_index(np.argmax((indices < 0) | (indices >= length)), indices.shape)
        raise errors.InvalidArgument(f"{name}{_at(position)} = {indices[position]} is not in [0, {length})")


def inside(indices: Any, shape: Sequence[int]) -> Any:
    """bool [n]: True for each index vector that names an element of a tensor of this shape. `indices`: [n, rank]."""
    is_inside = np.ones(len(indices), np.bool_)
    for column, length in zip(indices.T, shape, strict=True):  # NumPy is slow along axes as short as a vector
        is_inside &= (column >= 0) & (column < length)
    return is_inside


def check_all_inside(indices: Any, is_inside: Any, shape: Sequence[int]) -> None:
    """Raise InvalidArgument for the first of the index vectors in `indices` that is not inside, by `is_inside`."""
    if not is_inside.all():
        position = np.unravel_index(np.argmin(is_inside), indices.shape[:-1])
        raise errors.InvalidArgument(f"indices{_at(position)} = {indices[position].tolist()} does not index into shape "
                                     f"{list(shape)}")


def _at(position: Sequence[Any]) -> str:
    return f"[{','.join(str(i) for i in position)}]" if position else ""
