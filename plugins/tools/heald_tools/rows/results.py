"""Outputs as columns of a table, by one rule. The first row that fits says the columns:

    output                                          columns
    detections, with labels or a threshold          `detections`: a list of objects, the best first
    a score for each label                          label_1, score_1, label_2, score_2, ...: the largest, best first
    an integer of each row, with labels             the output's name, and NAME_label; only where no output has scores
    a number or a text of each row                  the output's name
    all else                                        the output's name; a cell is a list

Columns of several outputs with scores begin with the output's name. An output whose column would have the
name of another column gets `output_` before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from heald.errors import InvalidArgument

from .detections import detections_of, find_roles

Table = dict[str, Any]  # a NumPy array or a list by column; all are equally long


class Labels(NamedTuple):
    """The names of classes, in order, and how many of the largest scores a row has."""

    names: Sequence[str]
    top: int


def check_rows(outputs: Mapping[str, Any], count: int) -> None:
    """Raises InvalidArgument for an output whose first dimension is not the rows."""
    for name, array in outputs.items():
        if not getattr(array, "ndim", 0) or array.shape[0] != count:
            raise InvalidArgument(f"output '{name}' of shape {list(array.shape)} has no row for each of {count} inputs",
                                  hint="--fetch names the outputs to keep")


def columns_of_outputs(outputs: Mapping[str, Any], labels: Labels | None = None, threshold: float | None = None,
                       ) -> Table:
    """The columns of outputs whose first dimension is the rows. A list instead of an array has rows of several shapes.

    Raises InvalidArgument for labels that fit no output.
    """
    table: Table = {}
    left = dict(outputs)
    roles = find_roles(outputs)
    if roles is not None and (labels is not None or threshold is not None):
        table["detections"] = detections_of(roles, outputs, labels.names if labels else None, threshold)
        left = {name: array for name, array in outputs.items() if name not in roles.values()}
        labels = None
    scores = [] if labels is None else [name for name, array in left.items() if has_scores(array, len(labels.names))]
    classes = [] if labels is None or scores else [name for name, array in left.items() if has_classes(array)]
    if labels is not None and not scores and not classes:
        raise _unused_labels_error(outputs, labels)
    for name, array in left.items():
        if labels is not None and name in scores:
            table |= _top_columns(f"{name}_" if len(scores) > 1 else "", array, labels)
        else:
            table[name] = _flat(array)
        if labels is not None and name in classes:
            table[f"{name}_label"] = [name_of_class(int(index), labels.names) for index in table[name]]
    return table


def beside(columns: Mapping[str, Any], table: Mapping[str, Any]) -> Table:
    """Both tables side by side. A column of the second whose name the first has, too, gets another name."""
    joined = dict(columns)
    for name, column in table.items():
        free_name = name
        while free_name in joined:
            free_name = f"output_{free_name}"
        joined[free_name] = column
    return joined


def stack_rows(values: Sequence[Any]) -> Any:
    """One array of all rows' values, or the list itself where they differ in shape."""
    import numpy as np

    arrays = [np.asarray(value) for value in values]
    return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays


def has_scores(array: Any, count: int) -> bool:
    """True for `count` numbers with a fraction in each row."""
    return bool(hasattr(array, "dtype") and array.size == array.shape[0] * count and array.dtype.kind in "fV"
                and array.ndim > 1)


def has_classes(array: Any) -> bool:
    """True for one integer of each row."""
    return bool(hasattr(array, "dtype") and array.size == array.shape[0] and array.dtype.kind in "iu")


def name_of_class(index: int, names: Sequence[str]) -> str | None:
    return names[index] if 0 <= index < len(names) else None


def best_classes(scores: Any, top: int) -> Any:
    """The classes of the largest scores of each row, best first; of equal scores the first class."""
    import numpy as np

    flat = scores.reshape(scores.shape[0], -1)
    return np.argsort(-flat.astype(np.float64), axis=1, kind="stable")[:, :top]


def _unused_labels_error(outputs: Mapping[str, Any], labels: Labels) -> InvalidArgument:
    shapes = ", ".join(f"{name} {_shape_text(array)}" for name, array in outputs.items())
    return InvalidArgument(f"no output has a score for each of {len(labels.names)} labels: {shapes}",
                           hint="--labels FILE names a class on each line, all classes of the model in order")


def _shape_text(array: Any) -> str:
    return str(list(array.shape)) if hasattr(array, "shape") else "of several shapes"


def _flat(array: Any) -> Any:
    """[n, 1] and [n, 1, 1] have one value for each row, as [n] has."""
    if isinstance(array, list):
        return array
    return array.reshape(array.shape[0]) if array.ndim > 1 and array.size == array.shape[0] else array


def _top_columns(prefix: str, scores: Any, labels: Labels) -> Table:
    """The largest scores of each row of [rows, classes] and their labels, best first."""
    import numpy as np

    flat = scores.reshape(scores.shape[0], -1)
    table: Table = {}
    for rank, classes in enumerate(_columns(best_classes(scores, labels.top)), 1):
        table[f"{prefix}label_{rank}"] = [labels.names[index] for index in classes]
        table[f"{prefix}score_{rank}"] = flat[np.arange(len(flat)), classes]
    return table


def _columns(array: Any) -> Iterable[Any]:
    return array.T  # type: ignore[no-any-return]
