"""Complex numbers: their composition from parts, their real-valued functions, and log1p, imprecise in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Kernels

from ..element_types import COMPLEX, Array

PARTS = {"complex64": "float32", "complex128": "float64"}


def complex_(real: Array, imag: Array, out: Array) -> None:
    out.real[...] = real
    out.imag[...] = imag


def angle(x: Array, out: Array) -> None:
    np.arctan2(x.imag, x.real, out)


def log1p(x: Array, out: Array) -> None:
    """log(1 + x), for small x with the real log1p: NumPy's complex log1p loses small numbers in the sum."""
    logarithm, real, imag = np.log(x + 1), x.real, x.imag
    small = 0.5 * np.log1p(real * (real + 2) + np.square(imag))
    out.real[...] = np.where(np.absolute(x) < 0.5, small, logarithm.real)
    out.imag[...] = logarithm.imag


OF_COMPLEX: dict[str, Callable[..., object]] = {
    "Angle": angle,
    "ComplexAbs": np.absolute,
    "Imag": lambda x, out: np.copyto(out, x.imag),
    "Real": lambda x, out: np.copyto(out, x.real),
}


def register_kernels(kernels: Kernels) -> None:
    for complex_type, part in PARTS.items():
        kernels.kernel("Complex", dtypes={"T": part, "Tout": complex_type})(lambda _: complex_)
        for op, function in OF_COMPLEX.items():
            kernels.kernel(op, dtypes={"T": complex_type, "Tout": part})(lambda _, function=function: function)
    kernels.kernel("Conj", dtypes={"T": COMPLEX}, inplace={0: 0})(lambda _: np.conjugate)
    kernels.kernel("Log1p", dtypes={"T": COMPLEX}, inplace={0: 0})(lambda _: log1p)
