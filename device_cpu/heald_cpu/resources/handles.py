"""Handles: scalars of dtype object that refer to a resource or a variant, as kernels pass them to each other."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from heald.api import errors

from ..element_types import Array

T = TypeVar("T")
LARGEST_CELL_COUNT = 1 << 27  # a GiB of references


def to_handle(value: Any) -> Array:
    """An object scalar that refers to the value."""
    scalar = np.empty((), object)
    scalar[()] = value
    return scalar


def from_handle(handle: Array, kind: type[T]) -> T:
    """The value that a handle refers to. Raises InvalidArgument for a value of another kind."""
    value = handle[()]
    if not isinstance(value, kind):
        raise errors.InvalidArgument(f"a {kind.__name__} is expected here, given {_name(value)}")
    return value


def _name(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def empty_cells(count: int) -> list[Any]:
    """`count` times None. Raises ResourceExhausted for more than LARGEST_CELL_COUNT."""
    check_cell_count(count)
    return [None] * count


def check_cell_count(count: int) -> None:
    """Raises ResourceExhausted for more than LARGEST_CELL_COUNT."""
    if count > LARGEST_CELL_COUNT:
        raise errors.ResourceExhausted(f"a list of {count} tensors; {LARGEST_CELL_COUNT} are the most")
