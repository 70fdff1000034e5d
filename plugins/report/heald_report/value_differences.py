"""The tensors of two models for the same inputs, compared in the order of the first graph.

Differences accumulate along a graph, so the first tensor beyond the tolerance is the place to look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from heald import Model

TENSORS_PER_RUN = 64  # tensors fetched by one run, each kept until its comparison


class TensorDifference(NamedTuple):
    """A tensor of the first model beside that of the second. `largest`: the largest difference of two elements, None
    for strings and other shapes. `where`: the index of that element. `relative`: in standard deviations."""

    node: str
    tensor: str
    other: str
    largest: float | None
    where: tuple[int, ...]
    values: tuple[str, str]
    relative: float
    is_beyond: bool


def feeds_of_other(model: Model, other: Model, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other model's feeds: the same arrays, by the inputs' names, or else by their places.

    Raises InvalidArgument for models whose inputs do not correspond."""
    from heald.errors import InvalidArgument

    ours, theirs = [*model.inputs], [*other.inputs]
    if len(ours) != len(theirs):
        raise InvalidArgument(f"one model has {len(ours)} inputs, and the other {len(theirs)}")
    names = {name: name for name in theirs} if set(ours) == set(theirs) else dict(zip(theirs, ours, strict=True))
    return {other.fed[name]: feeds[model.fed[names[name]]] for name in theirs}


def value_differences(models: tuple[Model, Model], feeds: tuple[Mapping[str, Any], Mapping[str, Any]],
                      names: Mapping[str, str]) -> Iterator[TensorDifference]:
    """Yield each tensor that both models compute. `names`: the second model's node by the first's."""
    from heald_tools.compare import comparable_tensors

    (first, second), (ours, theirs) = models, feeds
    other_tensors = {name for _, name in comparable_tensors(second.session, theirs, [*second.fetched.values()])}
    pairs = [(node.node.name, tensor, other) for node, tensor in comparable_tensors(
        first.session, ours, [*first.fetched.values()])
        if (other := _other_tensor(node.node.name, tensor, names)) in other_tensors]
    for start in range(0, len(pairs), TENSORS_PER_RUN):
        some = pairs[start:start + TENSORS_PER_RUN]
        values = first.session.run([tensor for _, tensor, _ in some], ours)
        others = second.session.run([other for _, _, other in some], theirs)
        for (node, tensor, other), value, other_value in zip(some, values, others, strict=True):
            yield _difference(node, tensor, other, np.asarray(value), np.asarray(other_value))


def _other_tensor(node: str, tensor: str, names: Mapping[str, str]) -> str:
    return f"{names[node]}:{tensor.rpartition(':')[2]}" if node in names else ""


def _difference(node: str, tensor: str, other: str, value: Any, other_value: Any) -> TensorDifference:
    from heald_tools.compare import TOLERANCE, compare

    largest, relative, is_beyond = compare(value, other_value, TOLERANCE)
    if value.shape != other_value.shape:
        shapes = str(list(value.shape)), str(list(other_value.shape))
        return TensorDifference(node, tensor, other, None, (), shapes, relative, is_beyond)
    if not is_beyond:
        return TensorDifference(node, tensor, other, largest, (), ("", ""), relative, is_beyond)
    where = _place_of_difference(value, other_value)
    texts = tuple(f"{side[where]:.6g}" if side.dtype.kind in "fc" else str(side[where])[:80]
                  for side in (value, other_value))
    return TensorDifference(node, tensor, other, largest, where, (texts[0], texts[1]), relative, is_beyond)


def _place_of_difference(value: Any, other: Any) -> tuple[int, ...]:
    """Return the index of the element that differs most; of the first that differs at all, for strings."""
    if object in (value.dtype, other.dtype):
        distance = np.asarray(value != other, np.float64)
    else:
        wide = np.complex128 if "c" in (value.dtype.kind, other.dtype.kind) else np.float64
        with np.errstate(invalid="ignore"):
            a, b = value.astype(wide), other.astype(wide)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            distance = np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    return tuple(int(part) for part in np.unravel_index(int(np.argmax(distance)), value.shape))
