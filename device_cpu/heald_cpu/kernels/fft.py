"""Fourier transforms of the last dimensions, by NumPy, which computes in the precision of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from .staging import nothing

Run = Callable[..., None]
RANKS = {"": 1, "2D": 2, "3D": 3}
COMPLEX: dict[str, Callable[..., Any]] = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn}
REAL: dict[str, Callable[..., Any]] = {"RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}  # given the real tensor's lengths


def transform(function: Callable[..., Any], rank: int) -> Callable[[Bind], Run]:
    axes = tuple(range(-rank, 0))

    def bind(b: Bind) -> Run:
        return (lambda x, out: np.copyto(out, function(x, axes=axes))) if b.outputs[0].size else nothing

    return bind


def real_transform(function: Callable[..., Any], rank: int) -> Callable[[Bind], Run]:
    axes = tuple(range(-rank, 0))

    def bind(b: Bind) -> Run:
        value = b.inputs[1].value
        assert value is not None
        lengths = tuple(int(length) for length in value)
        if not b.outputs[0].size:
            return nothing
        return lambda x, _, out: np.copyto(out, function(x, lengths, axes))

    return bind


def register_kernels(kernels: Kernels) -> None:
    for suffix, rank in RANKS.items():
        for op, function in COMPLEX.items():
            kernels.kernel(op + suffix)(transform(function, rank))
        for op, function in REAL.items():
            kernels.kernel(op + suffix)(real_transform(function, rank))
