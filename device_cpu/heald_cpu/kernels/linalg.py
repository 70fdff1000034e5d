"""Factorisations, inverses and solutions of matrices, by LAPACK through NumPy, and triangular solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, Array

Run = Callable[..., None]
TYPES = ("float32", "float64", *COMPLEX)
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
        out[...] = _invertible(np.linalg.inv, _adjoint(wide) if adjoint else wide)

    return run


def solve(b: Bind) -> Run:
    adjoint = b.attrs["adjoint"]
    if not b.outputs[0].size:
        return lambda *_: None
    return lambda a, y, out: np.copyto(out, _invertible(np.linalg.solve, _adjoint(a) if adjoint else a, y))


def _adjoint(x: Array) -> Array:
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
            a = _adjoint(a)
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
        v[...] = _adjoint(adjoint)

    return run if vectors else values_only


def self_adjoint_eig(b: Bind) -> Run:
    vectors = b.attrs["compute_v"]

    def run(x: Array, e: Array, v: Array) -> None:
        if np.isnan(x).any():
            raise errors.InvalidArgument("Self-adjoint eigen decomposition was not successful: the input has NaN")
        if vectors:
            e[...], v[...] = np.linalg.eigh(x)
        else:
            e[...] = np.linalg.eigvalsh(x)

    return run


BINDS: tuple[tuple[str, Callable[[Bind], Run], tuple[str, ...]], ...] = (
    ("Cholesky", cholesky, TYPES),
    ("LogMatrixDeterminant", log_determinant, TYPES),
    ("MatrixDeterminant", determinant, TYPES),
    ("MatrixInverse", inverse, ("float16", *TYPES)),
    ("MatrixSolve", solve, TYPES),
    ("MatrixTriangularSolve", triangular_solve, TYPES),
    ("Qr", qr, ("float16", *TYPES)),
    ("SelfAdjointEigV2", self_adjoint_eig, TYPES),
    ("Svd", svd, TYPES),
)


def register_kernels(kernels: Kernels) -> None:
    for op, bind, types in BINDS:
        kernels.kernel(op, dtypes={"T": types})(bind)
