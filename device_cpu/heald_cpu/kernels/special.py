"""The rarer special functions, by SciPy: the extra `special` of heald."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, Library

from ..element_types import Array, stepwise

SCIPY = Library("SciPy", "scipy", "scipy")
WIDE = ("float32", "float64")
LARGE_EVEN_NUMBER = 1e30  # an even number, as all large floats are
Function = Callable[..., object]  # of inputs and out


def by_name(name: str) -> Callable[[Any], Function]:
    return lambda special: getattr(special, name)


def zeta(special: Any) -> Function:
    """The Hurwitz zeta function. For an integer `q` below 1 a term is infinite: the result is NaN unless `x` is even or
    1. For `x` so large that SciPy returns NaN, only the first term is left. Infinity counts as an even number.
    """

    def run(x: Array, q: Array, out: Array) -> None:
        x = np.minimum(x, x.dtype.type(LARGE_EVEN_NUMBER))
        np.copyto(out, np.where((x > 1e10) & (q > 0), np.power(q, -x), special.zeta(x, q)))
        out[(q <= 0) & (q == np.floor(q)) & (x % 2 != 0) & (x != 1)] = np.nan

    return run


def digamma(special: Any) -> Function:
    def run(x: Array, out: Array) -> None:
        np.copyto(out, np.where(x == 0, np.nan, special.psi(x)), casting="same_kind")

    return run


def lgamma(special: Any) -> Function:
    def run(x: Array, out: Array) -> None:
        np.copyto(out, np.where(np.isinf(x), np.inf, special.gammaln(x)), casting="same_kind")

    return run


def polygamma(special: Any) -> Function:
    """The polygamma function of order n: (-1)**(n + 1) n! zeta(n + 1, x), digamma for order 0, NaN if n is no order."""

    of_order_0, of_higher_order = digamma(special), zeta(special)

    def run(n: Array, x: Array, out: Array) -> None:
        lowest = np.empty_like(x)
        of_order_0(x, lowest)
        of_higher_order(n + 1, x, out)
        higher = out * np.where(n % 2 == 0, -1, 1) * special.gamma(n + 1)
        is_order = (n >= 0) & (n == np.floor(n))
        np.copyto(out, np.where(n == 0, lowest, np.where(is_order, higher, np.nan)), casting="same_kind")

    return run


def igamma(special: Any) -> Function:
    """The regularised integral from 0 to `x`. NaN if `a` is not positive, unless `x` is 0."""

    def run(a: Array, x: Array, out: Array) -> None:
        special.gammainc(a, x, out)
        out[(a <= 0) & (x != 0)] = np.nan
        out[np.broadcast_to(x == 0, out.shape)] = 0

    return run


def igammac(special: Any) -> Function:
    """The regularised integral from `x` on."""

    def run(a: Array, x: Array, out: Array) -> None:
        special.gammaincc(a, x, out)
        out[(a > 0) & np.isposinf(x)] = 0
        out[np.broadcast_to(a <= 0, out.shape)] = np.nan

    return run


def betainc(special: Any) -> Function:
    """The regularised incomplete beta function: NaN unless `a` and `b` are positive, and finite between both ends.
    SciPy's has infinity in float32 for some parameters beyond 100."""

    def run(a: Array, b: Array, x: Array, out: Array) -> None:
        integral = special.betainc(*(parameter.astype(np.float64) for parameter in (a, b, x)))
        at_end = (x == 0) | (x == 1)
        is_finite = np.isfinite(a) & np.isfinite(b)
        np.copyto(out, np.where(is_finite, integral, np.where(at_end, x, np.nan)), casting="same_kind")
        out[np.broadcast_to((a <= 0) | (b <= 0), out.shape)] = np.nan

    return run


def modified_bessel(name: str) -> Callable[[Any], Function]:
    """A function that overflows as soon as the exponential of `x` does."""

    def make(special: Any) -> Function:
        function = getattr(special, name)

        def run(x: Array, out: Array) -> None:
            overflows = np.isfinite(x) & np.isposinf(np.exp(np.abs(x)))
            np.copyto(out, np.where(overflows, np.copysign(np.inf, function(x)), function(x)))

        return run

    return make


def with_pole_at_0(name: str, pole: float) -> Callable[[Any], Function]:
    """A function of positive numbers that has this limit at 0, which is TensorFlow's result for negative numbers."""

    def make(special: Any) -> Function:
        function = getattr(special, name)
        return lambda x, out: np.copyto(out, np.where(x < 0, pole, function(x)), casting="same_kind")

    return make


def y1(special: Any) -> Function:
    """The result at 0 is NaN in float32, as in TensorFlow."""
    function = with_pole_at_0("y1", -np.inf)(special)

    def run(x: Array, out: Array) -> None:
        at_zero = x == 0
        function(x, out)
        if out.dtype == np.float32:
            out[at_zero] = np.nan

    return run


def expint(special: Any) -> Function:
    """The exponential integral: NaN for negative numbers and infinity."""

    def run(x: Array, out: Array) -> None:
        np.copyto(out, np.where(np.isposinf(np.exp(x)), np.inf, special.expi(x)), casting="same_kind")
        out[(x < 0) | np.isinf(x)] = np.nan

    return run


def fresnel(part: int) -> Callable[[Any], Function]:
    """The integral of the sine (part 0) or the cosine (part 1). SciPy has NaN where its limit is reached."""

    def make(special: Any) -> Function:
        def run(x: Array, out: Array) -> None:
            integral = special.fresnel(x)[part]
            np.copyto(out, np.where(np.isnan(integral) & ~np.isnan(x), np.copysign(0.5, x), integral),
                      casting="same_kind")

        return run

    return make


HALF = ("float16", *WIDE)
# op, maker of the function given scipy.special, types
TABLE: tuple[tuple[str, Callable[[Any], Function], tuple[str, ...]], ...] = (
    ("BesselI0", modified_bessel("i0"), HALF),
    ("BesselI0e", by_name("i0e"), HALF),
    ("BesselI1", modified_bessel("i1"), HALF),
    ("BesselI1e", by_name("i1e"), HALF),
    ("BesselJ0", by_name("j0"), HALF),
    ("BesselJ1", by_name("j1"), HALF),
    ("BesselK0", with_pole_at_0("k0", np.inf), HALF),
    ("BesselK0e", with_pole_at_0("k0e", np.inf), HALF),
    ("BesselK1", with_pole_at_0("k1", np.inf), HALF),
    ("BesselK1e", with_pole_at_0("k1e", np.inf), HALF),
    ("BesselY0", with_pole_at_0("y0", -np.inf), HALF),
    ("BesselY1", y1, HALF),
    ("Betainc", betainc, WIDE),
    ("Dawsn", by_name("dawsn"), WIDE),
    ("Digamma", digamma, HALF),
    ("Erfinv", by_name("erfinv"), WIDE),
    ("Expint", expint, WIDE),
    ("FresnelCos", fresnel(1), WIDE),
    ("FresnelSin", fresnel(0), WIDE),
    ("Igamma", igamma, WIDE),
    ("Igammac", igammac, WIDE),
    ("Lgamma", lgamma, HALF),
    ("Ndtri", by_name("ndtri"), WIDE),
    ("Polygamma", polygamma, WIDE),
    ("Spence", by_name("spence"), WIDE),
    ("Zeta", zeta, WIDE),
)


def from_scipy(make: Callable[[Any], Function]) -> Callable[[Bind], Function]:
    def bind(b: Bind) -> Function:
        from scipy import special

        return stepwise(make(special))(b)

    return bind


def register_kernels(kernels: Kernels) -> None:
    for op, make, types in TABLE:
        kernels.kernel(op, dtypes={"T": types}, library=SCIPY)(from_scipy(make))
