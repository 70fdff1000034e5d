"""Where two devices part: one graph run on both, compared tensor by tensor in the order of the graph.

What differs is what has come together up to there: the first tensor beyond the tolerance is where to look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from weft import Session
from weft.api import Graph, Initializer, Resolved, topological_order
from weft.compiler import HELD
from weft.errors import InvalidArgument

TOLERANCE = 1e-3  # of the standard deviation of what the reference gives
ABREAST = 64  # tensors that are fetched in one run: each is kept until it is compared


@dataclass(frozen=True)
class Difference:
    """One tensor on both devices. `assigned`: where its node ran. `largest`: the largest absolute difference of two
    elements, None for strings; `relative`: the same over the reference's standard deviation (1 where that is 0)."""

    tensor: str
    op: str
    assigned: str
    kernel: str
    shape: tuple[int, ...]
    dtype: str
    largest: float | None
    relative: float
    is_beyond: bool


def differences(
    graph: Graph, feeds: Mapping[str, Any], device: str, reference: str, fetches: Sequence[str], *,
    tolerance: float = TOLERANCE, initial_state: Sequence[Initializer] = (),
) -> Iterator[Difference]:
    """Every tensor that `fetches` need, in an order in which they are computed, on `device` against `reference`.

    Both sessions begin with the `initial_state`. Requests for devices in the graph are dropped.

    Floats differ when they are further apart than `tolerance` times the
    standard deviation, or one is NaN or infinite where the other is not; anything else when it is not equal. Raises
    what running the graph raises.
    """
    if tolerance < 0:
        raise InvalidArgument(f"the tolerance must not be negative, as {tolerance} is")
    config = {"placement": {"clear": True}}
    with (Session(graph, config, device=device, initial_state=initial_state) as ours,
          Session(graph, config, device=reference, initial_state=initial_state) as theirs):
        rows = {row["node"]: row for row in ours.placement().table()}
        names = _compared(ours, feeds, fetches)
        for start in range(0, len(names), ABREAST):
            some = names[start : start + ABREAST]
            fetched = [name for _, name in some]
            pairs = zip(some, ours.run(fetched, feeds), theirs.run(fetched, feeds), strict=True)
            for (entry, name), mine, other in pairs:
                row = rows[entry.node.name]
                largest, relative, is_beyond = compare(mine, other, tolerance)
                yield Difference(name, entry.op.name, row["assigned"], row["kernel"], other.shape,
                                 entry.output_tensors[int(name.rpartition(":")[2])].dtype.name, largest, relative,
                                 is_beyond)


def _compared(session: Session, feeds: Mapping[str, Any], fetches: Sequence[str]) -> list[tuple[Resolved, str]]:
    """The tensors that the fetches need, in an order in which they are computed: the node of each, and its name."""
    _, needed = next(session.optimized(list(fetches), tuple(feeds)))
    fed = {name.partition(":")[0] for name in feeds}
    found = []
    for node in topological_order(needed.nodes):
        entry = session.nodes[node.name]
        if isinstance(entry, Resolved) and node.op != "Const" and node.name not in fed:
            found += [(entry, f"{node.name}:{i}") for i, output in enumerate(entry.output_tensors)
                      if output.dtype not in HELD]
    return found


def compare(mine: Any, other: Any, tolerance: float) -> tuple[float | None, float, bool]:
    """The largest absolute difference, the same relative to the standard deviation of `other`, and whether that is
    beyond the tolerance."""
    if mine.shape != other.shape:
        return float("inf"), float("inf"), True
    if mine.dtype == object:
        equal = bool((mine == other).all())
        return None, 0.0 if equal else float("inf"), not equal
    is_float = other.dtype.kind not in "biu"
    if mine.size == 0 or (not is_float and np.array_equal(mine, other)):
        return 0.0, 0.0, False
    wide = np.complex128 if other.dtype.kind == "c" else np.float64
    a, b = mine.astype(wide), other.astype(wide)
    finite = np.isfinite(b)
    with np.errstate(invalid="ignore"):
        odd = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if odd.any() or not np.isfinite(a[finite]).all():
        return float("inf"), float("inf"), True
    largest = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    relative = largest / (float(b[finite].std()) or 1.0) if largest else 0.0
    return largest, relative, relative > tolerance if is_float else largest > 0
