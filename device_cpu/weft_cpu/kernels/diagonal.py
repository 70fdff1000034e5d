"""Kernels that make tensors of diagonals, take diagonals out of them, or put diagonals in.

Each is one table of pairs, made once: the elements of a matrix that lie on its diagonals, and where they are in the
packed diagonals (see the metadata functions for how these are laid out).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from weft.api import Bind, Kernels

from .element_types import NUMBERS, zero
from .known import integers

Run = Callable[..., None]
TYPES = (*NUMBERS, "bool")


def diag(b: Bind) -> Run:
    count = b.inputs[0].size

    def run(x: Any, out: Any) -> None:
        out.fill(0)
        np.fill_diagonal(out.reshape(count, count), x)

    return run


def diag_part(b: Bind) -> Run:
    count = b.outputs[0].size
    return lambda x, out: np.copyto(out.reshape(-1), x.reshape(count, count).diagonal())


def _entries(b: Bind, rows: int, columns: int) -> tuple[Any, Any]:
    """Where the elements of the diagonals are in a flat matrix, and where in flat packed diagonals."""
    lower, upper = _band(b)
    longest = min(rows + min(upper, 0), columns - max(lower, 0))
    super_left, sub_left = (side == "LEFT" for side in b.attrs.get("align", "LEFT_LEFT").split("_"))
    cells, slots = [], []
    for row, k in enumerate(range(upper, lower - 1, -1)):
        length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
        left = (k >= 0 and super_left) or (k <= 0 and sub_left)
        along = np.arange(length)
        cells.append((along - min(k, 0)) * columns + along + max(k, 0))
        slots.append(along + row * longest + (0 if left else longest - length))
    return np.concatenate(cells), np.concatenate(slots)


def _band(b: Bind) -> tuple[int, int]:
    """The lowest and the highest diagonal. The first ops of each kind know the main one only."""
    if b.op in ("MatrixDiag", "MatrixDiagPart", "MatrixSetDiag"):
        return 0, 0
    k = integers(b, 2 if b.op.startswith("MatrixSetDiag") else 1)
    return k[0], k[-1]


def _flat(shape: tuple[int, ...], lead: int) -> tuple[int, int]:
    """A batch of flat matrices; the batch has `lead` dimensions."""
    return prod(shape[:lead]), prod(shape[lead:])


def matrix_diag(b: Bind) -> Run:
    shape = b.outputs[0].dims
    cells, slots = _entries(b, *shape[-2:])
    lead = len(shape) - 2
    packed, matrices = _flat(b.inputs[0].meta.dims, lead), _flat(shape, lead)

    def run(x: Any, *rest: Any) -> None:
        *others, out = rest
        out[...] = others[-1] if others else 0
        out.reshape(matrices)[:, cells] = x.reshape(packed)[:, slots]

    return run


def matrix_diag_part(b: Bind) -> Run:
    shape = b.inputs[0].meta.dims
    cells, slots = _entries(b, *shape[-2:])
    lead = len(shape) - 2
    packed, matrices = _flat(b.outputs[0].dims, lead), _flat(shape, lead)

    def run(x: Any, *rest: Any) -> None:
        *others, out = rest
        out[...] = others[-1] if others else 0
        out.reshape(packed)[:, slots] = x.reshape(matrices)[:, cells]

    return run


def matrix_set_diag(b: Bind) -> Run:
    shape = b.inputs[0].meta.dims
    cells, slots = _entries(b, *shape[-2:])
    lead = len(shape) - 2
    packed, matrices = _flat(b.inputs[1].meta.dims, lead), _flat(shape, lead)

    def run(x: Any, diagonal: Any, *k_and_out: Any) -> None:
        out = k_and_out[-1]
        np.copyto(out, x)
        out.reshape(matrices)[:, cells] = diagonal.reshape(packed)[:, slots]

    return run


def matrix_band_part(b: Bind) -> Run:
    rows, columns = b.inputs[0].meta.dims[-2:]
    (lower,), (upper,) = integers(b, 1), integers(b, 2)
    above = np.arange(columns) - np.arange(rows)[:, None]  # the number of each element's diagonal
    kept = (above >= -lower if lower >= 0 else above >= -rows) & (above <= upper if upper >= 0 else above <= columns)
    blank = zero(b.outputs[0].dtype)

    def run(x: Any, _lower: Any, _upper: Any, out: Any) -> None:
        out.fill(blank)
        np.copyto(out, x, where=kept)

    return run


def register(kernels: Kernels) -> None:
    for op, bind in {"Diag": diag, "DiagPart": diag_part, "MatrixBandPart": matrix_band_part}.items():
        kernels.kernel(op, dtypes={"T": TYPES})(bind)
    for kind, bind in {
        "MatrixDiag": matrix_diag, "MatrixDiagPart": matrix_diag_part, "MatrixSetDiag": matrix_set_diag,
    }.items():
        for version in ("", "V2", "V3"):
            kernels.kernel(kind + version, dtypes={"T": TYPES})(bind)
