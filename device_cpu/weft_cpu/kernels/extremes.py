"""The lesser and the larger of two numbers as C++ chooses them: where one is NaN, NumPy's functions give that."""

from __future__ import annotations

import numpy as np

from .element_types import Array


def lesser(x: Array, y: Array) -> Array:
    """std::min: x where the comparison fails."""
    return np.where(y < x, y, x)


def larger(x: Array, y: Array) -> Array:
    """std::max: x where the comparison fails."""
    return np.where(x < y, y, x)
