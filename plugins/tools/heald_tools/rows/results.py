"""Outputs as columns of a table, by one rule: a number or a text of each row is a column of the output's name; all else
of a row is one cell, a list. With labels the largest scores of a row are columns instead: label_1, score_1, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heald.errors import InvalidArgument

Table = dict[str, Any]  # a NumPy array or a list by column; all are equally long


def columns_of_outputs(outputs: Mapping[str, Any], count: int) -> Table:
    """The columns of outputs whose first dimension is the rows.

    Raises InvalidArgument for an output that has another first dimension.
    """
    table: Table = {}
    for name, array in outputs.items():
        if not getattr(array, "ndim", 0) or array.shape[0] != count:
            raise InvalidArgument(f"output '{name}' of shape {list(array.shape)} has no row for each of {count} inputs",
                                  hint="--fetch names the outputs to keep")
        table[name] = _flat(array)
    return table


def _flat(array: Any) -> Any:
    """[n, 1] and [n, 1, 1] have one value for each row, as [n] has."""
    return array.reshape(array.shape[0]) if array.ndim > 1 and array.size == array.shape[0] else array


def top_columns(name: str, scores: Any, labels: Sequence[str], top: int) -> Table:
    """The labels and scores of the largest scores, best first: label_1, score_1, ... of an output [rows, classes].

    Raises InvalidArgument for an output that has another number of classes than there are labels.
    """
    import numpy as np

    flat = scores.reshape(scores.shape[0], -1)
    classes = flat.shape[1]
    if len(labels) == classes + 1:  # a list of labels without the class 0 of background, or with one more
        raise InvalidArgument(f"output '{name}' has {classes} classes, and there are {classes + 1} labels",
                              hint="one label too many: leave out that of the background")
    if len(labels) != classes:
        raise InvalidArgument(f"output '{name}' has {classes} classes, and there are {len(labels)} labels")
    count = min(top, classes)
    order = np.argsort(-flat.astype(np.float64), axis=1, kind="stable")[:, :count]
    table: Table = {}
    for rank in range(count):
        picked = order[:, rank]
        table[f"label_{rank + 1}"] = [labels[index] for index in picked]
        table[f"score_{rank + 1}"] = flat[np.arange(len(flat)), picked]
    return table
