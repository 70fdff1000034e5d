"""The outputs of a batch, by a model that takes it whole, or filled up, or one row at a time."""

from __future__ import annotations

from typing import Any

from heald.api import TensorMetadata

from .feed import Feeds
from .input_rows import Rows
from .request import Model, Request
from .results import check_rows, stack_rows


def run_batch(model: Model, feeds: Feeds, request: Request, rows: Rows) -> dict[str, Any]:
    """The outputs of a batch, whose first dimension is the rows.

    A model whose batch is fixed gets the last row again and again behind the last rows.
    """
    if rows.one_by_one:
        return _run_one_by_one(model, feeds, request)
    count, size = len(feeds.rows), rows.size
    arrays = [request.constants[name] if name in request.constants else
              _fill_batch(feeds.arrays[name], meta, count, size) for name, meta in model.inputs.items()]
    outputs = dict(zip(model.outputs, model.step(*arrays), strict=True))
    is_fixed = any(meta.shape and meta.shape[0] is not None for name, meta in model.inputs.items()
                   if name not in request.constants)
    check_rows(outputs, size if is_fixed else count)
    return {name: array[:count] for name, array in outputs.items()}


def _fill_batch(array: Any, meta: TensorMetadata, count: int, size: int) -> Any:
    import numpy as np

    if not meta.shape or meta.shape[0] is None or count == size:
        return array
    return np.concatenate([array, np.repeat(array[-1:], size - count, axis=0)])


def _run_one_by_one(model: Model, feeds: Feeds, request: Request) -> dict[str, Any]:
    """The outputs of a model that takes one row at a time, below each other."""
    values: dict[str, list[Any]] = {name: [] for name in model.outputs}
    for row in range(len(feeds.rows)):
        arrays = [request.constants[name] if name in request.constants else feeds.arrays[name][row]
                  for name in model.inputs]
        for name, value in zip(model.outputs, model.step(*arrays), strict=True):
            values[name].append(value)
    return {name: stack_rows(of_rows) for name, of_rows in values.items()}
