"""RaggedTensor: the splits and values of one ragged tensor, the value of a variant."""

from __future__ import annotations

from dataclasses import dataclass

from heald.api import DType

from ..element_types import Array


@dataclass(frozen=True, slots=True)
class RaggedTensor:
    """Values of one dtype, and the splits of each ragged dimension, the outermost first. The arrays are read-only."""

    dtype: DType
    splits: tuple[Array, ...]
    values: Array
