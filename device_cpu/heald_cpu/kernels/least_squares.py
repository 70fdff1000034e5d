"""Solutions of linear equations in the sense of least squares.

The fast form solves the normal equations of the smaller side by Cholesky's factor, with a regulariser. The slow form
has none: its solution is the shortest, by singular values, so that it exists for every matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, Array
from .linalg import adjoint_of

Run = Callable[..., None]
REAL = ("float32", "float64")


def solve(b: Bind) -> Run:
    solution = _regular if b.attrs["fast"] else _shortest
    is_empty, has_matrices = 0 in (b.outputs[0].size, b.inputs[0].meta.dims[-2]), 0 not in b.inputs[0].meta.dims[:-2]

    def run(a: Array, y: Array, regulariser: Array, out: Array) -> None:
        if has_matrices and not regulariser >= 0:  # NaN is refused, too
            raise errors.InvalidArgument(f"l2_regularizer must be >= 0, got {regulariser}")
        out[...] = 0 if is_empty else solution(a, y, a.real.dtype.type(regulariser))

    return run


def _regular(a: Array, y: Array, regulariser: Any) -> Any:
    """The solution of the normal equations. NaN makes NaN."""
    rows, columns = a.shape[-2:]
    if rows >= columns:
        return _definite_solution(adjoint_of(a) @ a, adjoint_of(a) @ y, regulariser)
    return adjoint_of(a) @ _definite_solution(a @ adjoint_of(a), y, regulariser)


def _definite_solution(gramian: Array, y: Array, regulariser: Any) -> Any:
    """Raises InvalidArgument if the matrix is not positive definite."""
    if np.isnan(gramian).any():
        return np.full_like(y, np.nan)
    regular = gramian + regulariser * np.eye(gramian.shape[-1], dtype=gramian.dtype)
    try:
        lower = np.linalg.cholesky(regular)
    except np.linalg.LinAlgError:
        raise errors.InvalidArgument("Input matrix was rank deficient or ill-conditioned. Try setting fast=False or "
                                     "provide a larger l2_regularizer > 0.") from None
    return np.linalg.solve(adjoint_of(lower), np.linalg.solve(lower, y))


def _shortest(a: Array, y: Array, _: Any) -> Any:
    """The solution by singular values. A matrix with NaN or infinity counts as one of rank 0, as in TensorFlow."""
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    cutoff = np.finfo(a.dtype).eps * max(a.shape[-2:])
    return np.where(finite, np.linalg.pinv(np.where(finite, a, 0), cutoff) @ y, 0)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("MatrixSolveLs", dtypes={"T": (*REAL, *COMPLEX)})(solve)
    kernels.kernel("BatchMatrixSolveLs", dtypes={"T": REAL})(solve)
