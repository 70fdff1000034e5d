"""Roots, logarithms and exponentials of matrices, by SciPy: the extra `special` of heald.

Roots and logarithms are those of the triangle in Schur's form. A matrix without a result is NaN as a whole, as in
TensorFlow. Such are matrices with infinity or NaN. A logarithm takes no eigenvalue 0, and a real root no negative one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, Library

from ..element_types import COMPLEX, Array

SCIPY = Library("SciPy", "scipy", "scipy")
Run = Callable[..., None]
Function = Callable[[Any, Array], Any]  # of scipy.linalg and a matrix
TYPES = ("float32", "float64", *COMPLEX)


def root(linalg: Any, x: Array) -> Any:
    triangle, unitary = linalg.schur(x)
    if x.dtype.kind == "f":
        if _has_negative_eigenvalue(triangle):
            return np.nan
        triangle, unitary = linalg.rsf2csf(triangle, unitary)
    turned = unitary @ _triangular_root(triangle) @ unitary.conj().T
    return turned if x.dtype.kind == "c" else turned.real


def _has_negative_eigenvalue(triangle: Array) -> bool:
    """Blocks of two rows, which have a number below the diagonal, stand for pairs of complex eigenvalues."""
    below = np.diag(triangle, -1) != 0
    in_block = np.append(below, False) | np.insert(below, 0, False)
    return bool((np.diag(triangle)[~in_block] < 0).any())


def _triangular_root(x: Array) -> Array:
    out = np.diag(np.sqrt(np.diag(x)))
    for column in range(1, len(x)):
        for row in reversed(range(column)):
            between = slice(row + 1, column)
            rest = x[row, column] - out[row, between] @ out[between, column]
            out[row, column] = rest / (out[row, row] + out[column, column])
    return out


def logarithm(linalg: Any, x: Array) -> Any:
    triangle, unitary = linalg.schur(x)
    if (np.diag(triangle) == 0).any():
        return np.nan
    return unitary @ linalg.logm(triangle) @ unitary.conj().T


def exponential(b: Bind) -> Run:
    from scipy import linalg

    def run(x: Array, out: Array) -> None:
        finite = np.isfinite(x).all((-2, -1), keepdims=True)
        out[...] = np.where(finite, linalg.expm(x), np.nan)

    return run if b.outputs[0].size else lambda *_: None


def each_matrix(function: Function) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        from scipy import linalg

        side = b.outputs[0].dims[-1]

        def run(x: Array, out: Array) -> None:
            matrices = zip(x.reshape(-1, side, side), out.reshape(-1, side, side), strict=True)
            for matrix, result in matrices:
                result[...] = function(linalg, matrix) if np.isfinite(matrix).all() else np.nan

        return run if b.outputs[0].size else lambda *_: None

    return bind


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("MatrixExponential", dtypes={"T": TYPES}, library=SCIPY)(exponential)
    kernels.kernel("MatrixLogarithm", dtypes={"T": COMPLEX}, library=SCIPY)(each_matrix(logarithm))
    kernels.kernel("MatrixSquareRoot", dtypes={"T": TYPES}, library=SCIPY)(each_matrix(root))
