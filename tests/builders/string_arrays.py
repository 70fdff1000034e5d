"""String tensors for tests: object arrays of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def array(items: Sequence[bytes], shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    array_of_objects = np.empty(len(items), object)
    array_of_objects[:] = items
    return array_of_objects if shape is None else array_of_objects.reshape(shape)


def scalar(item: bytes) -> np.ndarray[Any, Any]:
    return array([item], ())
