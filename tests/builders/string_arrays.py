"""String tensors for tests: object arrays of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def array(items: Sequence[bytes], shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    found = np.empty(len(items), object)
    found[:] = items
    return found if shape is None else found.reshape(shape)


def scalar(item: bytes) -> np.ndarray[Any, Any]:
    return array([item], ())
