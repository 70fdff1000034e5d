"""Answers of ops whose definition leaves something open: two right answers need not be equal.

Eigenvectors are defined but for their sign or phase, and so are singular vectors. Vectors of equal eigenvalues are any
basis of their space. So a decomposition is compared by its definition: the values with TensorFlow's, the vectors by the
products that they must make. TensorFlow leaves vectors unset that the attributes do not ask for. The eigenvalues of a
general real matrix have no order in TensorFlow: it is that in which its iteration finds them. The complex ones are
sorted by their magnitude.

Noise without a seed differs from call to call. Further answers of TensorFlow show the elements that are noise. Noise is
clipped to the range of an image, so two answers may agree by chance.

A gradient of Cholesky's factor may lose all digits to rounding. It is compared with the same in float64: heald's error
must be of the size of TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Outputs = Sequence[Array]
LIMITS = {4: 1e-4, 8: 1e-10}  # relative errors of products, by the bytes of a real number
NOISY = ("ExtractGlimpse", "ExtractGlimpseV2")
ROUNDED = ("BatchCholeskyGrad", "CholeskyGrad")
LARGEST_ERROR_RATIO = 8  # of heald's largest relative error to TensorFlow's


def is_same_decomposition(op: str, attrs: Mapping[str, Any], x: Array, got: Outputs, want: Outputs) -> bool:
    """True if each matrix of `x` has equal answers, or two right decompositions. False for any other op."""
    check = DECOMPOSITIONS.get(op)
    has_vectors = attrs.get("compute_v", attrs.get("compute_uv", True))
    got, want = (outputs if has_vectors else outputs[:1] for outputs in (got, want))
    if check is None or [g.shape for g in got] != [np.shape(w) for w in want]:
        return False
    wide = np.complex128 if "c" in (x.dtype.kind, got[0].dtype.kind) else np.float64
    limit = LIMITS[got[0].real.dtype.itemsize] * max(x.shape[-2:])
    for index in np.ndindex(x.shape[:-2]):
        parts = [[out[index].astype(wide) for out in outputs] for outputs in (got, want)]
        are_equal = all(np.allclose(g, w, limit, 0, equal_nan=True) for g, w in zip(*parts, strict=True))
        if not are_equal and not check(x[index].astype(wide), *parts, limit):
            return False
    return True


def _is_same_svd(x: Array, got: Outputs, want: Outputs, limit: float) -> bool:
    if not np.isfinite(x).all() or not _close(got[0], want[0], limit):
        return False
    if len(got) == 1:
        return True
    s, u, v = got
    count = s.shape[-1]
    product = u[:, :count] * s @ _adjoint(v[:, :count])
    return _close(product, x, limit) and _is_orthonormal(u, limit) and _is_orthonormal(v, limit)


def _is_same_first_version(x: Array, got: Outputs, want: Outputs, limit: float) -> bool:
    """Self-adjoint matrices, whose values are the row above the vectors."""
    parts = ([out[0], out[1:]] for (out,) in (got, want))
    return _is_same_self_adjoint(x, *parts, limit)


def _is_same_self_adjoint(x: Array, got: Outputs, want: Outputs, limit: float) -> bool:
    lower = np.tril(x)
    if not np.isfinite(lower).all() or not _close(got[0], want[0], limit):
        return False
    if len(got) == 1:
        return True
    values, vectors = got
    whole = lower + _adjoint(np.tril(lower, -1))
    return _is_orthonormal(vectors, limit) and _are_eigenvectors(whole, values, vectors, limit)


def _is_same_eigen(x: Array, got: Outputs, want: Outputs, limit: float) -> bool:
    """The vectors have length 1, and span what TensorFlow's span."""
    values = got[0]
    if not np.isfinite(x).all() or not np.isfinite(values).all():
        return False
    if not _close(values, want[0] if x.imag.any() else _nearest(values, want[0]), limit):
        return False
    if len(got) == 1:
        return True
    vectors = got[1]
    ranks = [np.linalg.matrix_rank(columns, rtol=1e-3) for columns in (vectors, want[1])]
    return (_close(np.linalg.norm(vectors, axis=0), 1, limit) and ranks[0] == ranks[1]
            and _are_eigenvectors(x, values, vectors, limit))


def _are_eigenvectors(x: Array, values: Array, vectors: Array, limit: float) -> bool:
    return bool((np.abs(x @ vectors - vectors * values) <= limit * np.abs(x).max(initial=0)).all())


def _nearest(values: Array, other: Array) -> Array:
    """For each number of `values`, the nearest one of `other` that is left."""
    rest, nearest = other.copy(), np.empty_like(other)
    for i, value in enumerate(values):
        index = np.nanargmin(np.abs(rest - value))
        nearest[i], rest[index] = rest[index], np.nan
    return nearest


def _adjoint(x: Array) -> Array:
    return x.swapaxes(-2, -1).conj()


def _is_orthonormal(vectors: Array, limit: float) -> bool:
    return _close(_adjoint(vectors) @ vectors, np.eye(vectors.shape[-1]), limit)


def _close(a: Array, b: Any, limit: float) -> bool:
    """True if no two elements differ by more than `limit`, relative to the largest one."""
    return bool((np.abs(a - b) <= limit * np.abs(b).max(initial=0)).all())


DECOMPOSITIONS: dict[str, Callable[[Array, Outputs, Outputs, float], bool]] = {
    "BatchSelfAdjointEig": _is_same_first_version, "BatchSelfAdjointEigV2": _is_same_self_adjoint,
    "BatchSvd": _is_same_svd, "Eig": _is_same_eigen, "SelfAdjointEig": _is_same_first_version,
    "SelfAdjointEigV2": _is_same_self_adjoint, "Svd": _is_same_svd,
}


def without_noise(want: Outputs, others: Sequence[Outputs], got: Outputs) -> list[Array]:
    """TensorFlow's first answer. Elements that differ in one of its other answers are replaced by heald's."""
    outputs = []
    for first, ours, *again in zip(want, got, *others, strict=True):
        is_settled = np.all([first == other for other in again], axis=0)
        outputs.append(np.where(is_settled, first, ours) if np.shape(first) == ours.shape else first)
    return outputs


def is_as_exact(got: Outputs, want: Outputs, exact: Outputs) -> bool:
    """True if the errors of `got` have the size of the errors of `want`. Both are float32, and `exact` is float64."""
    for g, w, e in zip(got, want, exact, strict=True):
        with np.errstate(all="ignore"):
            errors = [np.abs(x - e) / np.abs(e) for x in (g, w)]
        if not np.isfinite(errors).all() or errors[0].max() > LARGEST_ERROR_RATIO * errors[1].max():
            return False
    return True
