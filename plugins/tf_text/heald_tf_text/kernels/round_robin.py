"""Kernels that trim segments to a common budget: the segments take turns, one element a turn, while any has more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, check_splits, splits


def trim(b: Bind) -> Callable[..., Any]:
    count = b.attrs["N"]

    def run(limit: Array, *values_and_splits: Array) -> tuple[Array, ...]:
        values, row_splits = values_and_splits[:count], values_and_splits[count:]
        counts = kept_lengths(int(limit), values, row_splits)
        masks = [_mask(rows, lengths) for rows, lengths in zip(row_splits, counts.T, strict=True)]
        trimmed = (x[mask] for x, mask in zip(values, masks, strict=True))
        return (*trimmed, *(splits(lengths, rows.dtype) for lengths, rows in zip(counts.T, row_splits, strict=True)))

    return run


def make_masks(b: Bind) -> Callable[..., Any]:
    count = b.attrs["N"]

    def run(limit: Array, *operands: Array) -> None:
        values, row_splits, masks = operands[:count], operands[count : 2 * count], operands[2 * count :]
        counts = kept_lengths(int(limit), values, row_splits)
        for mask, rows, lengths in zip(masks, row_splits, counts.T, strict=True):
            np.copyto(mask, _mask(rows, lengths))

    return run


def kept_lengths(limit: int, values: tuple[Array, ...], row_splits: tuple[Array, ...]) -> Array:
    """The elements that each row keeps of each segment, [rows, segments]."""
    for x, rows in zip(values, row_splits, strict=True):
        check_splits(rows, len(x))
    if len({len(rows) for rows in row_splits}) > 1:
        raise InvalidArgument("the segments must have the same number of rows, given "
                              f"{[len(rows) - 1 for rows in row_splits]}")
    lengths = np.stack([np.diff(rows) for rows in row_splits], 1).astype(np.int64)
    return np.array([_share(limit, row) for row in lengths.tolist()], np.int64).reshape(lengths.shape)


def _share(limit: int, lengths: list[int]) -> list[int]:
    """Divide the budget: whole rounds over all segments that have more, then one each for the first segments."""
    shares, left = [0] * len(lengths), max(0, limit)
    while left:
        hungry = [i for i, length in enumerate(lengths) if shares[i] < length]
        if not hungry:
            break
        rounds = min(left // len(hungry), *(lengths[i] - shares[i] for i in hungry))
        takers = hungry if rounds else hungry[:left]
        for i in takers:
            shares[i] += rounds or 1
        left -= len(takers) * (rounds or 1)
    return shares


def _mask(row_splits: Array, counts: Array) -> Array:
    """True for the first elements of each row."""
    lengths = np.diff(row_splits)
    places = np.arange(row_splits[-1]) - np.repeat(row_splits[:-1], lengths)
    mask: Array = places < np.repeat(counts, lengths)
    return mask


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>RoundRobinTrim", allocates=True)(trim)
    kernels.kernel("TFText>RoundRobinGenerateMasks")(make_masks)
