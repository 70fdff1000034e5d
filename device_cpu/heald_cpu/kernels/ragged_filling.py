"""Kernels that give each empty row of a ragged tensor a default value, and the gradients of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import NUMBERS, Array
from .index_checks import check_inside
from .sparse_dense import fill_empty_rows_gradient

Run = Callable[..., Any]


def fill_empty_rows(b: Bind) -> Run:
    """RaggedFillEmptyRows. The result is in the order of rows; elements of a row keep theirs."""

    def run(rows: Array, values: Array, row_count: Array, default: Array) -> tuple[Array, Array, Array, Array]:
        count = int(row_count)
        b.ask(count * 24, "a ragged tensor without empty rows")
        check_inside(rows, count, "value_rowids")
        is_empty = np.bincount(rows, minlength=count) == 0
        missing = np.flatnonzero(is_empty)
        all_rows = np.append(rows, missing)
        order = all_rows.argsort(kind="stable")
        filled = np.append(values, np.full(len(missing), default, values.dtype))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return all_rows[order], filled[order], is_empty, places[: len(rows)]

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RaggedFillEmptyRows", allocates=True)(fill_empty_rows)
    kernels.kernel("RaggedFillEmptyRowsGrad", dtypes={"T": NUMBERS})(fill_empty_rows_gradient)
