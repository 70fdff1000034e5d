"""Levenshtein's distance between sequences that are rows of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from .segment import lengths_of_runs, starts_of_runs

Sequences = dict[int, Any]  # by number of the row in the output
NOTHING = np.zeros(0, np.int64)
SHORT = 64  # elements of a truth: a row of the table takes Python as long as NumPy's calls


def edit_distance(b: Bind) -> Callable[..., None]:
    """The number of insertions, deletions and substitutions that turn the hypothesis into the truth.

    The normalised distance is divided by the truth's length. For an empty truth it is infinite, or 0 if the hypothesis
    is empty, too.
    """
    shape, normalize = b.outputs[0].dims, b.attrs["normalize"]

    def run(*arrays: Any) -> None:
        out = arrays[-1].reshape(-1)
        hypotheses, truths = _sequences(arrays[0], arrays[1], shape), _sequences(arrays[3], arrays[4], shape)
        out.fill(0)
        for row in hypotheses.keys() | truths.keys():
            hypothesis, truth = hypotheses.get(row, NOTHING), truths.get(row, NOTHING)
            distance = _distance(hypothesis, truth)
            if normalize:
                distance = distance / len(truth) if len(truth) else np.inf
            out[row] = distance

    return run


def _sequences(indices: Any, values: Any, shape: tuple[int, ...]) -> Sequences:
    """The elements of each row that is not empty, in order. Raises InvalidArgument."""
    outer = indices[:, :-1]
    if ((outer < 0) | (outer >= shape)).any():
        raise errors.InvalidArgument(f"an index of a sequence is outside the output's shape {list(shape)}")
    rows = np.ravel_multi_index(tuple(outer.T), shape)
    if not len(rows):
        return {}
    starts = starts_of_runs(rows)
    ends = starts + lengths_of_runs(starts, len(rows))
    places = zip(rows[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    return {row: values[start:end] for row, start, end in places}


def _distance(hypothesis: Any, truth: Any) -> float:
    """Wagner and Fischer's table row by row."""
    if len(truth) > SHORT:
        return _distance_of_long(hypothesis, truth)
    row, elements = list(range(len(truth) + 1)), truth.tolist()
    for number, element in enumerate(hypothesis.tolist(), 1):
        left, corner = number, number - 1
        following = [number]
        for above, other in zip(row[1:], elements, strict=True):
            left = min(left + 1, above + 1, corner + (element != other))
            corner = above
            following.append(left)
        row = following
    return float(row[-1])


def _distance_of_long(hypothesis: Any, truth: Any) -> float:
    """Deletions along a row are a running minimum."""
    steps = np.arange(len(truth) + 1)
    row = steps
    for number, element in enumerate(hypothesis, 1):
        following = np.empty_like(row)
        following[0] = number
        following[1:] = np.minimum(row[1:] + 1, row[:-1] + (truth != element))
        row = np.minimum.accumulate(following - steps) + steps
    return float(row[-1])


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("EditDistance")(edit_distance)
