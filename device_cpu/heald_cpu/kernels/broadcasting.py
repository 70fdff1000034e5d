"""Kernels that broadcast a tensor, or compute how shapes broadcast against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, geometry

from .const_inputs import integers

Run = Callable[..., None]


def broadcast_to(_: Bind) -> Run:
    return lambda x, _shape, out: np.copyto(out, x)


def broadcast_args(b: Bind) -> Run:
    return _results(b, [geometry.broadcast_shapes(tuple(integers(b, 0)), tuple(integers(b, 1))) or ()])


def broadcast_gradient_args(b: Bind) -> Run:
    return _results(b, geometry.broadcast_gradient_axes(integers(b, 0), integers(b, 1)))


def _results(b: Bind, numbers: Sequence[Sequence[int | None]]) -> Run:
    results = [np.array(n, meta.dtype.numpy) for n, meta in zip(numbers, b.outputs, strict=True)]

    def run(_s0: Any, _s1: Any, *outs: Any) -> None:
        for out, result in zip(outs, results, strict=True):
            np.copyto(out, result)

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "BroadcastArgs": broadcast_args, "BroadcastGradientArgs": broadcast_gradient_args, "BroadcastTo": broadcast_to,
    }.items():
        kernels.kernel(op)(bind)
