"""The loss of connectionist temporal classification: all paths at once, by the forward-backward algorithm.

A. Graves et al., Connectionist Temporal Classification (2006). The computation is in log space, all examples and states
side by side, one step of NumPy per time. The states of an example are its labels, with a blank before, between and
after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array

Labels = list[int]


def ctc_loss(b: Bind) -> Callable[..., None]:
    time, batch, classes = b.inputs[0].meta.dims
    attrs = b.attrs
    skips_longer = attrs["ignore_longer_outputs_than_inputs"]

    def run(logits: Any, indices: Any, values: Any, lengths: Any, loss: Any, gradient: Any) -> None:
        rows = _rows(indices, values, batch)
        _check_lengths(lengths, rows, time, skips_longer)
        labels = [_labels(row, number, classes, collapse=attrs["preprocess_collapse_repeated"])
                  for number, row in enumerate(rows)]
        counted = np.array([0 < len(row) <= n for row, n in zip(rows, lengths, strict=True)])
        likelihood, y, occupied = _likelihoods(logits, labels, lengths, merge=attrs["ctc_merge_repeated"])
        loss[...] = np.where(counted, -likelihood, 0)
        within = np.arange(time)[:, None] < np.where(counted, lengths, 0)
        gradient[...] = np.where(within[..., None], y - occupied, 0)

    return run


def _rows(indices: Any, values: Any, batch: int) -> list[Labels]:
    """The labels of each example, as given. Raises InvalidArgument."""
    _check_indices(indices, batch)
    rows: list[Labels] = [[] for _ in range(batch)]
    for (row, _), label in zip(indices.tolist(), values.tolist(), strict=True):
        rows[row].append(label)
    return rows


def _check_indices(indices: Any, batch: int) -> None:
    if ((indices < 0) | (indices[:, :1] >= batch)).any():
        raise errors.InvalidArgument(f"label SparseTensor is not valid: an index is out of bounds of {batch} examples")
    steps = np.diff(indices, axis=0)
    if not ((steps[:, 0] > 0) | ((steps[:, 0] == 0) & (steps[:, 1] > 0))).all():
        raise errors.InvalidArgument("label SparseTensor is not valid: its indices are out of order")


def _labels(row: Labels, number: int, classes: int, *, collapse: bool) -> Labels:
    """The labels of a row without the null labels at its end. Raises InvalidArgument."""
    if not row:
        raise errors.InvalidArgument(f"Labels length is zero in batch {number}")
    if collapse:
        row = [label for i, label in enumerate(row) if i == 0 or label != row[i - 1]]
    count = next((i for i, label in enumerate(row) if label >= classes - 1), len(row))
    if any(label < classes - 1 for label in row[count:]):
        raise errors.InvalidArgument(f"Saw a non-null label (index >= num_classes - 1) following a null label, batch: "
                                     f"{number}")
    if any(label < 0 for label in row):
        raise errors.InvalidArgument(f"All labels must be nonnegative integers, batch: {number}")
    return row[:count]


def _check_lengths(lengths: Any, labels: Sequence[Labels], time: int, skips_longer: bool) -> None:
    for number, (row, length) in enumerate(zip(labels, lengths.tolist(), strict=True)):
        if not 0 <= length <= time:
            raise errors.InvalidArgument(f"sequence_length({number}) is {length}, must be in [0, {time}]")
        if len(row) > length and not skips_longer:
            raise errors.InvalidArgument(f"Not enough time for target transition sequence (required: {len(row)}, "
                                         f"available: {length}), batch {number}")


def _likelihoods(logits: Any, labels: Sequence[Labels], lengths: Any, *, merge: bool) -> tuple[Any, Any, Any]:
    """The log likelihood of each example; for each time, example and class the softmax, and the probability that a path
    is there."""
    shifted = logits - logits.max(2, keepdims=True)
    log_y = shifted - np.log(np.exp(shifted).sum(2, keepdims=True))
    states, last = _states(labels, logits.shape[2] - 1)
    emitted = np.take_along_axis(log_y, states[None], 2)
    stay, skip = _transitions(states, logits.shape[2] - 1, merge, logits.dtype)
    forward = _forward(emitted, stay, skip)
    backward = _backward(emitted, stay, skip, last, lengths)
    likelihood = np.logaddexp.reduce(forward[0] + backward[0], 1)
    joint = np.where((likelihood == -np.inf)[:, None], 0, np.exp(forward + backward - likelihood[:, None]))
    occupied, examples = np.zeros_like(log_y), np.arange(len(states))
    for state in range(states.shape[1]):
        occupied[:, examples, states[:, state]] += joint[:, :, state]
    return likelihood, np.exp(log_y), occupied


def _states(labels: Sequence[Labels], blank: int) -> tuple[Any, Any]:
    """The label of each state, blank if an example has no such state; and 0 for states where a path may end, else
    -inf."""
    states = np.full((len(labels), 2 * max(map(len, labels)) + 1), blank)
    for row, classes in zip(states, labels, strict=True):
        row[1 : 2 * len(classes) : 2] = classes
    left = np.array([[2 * len(classes)] for classes in labels]) - np.arange(states.shape[1])
    return states, np.where((left == 0) | (left == 1), 0, -np.inf)


def _transitions(states: Array, blank: int, merge: bool, dtype: Any) -> tuple[Any, Any]:
    """Two arrays, 0 or -inf: 0 if a path may stay in the state; 0 if it may come from two states before."""
    is_blank: Array = np.equal(states, blank)
    may_stay, may_skip = np.logical_or(is_blank, merge), np.zeros(states.shape, bool)
    may_skip[:, 2:] = ~is_blank[:, 2:] & ~(np.equal(states[:, 2:], states[:, :-2]) & merge)
    return np.where(may_stay, 0, -np.inf).astype(dtype), np.where(may_skip, 0, -np.inf).astype(dtype)


def _forward(emitted: Any, stay: Any, skip: Any) -> Any:
    """The log probability of all paths to a state at a time, including the state's emission."""
    forward = np.full_like(emitted, -np.inf)
    forward[0, :, :2] = emitted[0, :, :2]
    for t in range(1, len(emitted)):
        before, now = forward[t - 1], forward[t - 1] + stay
        now[:, 1:] = np.logaddexp(now[:, 1:], before[:, :-1])
        now[:, 2:] = np.logaddexp(now[:, 2:], before[:, :-2] + skip[:, 2:])
        forward[t] = now + emitted[t]
    return forward


def _backward(emitted: Any, stay: Any, skip: Any, last: Any, lengths: Any) -> Any:
    """The log probability of all paths from a state at a time to the end, excluding the state's emission."""
    backward = np.full_like(emitted, -np.inf)
    for t in range(len(emitted) - 1, -1, -1):
        if t + 1 < len(emitted):
            after = backward[t + 1] + emitted[t + 1]
            now = after + stay
            now[:, :-1] = np.logaddexp(now[:, :-1], after[:, 1:])
            now[:, :-2] = np.logaddexp(now[:, :-2], after[:, 2:] + skip[:, 2:])
            backward[t] = now
        np.copyto(backward[t], last, where=(lengths == t + 1)[:, None], casting="unsafe")
    return backward


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("CTCLoss", dtypes={"T": ("float32", "float64")})(ctc_loss)
