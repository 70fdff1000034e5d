"""Eigenvalues and eigenvectors of matrices, by LAPACK through NumPy.

A self-adjoint matrix is given by its lower triangle. Elements above the diagonal may be anything, NaN included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, Array

Run = Callable[..., None]
REAL = ("float32", "float64")
TYPES = (*REAL, *COMPLEX)


def eig(b: Bind) -> Run:
    """Eigenvalues come in the order of their magnitudes, and vectors as columns of length 1."""
    vectors = b.attrs["compute_v"]

    def run(x: Array, e: Array, v: Array) -> None:
        values, columns = _eigen(x)
        order = np.argsort(np.abs(values), axis=-1, kind="stable")
        e[...] = np.take_along_axis(values, order, -1)
        if vectors:
            v[...] = np.take_along_axis(columns, order[..., None, :], -1)

    return run


def _eigen(x: Array) -> tuple[Any, Any]:
    """Raises InvalidArgument for matrices with infinity or NaN."""
    try:
        values, columns = np.linalg.eig(x)
    except np.linalg.LinAlgError:
        raise errors.InvalidArgument("Eigen decomposition was not successful. The input might not be valid.") from None
    return values, columns


def self_adjoint_eig(b: Bind) -> Run:
    vectors = b.attrs["compute_v"]

    def run(x: Array, e: Array, v: Array) -> None:
        _check_finite(x)
        if vectors:
            e[...], v[...] = np.linalg.eigh(x)
        else:
            e[...] = np.linalg.eigvalsh(x)

    return run


def self_adjoint_eig_v1(_: Bind) -> Run:
    """The eigenvalues are the first row of the output, and the vectors are the columns below."""

    def run(x: Array, out: Array) -> None:
        _check_finite(x)
        out[..., 0, :], out[..., 1:, :] = np.linalg.eigh(x)

    return run


def _check_finite(x: Array) -> None:
    """Raise InvalidArgument for NaN or infinity in a lower triangle, with which LAPACK may not end. A single number is
    its own eigenvalue, NaN included."""
    if x.shape[-1] > 1 and not np.isfinite(np.tril(x)).all():
        raise errors.InvalidArgument("Self-adjoint eigen decomposition was not successful: the input has NaN or "
                                     "infinity")


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Eig", dtypes={"T": TYPES})(eig)
    kernels.kernel("SelfAdjointEigV2", dtypes={"T": TYPES})(self_adjoint_eig)
    kernels.kernel("BatchSelfAdjointEigV2", dtypes={"T": REAL})(self_adjoint_eig)
    for op in ("SelfAdjointEig", "BatchSelfAdjointEig"):
        kernels.kernel(op, dtypes={"T": REAL})(self_adjoint_eig_v1)
