"""The lesser and the larger of two numbers as C++ chooses them: where one is NaN, NumPy's functions give that."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..element_types import Array


def lesser(x: ArrayLike, y: ArrayLike) -> Array:
    """std::min: x where the comparison fails."""
    return np.where(np.less(y, x), y, x)


def larger(x: ArrayLike, y: ArrayLike) -> Array:
    """std::max: x where the comparison fails."""
    return np.where(np.less(x, y), y, x)
