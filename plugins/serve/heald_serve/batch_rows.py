"""The rows of a batch: joined from those of requests, and split among them again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from heald.errors import InvalidArgument

from .predict import Arrays, Prediction

Key = tuple[Any, ...]


def row_count(inputs: Arrays) -> int:
    """The common first dimension. Raises InvalidArgument."""
    sizes: set[int | None] = {array.shape[0] if array.ndim else None for array in inputs.values()}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is None:
        raise InvalidArgument("Batching session Run() input tensors must have equal 0th-dimension size")
    return size


def split_inputs(inputs: Arrays, rows: int, most_rows: int) -> list[tuple[Arrays, int]]:
    """The parts of a request of at most so many rows each."""
    if rows <= most_rows:
        return [(inputs, rows)]
    return [({name: array[at : at + most_rows] for name, array in inputs.items()}, min(most_rows, rows - at))
            for at in range(0, rows, most_rows)]


def key_of(prediction: Prediction, *, pads: bool) -> Key:
    """The kind of a request: requests of equal kinds join. `pads`: rows of other shapes join, too."""
    shapes = [(name, array.dtype.str, array.ndim if pads else array.shape[1:])
              for name, array in prediction.inputs.items()]
    if len(shapes) > 1:
        shapes.sort()
    return (id(prediction.lease.signatures), prediction.signature.name, *shapes)


def join_inputs(parts: Sequence[Arrays], filling: int) -> Arrays:
    """The inputs of a batch. Shorter rows are padded with their first value; `filling` rows repeat the last."""
    if len(parts) == 1 and not filling:
        return parts[0]
    joined = {name: np.concatenate(_pad_rows([np.asarray(part[name]) for part in parts])) for name in parts[0]}
    if not filling:
        return joined
    return {name: np.concatenate([array, np.repeat(array[-1:], filling, axis=0)]) for name, array in joined.items()}


def _pad_rows(arrays: Sequence[Any]) -> Sequence[Any]:
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) == 1:
        return arrays
    largest = tuple(map(max, zip(*shapes, strict=True)))
    padded = []
    for array in arrays:
        padded_array = np.full((len(array), *largest), array.reshape(-1)[0] if array.size else 0, array.dtype)
        padded_array[(slice(None), *(slice(size) for size in array.shape[1:]))] = array
        padded.append(padded_array)
    return padded


def split_outputs(outputs: Arrays, rows: Sequence[int]) -> list[Arrays]:
    ends = accumulate(rows)
    return [{name: array[end - count : end] for name, array in outputs.items()}
            for end, count in zip(ends, rows, strict=True)]
