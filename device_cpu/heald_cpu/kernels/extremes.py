"""The lesser and the larger of two numbers by C++'s rules. NumPy's functions differ: NaN in either input wins there."""

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
