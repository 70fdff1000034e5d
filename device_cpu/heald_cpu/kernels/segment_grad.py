"""Gradients of sums over rows that indices pick: each picked row gets the gradient of its segment, scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import FLOATS, NARROW, Array
from .const_inputs import integer
from .index_checks import check_inside
from .segment import add_rows

Run = Callable[..., Any]
Scale = Callable[[Array], Array] | None  # from the numbers of rows in the segments to divisors

SCALES: tuple[tuple[str, Scale], ...] = (
    ("SparseSegmentMeanGrad", lambda counts: counts),
    ("SparseSegmentSqrtNGrad", np.sqrt),
    ("SparseSegmentSumGrad", None),
)


def gradient(scale: Scale) -> Callable[[Bind], Run]:
    """The bind function of an op whose result has all rows; rows without an index are 0."""

    def bind(b: Bind) -> Run:
        rows = integer(b, 3)

        def run(gradients: Array, indices: Array, ids: Array, _: Array, out: Array) -> None:
            out.fill(0)
            _add_gradients(gradients, indices, ids, rows, scale, out)

        return run

    return bind


def compact_gradient(scale: Scale) -> Callable[[Bind], Run]:
    """The bind function of an op whose result has the picked rows alone, and their indices."""

    def bind(b: Bind) -> Run:
        def run(gradients: Array, indices: Array, ids: Array, size: Array) -> tuple[Array, Array]:
            rows = int(size)
            if rows < 0:
                raise errors.InvalidArgument(f"Expected a non-negative size, got {rows}")
            check_inside(indices, rows, "indices")
            picked, places = np.unique(indices, return_inverse=True)
            b.ask(len(picked) * gradients[:1].nbytes, "a tensor of gradients")
            out = np.zeros((len(picked), *gradients.shape[1:]), gradients.dtype)
            _add_gradients(gradients, places.reshape(-1), ids, len(picked), scale, out)
            return out, picked

        return run

    return bind


def _add_gradients(gradients: Array, indices: Array, ids: Array, rows: int, scale: Scale, out: Array) -> None:
    check_inside(indices, rows, "indices")
    check_inside(ids, len(gradients), "segment_ids")
    if not len(ids):
        return
    wide = gradients.astype(np.float32) if gradients.dtype.name in NARROW else gradients
    if scale is not None:
        counts = np.bincount(ids, minlength=len(gradients)).clip(1)
        wide = wide / scale(counts).astype(wide.dtype).reshape(-1, *(1,) * (wide.ndim - 1))
    order = indices.argsort(kind="stable")
    add_rows(wide[ids[order]], indices[order], out)


def register_kernels(kernels: Kernels) -> None:
    for op, scale in SCALES:
        kernels.kernel(op, dtypes={"T": FLOATS})(gradient(scale))
        kernels.kernel(f"{op}V2", dtypes={"T": FLOATS}, allocates=True)(compact_gradient(scale))
