"""The comparison of two devices: one graph run on both, compared tensor by tensor in the order of the graph.

Differences accumulate along the graph: the first tensor beyond the tolerance is the place to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from heald import Session
from heald.api import Graph, Initializer, Resolved, topological_order
from heald.errors import InvalidArgument
from heald.graphs.compiler import HANDLE_TYPES

TOLERANCE = 1e-3  # in standard deviations of the reference's tensor
TENSORS_PER_RUN = 64  # tensors fetched by one run, each kept until its comparison


@dataclass(frozen=True)
class Difference:
    """One tensor on both devices.

    `assigned` is the device of its node. `largest` is the largest absolute difference of two elements, None for
    strings. `relative` is `largest` over the reference's standard deviation, or over 1 for a deviation of 0.
    `fused` has the nodes of a kernel of several nodes, which ends with the tensor.
    """

    tensor: str
    op: str
    assigned: str
    kernel: str
    shape: tuple[int, ...]
    dtype: str
    largest: float | None
    relative: float
    is_beyond: bool
    fused: tuple[str, ...] = ()


def differences(
    graph: Graph, feeds: Mapping[str, Any], device: str, reference: str, fetches: Sequence[str], *,
    tolerance: float = TOLERANCE, initial_state: Sequence[Initializer] = (),
) -> Iterator[Difference]:
    """Compare every tensor that `fetches` need on `device` and on `reference`, in topological order.

    Both sessions begin with the `initial_state`. Requests for devices in the graph are dropped.

    Floats differ when they are further apart than `tolerance` times the standard deviation, or when only one of them is
    NaN or infinite. Other types differ when they are not equal. Raises InvalidArgument for a negative tolerance, and
    the errors of running the graph.
    """
    if tolerance < 0:
        raise InvalidArgument(f"the tolerance must not be negative, as {tolerance} is")
    config = {"placement": {"clear": True}}
    with (Session(graph, config, device=device, initial_state=initial_state, target="local") as ours,
          Session(graph, config, device=reference, initial_state=initial_state, target="local") as theirs):
        rows = {row["node"]: row for row in ours.placement().table()}
        names = comparable_tensors(ours, feeds, fetches)
        for start in range(0, len(names), TENSORS_PER_RUN):
            some = names[start : start + TENSORS_PER_RUN]
            fetched = [name for _, name in some]
            pairs = zip(some, ours.run(fetched, feeds), theirs.run(fetched, feeds), strict=True)
            for (entry, name), value, other in pairs:
                row = rows[entry.node.name]
                largest, relative, is_beyond = compare(value, other, tolerance)
                yield Difference(name, entry.op.name, row["assigned"], row["kernel"], other.shape,
                                 entry.output_tensors[int(name.rpartition(":")[2])].dtype.name, largest, relative,
                                 is_beyond)


def comparable_tensors(session: Session, feeds: Iterable[str], fetches: Sequence[str],
                       ) -> list[tuple[Resolved, str]]:
    """Return the tensors that the fetches need, in topological order: the node of each, and the tensor's name."""
    _, needed = next(session.graphs_by_pass(list(fetches), tuple(feeds)))
    fed = {name.partition(":")[0] for name in feeds}
    tensors = []
    for node in topological_order(needed.nodes):
        entry = session.nodes.get(node.name)  # None for a node that stands for a loop
        if isinstance(entry, Resolved) and node.op != "Const" and node.name not in fed:
            tensors += [(entry, f"{node.name}:{i}") for i, output in enumerate(entry.output_tensors)
                        if output.dtype not in HANDLE_TYPES]
    return tensors


def compare(value: Any, other: Any, tolerance: float) -> tuple[float | None, float, bool]:
    """Return the largest absolute difference, the same in standard deviations of `other`, and True when the tensors
    differ beyond the tolerance."""
    if value.shape != other.shape:
        return float("inf"), float("inf"), True
    if object in (value.dtype, other.dtype):
        equal = bool((value == other).all())
        return None, 0.0 if equal else float("inf"), not equal
    kinds = value.dtype.kind, other.dtype.kind
    is_float = any(kind not in "biu" for kind in kinds)
    if value.size == 0 or (not is_float and np.array_equal(value, other)):
        return 0.0, 0.0, False
    wide = np.complex128 if "c" in kinds else np.float64
    a, b = value.astype(wide), other.astype(wide)
    finite = np.isfinite(b)
    with np.errstate(invalid="ignore"):
        odd = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if odd.any() or not np.isfinite(a[finite]).all():
        return float("inf"), float("inf"), True
    largest = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    relative = largest / (float(b[finite].std()) or 1.0) if largest else 0.0
    return largest, relative, relative > tolerance if is_float else largest > 0
