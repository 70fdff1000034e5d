"""The kernel that chooses a legal sequence of states: step by step (greedy), or the best one as a whole (Viterbi).

A sequence has the sum of its scores and weights in log space, else their product. With start and end states the last
row of a matrix is the start, the last column is the end. An empty matrix allows all transitions, or weighs them alike.
Among equal totals the last state wins. A sequence that no legal path has consists of NO_STATE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, splits

NO_STATE = -1


def constrained_sequence(b: Bind) -> Callable[..., Any]:
    attrs = b.attrs
    search = best_sequence if attrs["use_viterbi"] else greedy_sequence

    def run(scores: Array, lengths: Array, allowed: Array, weights: Array) -> tuple[Array, Array]:
        batch, steps, states = scores.shape
        if len(lengths) != batch:
            raise InvalidArgument(f"{batch} sequences have {len(lengths)} lengths")
        if ((lengths < 0) | (lengths > steps)).any():
            raise InvalidArgument(f"the lengths of sequences must be 0 to {steps}, given {lengths.tolist()}")
        has_ends, is_log = attrs["use_start_and_end_states"], attrs["use_log_space"]
        moves = _transitions(allowed, weights, states + has_ends, is_log=is_log)
        if not has_ends:
            moves = np.pad(moves, (0, 1), constant_values=0 if is_log else 1)
        rows = [search(row[:length], moves, is_log=is_log)
                for row, length in zip(scores, lengths.tolist(), strict=True)]
        values = np.array([state for row in rows for state in row], np.int32)
        return values, splits(map(len, rows), attrs["Tsplits"].numpy)

    return run


def _transitions(allowed: Array, weights: Array, size: int, *, is_log: bool) -> Array:
    """The weight of each transition, float32; NaN for a forbidden one."""
    for name, matrix in (("allowed_transitions", allowed), ("transition_weights", weights)):
        if matrix.size and matrix.shape != (size, size):
            raise InvalidArgument(f"{name} must have the shape [{size},{size}], given {list(matrix.shape)}")
    if weights.size and not is_log and (weights < 0).any():
        raise InvalidArgument("transition_weights must not be negative outside of log space")
    moves = weights.copy() if weights.size else np.full((size, size), 0 if is_log else 1, np.float32)
    if allowed.size:
        moves[~allowed] = np.nan
    return moves


def greedy_sequence(scores: Array, moves: Array, *, is_log: bool) -> list[int]:
    """The best state of each step, given the state in front of it."""
    end = start = len(moves) - 1
    state, sequence = start, []
    for step, row in enumerate(scores, 1):
        totals = row + moves[state, :-1] if is_log else row * moves[state, :-1]
        if step == len(scores):
            totals = totals + moves[:-1, end] if is_log else totals * moves[:-1, end]
        state = best_of(totals)
        sequence.append(state)
    return sequence


def best_sequence(scores: Array, moves: Array, *, is_log: bool) -> list[int]:
    """The sequence with the best total. A product is scaled after each step, which changes no comparison."""
    if not len(scores):
        return []
    join = np.add if is_log else np.multiply
    totals = join(scores[0], moves[-1, :-1])
    pointers = []
    for row in scores[1:]:
        paths = join(totals[:, None], moves[:-1, :-1])
        paths = join(paths, row[None, :])
        best = [best_of(column) for column in paths.T]
        pointers.append(best)
        totals = np.array([paths[state, to] if state >= 0 else np.nan for to, state in enumerate(best)], np.float32)
        if not is_log:
            totals = scale_totals(totals)
    sequence = [best_of(join(totals, moves[:-1, -1]))]
    for pointer in reversed(pointers):
        sequence.append(pointer[sequence[-1]] if sequence[-1] >= 0 else NO_STATE)
    return sequence[::-1]


def scale_totals(totals: Array) -> Array:
    total = np.nansum(totals)
    return totals / total if total > 0 else totals


def best_of(totals: Array) -> int:
    """The last state with the largest total, or NO_STATE if all are forbidden."""
    if np.isnan(totals).all():
        return NO_STATE
    return len(totals) - 1 - int(np.nanargmax(totals[::-1]))


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("ConstrainedSequence", allocates=True)(constrained_sequence)
