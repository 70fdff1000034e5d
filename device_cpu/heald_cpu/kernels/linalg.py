"""Factorisations, inverses and solutions of matrices, by LAPACK through NumPy, and triangular solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, Array

Run = Callable[..., None]
REAL = ("float32", "float64")
TYPES = (*REAL, *COMPLEX)
ROWS = 32  # of a triangle that is solved row by row; larger triangles are halved, so that most of the work is products


def cholesky(_: Bind) -> Run:
    def run(x: Array, out: Array) -> None:
        try:
            out[...] = np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            for matrix, factor in zip(_each(x), _each(out), strict=True):
                factor[...] = _cholesky_or_nan(matrix)

    return run


def _each(x: Array) -> Array:
    return x.reshape(-1, *x.shape[-2:])


def _cholesky_or_nan(x: Array) -> Any:
    """The Cholesky factor, or NaN, as in TensorFlow, if the matrix is not positive definite."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.tril(np.full_like(x, np.nan))


def determinant(_: Bind) -> Run:
    return lambda x, out: np.copyto(out, np.linalg.det(x))


def log_determinant(_: Bind) -> Run:
    def run(x: Array, sign: Array, logarithm: Array) -> None:
        sign[...], logarithm[...] = np.linalg.slogdet(x)

    return run


def inverse(b: Bind) -> Run:
    adjoint, within = b.attrs["adjoint"], np.result_type(b.outputs[0].dtype.numpy, np.float32)

    def run(x: Array, out: Array) -> None:
        wide = x.astype(within, copy=False)
        out[...] = _invertible(np.linalg.inv, adjoint_of(wide) if adjoint else wide)

    return run


def solve(b: Bind) -> Run:
    adjoint = b.attrs["adjoint"]
    if not b.outputs[0].size:
        return lambda *_: None
    return lambda a, y, out: np.copyto(out, _invertible(np.linalg.solve, adjoint_of(a) if adjoint else a, y))


def adjoint_of(x: Array) -> Array:
    return x.swapaxes(-2, -1).conj()


def _invertible(function: Callable[..., Any], x: Array, *others: Array) -> Any:
    """`function(x, *others)`. Raises InvalidArgument if `x` is singular.

    TensorFlow refuses NaN as the first pivot only: elsewhere NaN makes NaN.
    """
    try:
        if not np.isnan(x[..., :1, :1]).any():
            return function(x, *others)
    except np.linalg.LinAlgError:
        pass
    raise errors.InvalidArgument("Input matrix is not invertible.")


def triangular_solve(b: Bind) -> Run:
    lower, adjoint = b.attrs["lower"], b.attrs["adjoint"]

    def run(a: Array, y: Array, out: Array) -> None:
        out[...] = y
        if adjoint:
            a = adjoint_of(a)
        if lower != adjoint:
            _substitute(a, out)
        else:  # the same, from the last row to the first
            _substitute(a[..., ::-1, ::-1], out[..., ::-1, :])

    return run if b.outputs[0].size else lambda *_: None


def _substitute(a: Array, x: Array) -> None:
    """Solve in place for a lower triangle. A division by 0 makes infinity or NaN."""
    rows = x.shape[-2]
    if rows > ROWS:
        half = rows // 2
        _substitute(a[..., :half, :half], x[..., :half, :])
        x[..., half:, :] -= a[..., half:, :half] @ x[..., :half, :]
        _substitute(a[..., half:, half:], x[..., half:, :])
        return
    for row in range(rows):
        solved_part = a[..., row : row + 1, :row] @ x[..., :row, :]
        x[..., row, :] = (x[..., row, :] - solved_part[..., 0, :]) / a[..., row, row, None]


def qr(b: Bind) -> Run:
    mode: Literal["complete", "reduced"] = "complete" if b.attrs["full_matrices"] else "reduced"
    within = np.result_type(b.outputs[0].dtype.numpy, np.float32)

    def run(x: Array, q: Array, r: Array) -> None:
        q[...], r[...] = np.linalg.qr(x.astype(within, copy=False), mode)

    return run


def svd(b: Bind) -> Run:
    """A matrix with NaN or infinity has NaN throughout. LAPACK does not see it, for there it may not end."""
    full, vectors = b.attrs["full_matrices"], b.attrs["compute_uv"]

    def values_only(x: Array, s: Array, _u: Array, _v: Array) -> None:
        is_finite = _finite_matrices(x)
        s[...] = np.linalg.svd(np.where(is_finite[..., None, None], x, 0), compute_uv=False)
        s[~is_finite] = np.nan

    def run(x: Array, s: Array, u: Array, v: Array) -> None:
        is_finite = _finite_matrices(x)
        u[...], s[...], adjoint = np.linalg.svd(np.where(is_finite[..., None, None], x, 0), full)
        v[...] = adjoint_of(adjoint)
        for out in (s, u, v):
            out[~is_finite] = np.nan

    return run if vectors else values_only


def _finite_matrices(x: Array) -> Array:
    """A bool for each matrix: True if all its numbers are finite."""
    return np.asarray(np.isfinite(x).all((-2, -1)))


def lu(b: Bind) -> Run:
    """Both triangles in one matrix, without the lower one's diagonal of 1; and the rows by their old numbers."""

    def run(x: Array, out: Array, rows: Array) -> None:
        out[...] = x
        rows[...] = np.arange(x.shape[-1])
        for matrix, order in zip(_each(out), rows.reshape(-1, rows.shape[-1]), strict=True):
            _factor(matrix, order)

    return run if b.outputs[0].size else lambda *_: None


def _factor(x: Array, order: Array) -> None:
    """Factor in place. Raises InvalidArgument if a column has no pivot but 0, or the first one is NaN."""
    for column in range(len(x)):
        pivot = column + _largest(np.abs(x[column:, column]))
        if x[pivot, column] == 0 or np.isnan(x[0, 0]):
            raise errors.InvalidArgument("Input is not invertible.")
        for rows in (x, order):
            rows[[column, pivot]] = rows[[pivot, column]]
        x[column + 1 :, column] /= x[column, column]
        x[column + 1 :, column + 1 :] -= np.outer(x[column + 1 :, column], x[column, column + 1 :])


def _largest(sizes: Array) -> int:
    """The index of the largest number. No number is larger than NaN, and NaN is larger than no number."""
    return 0 if np.isnan(sizes[0]) else int(np.nanargmax(sizes))


def cholesky_gradient(b: Bind) -> Run:
    """The symmetric gradient of the matrix, for that of its factor. Each input counts as lower triangle. The steps of
    Cholesky's algorithm are gone back, from the last rows to the first: I. Murray, arXiv:1602.07527."""

    def run(lower: Array, grad: Array, out: Array) -> None:
        factor, total = np.tril(lower), np.tril(grad)
        for end in range(factor.shape[-1], 0, -ROWS):
            _go_back(factor, total, max(0, end - ROWS), end)
        out[...] = (total + total.swapaxes(-2, -1)) / 2

    return run if b.outputs[0].size else lambda *_: None


def _go_back(factor: Array, grad: Array, start: int, end: int) -> None:
    """Turn the gradient of the rows from `start` to `end`, and of the columns below, into that of the matrix."""
    before, block, behind = slice(0, start), slice(start, end), slice(end, None)
    diagonal, left, below, corner = (factor[..., rows, columns] for rows, columns in (
        (block, block), (block, before), (behind, block), (behind, before)))
    turned = grad[..., behind, block].swapaxes(-2, -1)
    _substitute(diagonal.swapaxes(-2, -1)[..., ::-1, ::-1], turned[..., ::-1, :])
    grad[..., block, block] -= np.tril(turned @ below)
    grad[..., behind, before] -= turned.swapaxes(-2, -1) @ left
    grad[..., block, before] -= turned @ corner
    _go_back_by_row(diagonal, grad[..., block, block])
    of_diagonal = grad[..., block, block]
    grad[..., block, before] -= (of_diagonal + of_diagonal.swapaxes(-2, -1)) @ left


def _go_back_by_row(factor: Array, grad: Array) -> None:
    """The same for a block alone, in place."""
    for k in reversed(range(factor.shape[-1])):
        row, pivot, below = factor[..., k : k + 1, :k], factor[..., k, k], factor[..., k + 1 :, k : k + 1]
        of_row, of_below = grad[..., k : k + 1, :k], grad[..., k + 1 :, k : k + 1]
        of_pivot = (grad[..., k, k] - (below * of_below).sum((-2, -1)) / pivot) / pivot
        of_below /= pivot[..., None, None]
        of_row -= of_pivot[..., None, None] * row + of_below.swapaxes(-2, -1) @ factor[..., k + 1 :, :k]
        grad[..., k + 1 :, :k] -= of_below @ row
        grad[..., k, k] = of_pivot / 2


BINDS: tuple[tuple[str, Callable[[Bind], Run], tuple[str, ...]], ...] = (
    ("Cholesky", cholesky, TYPES),
    ("CholeskyGrad", cholesky_gradient, REAL),
    ("LogMatrixDeterminant", log_determinant, TYPES),
    ("Lu", lu, TYPES),
    ("MatrixDeterminant", determinant, TYPES),
    ("MatrixInverse", inverse, ("float16", *TYPES)),
    ("MatrixSolve", solve, TYPES),
    ("MatrixTriangularSolve", triangular_solve, TYPES),
    ("Qr", qr, ("float16", *TYPES)),
    ("Svd", svd, TYPES),
    # the names of ops before GraphDef version 13, when ops of the shorter names took one matrix
    ("BatchCholesky", cholesky, REAL),
    ("BatchCholeskyGrad", cholesky_gradient, REAL),
    ("BatchMatrixDeterminant", determinant, TYPES),
    ("BatchMatrixInverse", inverse, REAL),
    ("BatchMatrixSolve", solve, REAL),
    ("BatchMatrixTriangularSolve", triangular_solve, REAL),
    ("BatchSvd", svd, TYPES),
)


def register_kernels(kernels: Kernels) -> None:
    for op, bind, types in BINDS:
        kernels.kernel(op, dtypes={"T": types})(bind)
