"""Derivatives of the regularised incomplete gamma function P(a, x), and of gamma numbers, by their parameter `a`.

P is its leading term, x^a e^-x / gamma(a + 1), times a power series where x is at most 1 or `a`. 1 - P is such a term
times a continued fraction elsewhere. Both are differentiated term by term, in float64, until nothing changes. The
derivative of a number x that has the distribution P follows from that of P, which stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, Library

from ..element_types import Array

SCIPY = Library("SciPy", "scipy", "scipy")
Run = Callable[..., None]
MOST_TERMS = 10_000  # TensorFlow takes 500
EPSILON = np.finfo(np.float64).eps
LARGE = 1 / EPSILON  # numerators and denominators of fractions are scaled down beyond it


def derivative(*, of_sample: bool) -> Callable[[Bind], Run]:
    def bind(_: Bind) -> Run:
        from scipy import special

        def run(a: Array, x: Array, out: Array) -> None:
            wide_a, wide_x = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
            leading = np.exp(wide_a * np.log(wide_x) - wide_x - special.gammaln(wide_a))  # of 1 - P
            is_series = (wide_x <= 1) | (wide_x <= wide_a)
            factor = np.where(is_series, _series(special, wide_a, wide_x), -_fraction(special, wide_a, wide_x))
            scale = -wide_x if of_sample else leading
            result = factor * np.where(is_series, scale / wide_a, scale)
            vanishes = (leading.astype(out.dtype) == 0) | np.isinf(wide_a) | np.isposinf(wide_x)
            invalid = (wide_a <= 0) | (wide_x < 0) | np.isnan(wide_a) | np.isnan(wide_x)
            out[...] = np.where(wide_x == 0, 0, np.where(invalid, np.nan, np.where(vanishes, 0, result)))

        return run

    return bind


def _series(special: Any, a: Array, x: Array) -> Any:
    """The sum's derivative, and the sum times that of the logarithm of its leading term."""
    x = np.where(x <= np.maximum(a, 1), x, 0)  # the others need no terms
    term, term_slope, total, slope = np.ones_like(x), np.zeros_like(x), np.ones_like(x), np.zeros_like(x)
    for n in range(1, MOST_TERMS):
        quotient = x / (a + n)
        term_slope = term_slope * quotient - term * quotient / (a + n)
        term = term * quotient
        total += term
        slope += term_slope
        if not (np.abs(term_slope) > EPSILON * np.abs(slope)).any():
            break
    return slope + total * (np.log(x) - special.psi(a + 1))


def _fraction(special: Any, a: Array, x: Array) -> Any:
    """As `_series`, for the continued fraction of 1 - P."""
    used = (x > 1) & (x > a) & np.isfinite(x) & (a > 0)
    a, x = np.where(used, a, 1), np.where(used, x, 2)
    y, z = 1 - a, x + 2 - a
    old, new = np.stack([np.ones_like(x), x]), np.stack([x + 1, z * x])  # numerators and denominators
    old_slopes, new_slopes = np.zeros_like(old), np.stack([np.zeros_like(x), -x])
    value = new[0] / new[1]
    slope = -value * new_slopes[1] / new[1]
    for n in range(1, MOST_TERMS):
        y, z = y + 1, z + 2
        old_slopes, new_slopes = new_slopes, new_slopes * z - new - old_slopes * y * n + old * n
        old, new = new, new * z - old * y * n
        value = new[0] / new[1]
        before, slope = slope, (new_slopes[0] - value * new_slopes[1]) / new[1]
        if not (np.abs(slope - before) > EPSILON * np.maximum(np.abs(slope), 1)).any():
            break
        scale = np.where(np.abs(new[0]) > LARGE, EPSILON, 1)
        old, new, old_slopes, new_slopes = (part * scale for part in (old, new, old_slopes, new_slopes))
    return slope + value * (np.log(x) - special.psi(a))


def register_kernels(kernels: Kernels) -> None:
    for op, of_sample in (("IgammaGradA", False), ("RandomGammaGrad", True)):
        kernels.kernel(op, dtypes={"T": ("float32", "float64")}, library=SCIPY)(derivative(of_sample=of_sample))
