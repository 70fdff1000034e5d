"""Kernels that make tensors of diagonals, take diagonals out of them, or put diagonals in.

Each kernel has one table of pairs, made at bind: the indices of a matrix's elements on its diagonals, and their indices
in the packed diagonals. The metadata functions describe the layout of packed diagonals.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import NUMBERS, zero
from .const_inputs import integers

Run = Callable[..., None]
Entries = tuple[tuple[int, int], Any]  # the shape of a batch of flattened tensors, and indices of elements in each
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
    """Indices of the diagonals' elements in a flat matrix, and in flat packed diagonals."""
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
    """The lowest and the highest diagonal. The first ops of each kind have the main diagonal only."""
    if b.op.removeprefix("Batch") in ("MatrixDiag", "MatrixDiagPart", "MatrixSetDiag"):
        return 0, 0
    k = integers(b, 2 if b.op.startswith("MatrixSetDiag") else 1)
    return k[0], k[-1]


def _on_diagonals(b: Bind, matrices: tuple[int, ...], packed: tuple[int, ...]) -> tuple[Entries, Entries]:
    """The elements on the diagonals of matrices of this shape, and the same elements in packed diagonals."""
    cells, slots = _entries(b, *matrices[-2:])
    lead = len(matrices) - 2
    batch = prod(matrices[:lead])
    return ((batch, prod(matrices[lead:])), cells), ((batch, prod(packed[lead:])), slots)


def _copy(x: Any, source: Entries, out: Any, target: Entries) -> None:
    out.reshape(target[0])[:, target[1]] = x.reshape(source[0])[:, source[1]]


def matrix_diag(b: Bind) -> Run:
    matrices, packed = _on_diagonals(b, b.outputs[0].dims, b.inputs[0].meta.dims)
    return _copy_entries(packed, matrices)


def matrix_diag_part(b: Bind) -> Run:
    matrices, packed = _on_diagonals(b, b.inputs[0].meta.dims, b.outputs[0].dims)
    return _copy_entries(matrices, packed)


def _copy_entries(source: Entries, target: Entries) -> Run:
    """Copies elements. The others are the last input, or 0 if the op has no such input."""

    def run(x: Any, *fill_and_out: Any) -> None:
        *others, out = fill_and_out
        out[...] = others[-1] if others else 0
        _copy(x, source, out, target)

    return run


def matrix_set_diag(b: Bind) -> Run:
    matrices, packed = _on_diagonals(b, b.inputs[0].meta.dims, b.inputs[1].meta.dims)

    def run(x: Any, diagonal: Any, *k_and_out: Any) -> None:
        out = k_and_out[-1]
        np.copyto(out, x)
        _copy(diagonal, packed, out, matrices)

    return run


def matrix_band_part(b: Bind) -> Run:
    rows, columns = b.inputs[0].meta.dims[-2:]
    (lower,), (upper,) = integers(b, 1), integers(b, 2)
    above = np.arange(columns) - np.arange(rows)[:, None]  # the number of each element's diagonal
    in_band = (above >= -lower if lower >= 0 else above >= -rows) & (above <= upper if upper >= 0 else above <= columns)
    blank = zero(b.outputs[0].dtype)

    def run(x: Any, _lower: Any, _upper: Any, out: Any) -> None:
        out.fill(blank)
        np.copyto(out, x, where=in_band)

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"Diag": diag, "DiagPart": diag_part, "MatrixBandPart": matrix_band_part}.items():
        kernels.kernel(op, dtypes={"T": TYPES})(bind)
    for kind, bind in {
        "MatrixDiag": matrix_diag, "MatrixDiagPart": matrix_diag_part, "MatrixSetDiag": matrix_set_diag,
    }.items():
        for op in (kind, f"{kind}V2", f"{kind}V3", f"Batch{kind}"):
            kernels.kernel(op, dtypes={"T": TYPES})(bind)
    kernels.kernel("BatchMatrixBandPart", dtypes={"T": NUMBERS})(matrix_band_part)
