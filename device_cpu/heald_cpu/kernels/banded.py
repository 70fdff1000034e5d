"""Products and solutions of matrices that are given by their diagonals.

Elimination goes row by row, for all matrices of a batch and all right-hand sides at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, Array

Run = Callable[..., None]
Rows = list[Any]  # a row of every matrix: an array of a number, or of a number for each right-hand side
TYPES = ("float32", "float64", *COMPLEX)


def tridiagonal_product(_: Bind) -> Run:
    def run(above: Array, main: Array, below: Array, x: Array, out: Array) -> None:
        np.multiply(main.swapaxes(-2, -1), x, out)
        out[..., :-1, :] += above.swapaxes(-2, -1)[..., :-1, :] * x[..., 1:, :]
        out[..., 1:, :] += below.swapaxes(-2, -1)[..., 1:, :] * x[..., :-1, :]

    return run


def tridiagonal_solve(b: Bind) -> Run:
    pivoting, perturbs = b.attrs["partial_pivoting"], b.attrs["perturb_singular"]
    if perturbs and not pivoting:
        raise errors.InvalidArgument("Setting perturb_singular requires also setting partial_pivoting.")
    if not b.outputs[0].size:
        return lambda *_: None

    def run(diagonals: Array, y: Array, out: Array) -> None:
        above, main, below = (_rows_of(diagonals[..., i, :, None]) for i in range(3))
        upper, rows = _eliminate(above, main, below, _rows_of(y), pivoting=pivoting)
        error = _rounding_error(upper) if perturbs else None
        for i, row in enumerate(_solve_upper(upper, rows, error)):
            out[..., i, :] = row
        if not perturbs:  # a pivot of 0 fails the whole matrix
            out[...] = np.where(np.any([pivot == 0 for pivot in upper[0]], 0)[..., None], np.nan, out)

    return run


def _rows_of(x: Array) -> Rows:
    return [x[..., i, :] for i in range(x.shape[-2])]


def _eliminate(above: Rows, main: Rows, below: Rows, y: Rows, *, pivoting: bool) -> tuple[tuple[Rows, ...], Rows]:
    """The diagonal and two superdiagonals of the upper triangle, and the right-hand side that goes with it."""
    zero = np.zeros_like(main[0])
    pivots, firsts, seconds, rows = [main[0]], [above[0]], [zero], [y[0]]
    for i in range(1, len(main)):
        old, new = (pivots[-1], firsts[-1], zero, rows[-1]), (below[i], main[i], above[i], y[i])
        swap = np.abs(new[0]) > np.abs(old[0]) if pivoting else np.zeros_like(old[0], bool)
        old, new = (tuple(np.where(swap, a, b) for a, b in zip(one, other, strict=True))
                    for one, other in ((new, old), (old, new)))
        factor = np.where(new[0] == 0, 0, new[0] / old[0])
        pivots[-1], firsts[-1], seconds[-1], rows[-1] = old
        pivots.append(new[1] - factor * old[1])
        firsts.append(new[2] - factor * old[2])
        seconds.append(zero)
        rows.append(new[3] - factor * old[3])
    return (pivots, firsts, seconds), rows


def _rounding_error(upper: tuple[Rows, ...]) -> Any:
    """The rounding error of the largest number in each matrix, and at least the smallest normal number."""
    in_matrix = [x for superdiagonal, rows in enumerate(upper) for x in rows[: len(rows) - superdiagonal]]
    largest = np.max([np.abs(x) for x in in_matrix], 0)
    limits = np.finfo(largest.dtype)
    return np.maximum(limits.eps * largest, limits.tiny)


def _solve_upper(upper: tuple[Rows, ...], rows: Rows, error: Any) -> Rows:
    pivots, firsts, seconds = upper
    solved: Rows = []
    for i in reversed(range(len(rows))):
        known = sum(coefficient[i] * x for coefficient, x in zip((firsts, seconds), solved[:2], strict=False))
        rest = rows[i] - known
        solved.insert(0, rest / (pivots[i] if error is None else _perturb(pivots[i], rest, error)))
    return solved


def _perturb(pivot: Any, rest: Any, error: Any) -> Any:
    """The pivot with more and more of the error added until the quotient is finite, as LAPACK's dlagts does."""
    largest = np.abs(rest).max(-1, keepdims=True) * np.finfo(error.dtype).tiny
    addend = np.where(pivot == 0, 1, pivot / np.abs(pivot)) * error
    while (small := (pivot == 0) | (largest > np.abs(pivot))).any():
        pivot = np.where(small, pivot + addend, pivot)
        addend = addend * 2
    return pivot


def banded_solve(b: Bind) -> Run:
    """Lower bands are the diagonal, then subdiagonals, whose first elements are unused. Upper bands are
    superdiagonals, whose last elements are unused, then the diagonal."""
    lower, adjoint = b.attrs["lower"], b.attrs["adjoint"]

    def run(bands: Array, y: Array, out: Array) -> None:
        below = bands if lower else bands[..., ::-1, ::-1]  # from the last row to the first, upper bands are lower ones
        diagonal = bands[..., 0 if lower else -1, :]
        if (diagonal == 0).any() or np.isnan(diagonal[..., 0]).any():  # TensorFlow refuses NaN as the first pivot only
            raise errors.InvalidArgument("Input matrix is not invertible.")
        from_last_row = lower == adjoint
        if adjoint:
            below = _adjoint(below)
        target = out[..., ::-1, :] if from_last_row else out
        target[...] = y[..., ::-1, :] if from_last_row else y
        _substitute(below, target)

    return run


def _adjoint(bands: Array) -> Array:
    """The lower bands of the adjoint, in the reverse order of rows."""
    turned = np.zeros_like(bands)
    columns = bands.shape[-1]
    for k in range(bands.shape[-2]):
        turned[..., k, : columns - k] = bands[..., k, k:].conj()
    return turned[..., ::-1]


def _substitute(below: Array, x: Array) -> None:
    """Solve in place for lower bands."""
    for i in range(x.shape[-2]):
        for k in range(1, min(i + 1, below.shape[-2])):
            x[..., i, :] -= below[..., k, i, None] * x[..., i - k, :]
        x[..., i, :] /= below[..., 0, i, None]


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "BandedTriangularSolve": banded_solve, "TridiagonalMatMul": tridiagonal_product,
        "TridiagonalSolve": tridiagonal_solve,
    }.items():
        kernels.kernel(op, dtypes={"T": TYPES})(bind)
