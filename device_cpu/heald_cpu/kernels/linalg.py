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
    """`function(x, *others)`. Raises InvalidArgument if `x` is singular or has NaN: such a matrix has no pivots."""
    try:
        if not np.isnan(x).any():
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
    full, vectors = b.attrs["full_matrices"], b.attrs["compute_uv"]

    def values_only(x: Array, s: Array, _u: Array, _v: Array) -> None:
        s[...] = np.linalg.svd(x, compute_uv=False)

    def run(x: Array, s: Array, u: Array, v: Array) -> None:
        u[...], s[...], adjoint = np.linalg.svd(x, full)
        v[...] = adjoint_of(adjoint)

    return run if vectors else values_only


def lu(b: Bind) -> Run:
    """Both triangles in one matrix, without the lower one's diagonal of 1; and the rows by their old numbers."""

    def run(x: Array, out: Array, rows: Array) -> None:
        out[...] = x
        rows[...] = np.arange(x.shape[-1])
        for matrix, order in zip(_each(out), rows.reshape(-1, rows.shape[-1]), strict=True):
            _factor(matrix, order)

    return run if b.outputs[0].size else lambda *_: None


def _factor(x: Array, order: Array) -> None:
    """Factor in place. Raises InvalidArgument if a column has no pivot but 0 or NaN."""
    for column in range(len(x)):
        pivot = column + int(np.argmax(np.abs(x[column:, column])))
        if not np.abs(x[pivot, column]) > 0:
            raise errors.InvalidArgument("Input is not invertible.")
        for rows in (x, order):
            rows[[column, pivot]] = rows[[pivot, column]]
        x[column + 1 :, column] /= x[column, column]
        x[column + 1 :, column + 1 :] -= np.outer(x[column + 1 :, column], x[column, column + 1 :])


def cholesky_gradient(b: Bind) -> Run:
    """The symmetric gradient of the matrix, for that of its factor: L^-T P L^-1, where P is the lower triangle of
    L^T dL with half its diagonal. Each input counts as lower triangle."""

    def run(lower: Array, grad: Array, out: Array) -> None:
        lower = np.tril(lower)
        middle = np.tril(lower.swapaxes(-2, -1) @ np.tril(grad))
        middle -= np.eye(middle.shape[-1], dtype=middle.dtype) * middle / 2
        upper = lower.swapaxes(-2, -1)[..., ::-1, ::-1]
        for _ in range(2):
            _substitute(upper, middle[..., ::-1, :])
            middle = middle.swapaxes(-2, -1)
        out[...] = (middle + middle.swapaxes(-2, -1)) / 2

    return run if b.outputs[0].size else lambda *_: None


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
