"""Top-k kernels: the k largest or the n-th element of each row. NaN counts as larger than any number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import REAL, Array, sortable

FEWEST_COLUMNS_TO_PARTITION = 1024  # _largest_few is faster from here: 1/2 of the time for 1,024, 1/50 for 100,000
Run = Callable[..., None]


def top_k(b: Bind) -> Run:
    """TopK and TopKV2: descending; equal elements in order of index."""
    k, columns = b.outputs[0].dims[-1], b.inputs[0].meta.dims[-1]
    if b.outputs[0].size == 0:
        return lambda *_: None
    find = _largest_few if columns >= FEWEST_COLUMNS_TO_PARTITION and k * 8 <= columns else _largest

    def run(x: Array, *k_and_outs: Any) -> None:
        *_, values, indices = k_and_outs
        positions = find(sortable(x), k)
        np.copyto(indices, positions, casting="unsafe")
        np.copyto(values, x[positions] if x.ndim == 1 else np.take_along_axis(x, positions, -1))

    return run


def _largest(x: Array, k: int) -> Array:
    """The indices of the k largest elements. Reversal before and after a stable sort keeps equal ones in order."""
    indices: Array = x.shape[-1] - 1 - x[..., ::-1].argsort(-1, kind="stable")[..., : -k - 1 : -1]
    return indices


def _largest_few(x: Array, k: int) -> Array:
    """As `_largest`, but sorts only elements not less than the k-th largest. Rows with exactly k such elements are
    sorted at once; rows with ties or NaN one by one."""
    rows = x.reshape(-1, x.shape[-1])
    candidates = ~(rows < np.partition(rows, -k)[:, -k, None])
    indices = np.empty((len(rows), k), np.int64)
    exact = np.count_nonzero(candidates, axis=1) == k
    places = (np.flatnonzero(candidates[exact]) % rows.shape[1]).reshape(-1, k)  # np.nonzero takes five times as long
    values = rows[np.flatnonzero(exact)[:, None], places]
    indices[exact] = np.take_along_axis(places, _largest(values, k), -1)
    for row in np.flatnonzero(~exact):
        candidate_columns = np.flatnonzero(candidates[row])
        indices[row] = candidate_columns[_largest(rows[row, candidate_columns], k)]
    return indices.reshape(*x.shape[:-1], k)


def nth_element(b: Bind) -> Run:
    n, columns = b.inputs[1].value, b.inputs[0].meta.dims[-1]
    assert n is not None
    column = columns - 1 - int(n) if b.attrs["reverse"] else int(n)
    return lambda x, _n, out: np.copyto(out, np.partition(sortable(x), column, -1)[..., column], casting="unsafe")


def in_top_k(b: Bind) -> Run:
    """True where all elements of the row are finite, and fewer than k exceed the target's."""
    rows, classes = np.arange(b.inputs[0].meta.dims[0]), b.inputs[0].meta.dims[1]
    fixed = b.attrs.get("k")
    if not classes:
        return lambda *arrays: arrays[-1].fill(False)

    def run(predictions: Array, targets: Array, *k_and_out: Array) -> None:
        k = k_and_out[0] if fixed is None else fixed
        exists = (targets >= 0) & (targets < classes)
        target = predictions[rows, np.where(exists, targets, 0)]
        larger = np.count_nonzero(predictions > target[:, None], axis=1)
        np.logical_and(exists & np.isfinite(predictions).all(1), larger < k, out=k_and_out[-1])

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"NthElement": nth_element, "TopK": top_k, "TopKV2": top_k}.items():
        kernels.kernel(op, dtypes={"T": REAL})(bind)
    for op in ("InTopK", "InTopKV2"):
        kernels.kernel(op)(in_top_k)
