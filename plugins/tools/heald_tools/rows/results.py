"""Outputs as columns of a table, by one rule: a number or a text of each row is a column of the output's name; all else
of a row is one cell, a list. With labels the largest scores of a row are columns instead: label_1, score_1, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heald.errors import InvalidArgument

Table = dict[str, Any]  # a NumPy array or a list by column; all are equally long


class Labels(NamedTuple):
    """The names of classes, in order, and how many of the largest scores a row has."""

    names: Sequence[str]
    top: int


def columns_of_outputs(outputs: Mapping[str, Any], count: int, labels: Labels | None = None) -> Table:
    """The columns of outputs whose first dimension is the rows.

    With labels, an output with a score for each of them becomes label_1, score_1, ...; where several outputs have so
    many, the names of the columns begin with the output's. Raises InvalidArgument for an output that has another first
    dimension, and for labels that fit no output.
    """
    for name, array in outputs.items():
        if not getattr(array, "ndim", 0) or array.shape[0] != count:
            raise InvalidArgument(f"output '{name}' of shape {list(array.shape)} has no row for each of {count} inputs",
                                  hint="--fetch names the outputs to keep")
    scores = [] if labels is None else [name for name, array in outputs.items() if _has_scores(array, labels)]
    if labels is not None and not scores:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in outputs.items())
        raise InvalidArgument(f"no output has a score for each of {len(labels.names)} labels: {shapes}",
                              hint="each line of --labels names a class")
    table: Table = {}
    for name, array in outputs.items():
        if labels is not None and name in scores:
            table |= _top_columns(f"{name}_" if len(scores) > 1 else "", array, labels)
        else:
            table[name] = _flat(array)
    return table


def _has_scores(array: Any, labels: Labels) -> bool:
    return bool(array.size == array.shape[0] * len(labels.names) and array.dtype.kind in "fV" and array.ndim > 1)


def _flat(array: Any) -> Any:
    """[n, 1] and [n, 1, 1] have one value for each row, as [n] has."""
    return array.reshape(array.shape[0]) if array.ndim > 1 and array.size == array.shape[0] else array


def _top_columns(prefix: str, scores: Any, labels: Labels) -> Table:
    """The largest scores of each row of [rows, classes] and their labels, best first."""
    import numpy as np

    flat = scores.reshape(scores.shape[0], -1)
    order = np.argsort(-flat.astype(np.float64), axis=1, kind="stable")[:, :labels.top]
    table: Table = {}
    for rank, classes in enumerate(order.T, 1):
        table[f"{prefix}label_{rank}"] = [labels.names[index] for index in classes]
        table[f"{prefix}score_{rank}"] = flat[np.arange(len(flat)), classes]
    return table
