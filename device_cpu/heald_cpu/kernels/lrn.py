"""Local response normalisation across neighbouring channels, and its gradient.

y = x * n^-beta with n = bias + alpha * (sum of x^2 over the channels within depth_radius). The window of channels is
symmetric, so dx = dy * n^-beta - 2 * alpha * beta * x * (sum of dy * y / n over the same window).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, geometry

NORMALISED = ("float16", "float32")
Run = Callable[..., None]


def _window_sum(b: Bind) -> Callable[[Any], Any]:
    """The sums over each channel and its neighbours, in float32."""
    depth = b.inputs[0].meta.dims[3]
    size = 2 * min(b.attrs["depth_radius"], max(depth - 1, 0)) + 1
    taps = geometry.window_taps(depth, size, 1, geometry.Window(depth, size // 2, size // 2))

    def window_sum(x: Any) -> Any:
        total = np.zeros_like(x)
        for outputs, inputs in taps:
            into = total[..., outputs]
            np.add(into, x[..., inputs], out=into)
        return total

    return window_sum


def _norm(b: Bind) -> Callable[[Any], Any]:
    window_sum = _window_sum(b)
    bias, alpha = (np.float32(b.attrs[name]) for name in ("bias", "alpha"))
    return lambda x: bias + alpha * window_sum(np.square(x))


def response_normalisation(b: Bind) -> Run:
    norm, beta = _norm(b), np.float32(b.attrs["beta"])

    def run(x: Any, out: Any) -> None:
        wide = x.astype(np.float32, copy=False)
        out[...] = wide * norm(wide) ** -beta

    return run


def response_normalisation_gradient(b: Bind) -> Run:
    norm, window_sum, beta = _norm(b), _window_sum(b), np.float32(b.attrs["beta"])
    factor = np.float32(2 * b.attrs["alpha"]) * beta

    def run(dy: Any, x: Any, y: Any, out: Any) -> None:
        dy, x, y = (array.astype(np.float32, copy=False) for array in (dy, x, y))
        n = norm(x)
        out[...] = dy * n ** -beta - factor * x * window_sum(dy * y / n)

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("LRN", dtypes={"T": NORMALISED})(response_normalisation)
    kernels.kernel("LRNGrad", dtypes={"T": NORMALISED})(response_normalisation_gradient)
