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


# op, maker of the function given scipy.special, types
TABLE: tuple[tuple[str, Callable[[Any], Function], tuple[str, ...]], ...] = (
    ("BesselI0e", by_name("i0e"), ("float16", *WIDE)),
    ("BesselI1e", by_name("i1e"), ("float16", *WIDE)),
    ("Digamma", digamma, ("float16", *WIDE)),
    ("Erfinv", by_name("erfinv"), WIDE),
    ("Igamma", igamma, WIDE),
    ("Igammac", igammac, WIDE),
    ("Lgamma", lgamma, ("float16", *WIDE)),
    ("Ndtri", by_name("ndtri"), WIDE),
    ("Polygamma", polygamma, WIDE),
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
