"""Feed hints: an error about a handle's node without a kernel, such as an iterator's, names the tensors to feed."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ...errors import HealdError, Unimplemented
from ...runtime.values import dtypes
from .prune import Tensor
from .resolve import Resolved

_HANDLE_TYPES = frozenset({dtypes.resource, dtypes.variant})
_MOST_TENSORS_IN_HINT = 8  # tensors in a hint


def add_feed_hint(
    error: HealdError, entry: Resolved, order: Sequence[Resolved], fed: Container[Tensor]
) -> HealdError:
    """Return the placement error of a node with the feeds that spare a step the node.

    Only a node without a kernel whose outputs are handles gets the hint. A handle cannot be fed, so the hint names the
    first values that nodes of the step compute from it.
    """
    values = _values_behind(entry, order, fed) if isinstance(error, Unimplemented) else []
    if not values:
        return error
    names = ", ".join(f"'{name}'" for name in values[:_MOST_TENSORS_IN_HINT])
    others = f" and {len(values) - _MOST_TENSORS_IN_HINT} others" if len(values) > _MOST_TENSORS_IN_HINT else ""
    hint = f"feed {names}{others}" + (f"; {error.hint}" if error.hint else "")
    return Unimplemented(error.message, node=error.node, op=error.op, device=error.device, location=error.location,
                         hint=hint)


def _values_behind(entry: Resolved, order: Sequence[Resolved], fed: Container[Tensor]) -> list[str]:
    """Return the tensors that are computed from the node's handles, through nodes that return handles. Fed tensors are
    left out."""
    handles = {(entry.node.name, index) for index, output in enumerate(entry.output_tensors)
               if output.dtype in _HANDLE_TYPES}
    tensors: list[str] = []
    for other in order:
        if handles.isdisjoint(other.inputs):
            continue
        for index, output in enumerate(other.output_tensors):
            if output.dtype in _HANDLE_TYPES:
                handles.add((other.node.name, index))
            elif (other.node.name, index) not in fed:
                tensors.append(f"{other.node.name}:{index}")
    return tensors
