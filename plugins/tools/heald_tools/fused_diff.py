"""The comparison of kernels of several nodes, which `compare` does not see: a fetched tensor ends a fusion.

The outputs alone are run, so that fusions and compilers take their groups. The last tensor of each group is fetched
with them, since the end of a group may be read. A group that differs, while its nodes agree one by one, is the culprit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald import Session
from heald.api import Graph, Initializer, Resolved
from heald.graphs.compiler import HANDLE_TYPES

from .compare import TENSORS_PER_RUN, TOLERANCE, Difference, compare

Expected = Callable[[Sequence[str]], Sequence[Any]]  # the right values of tensors


class FusedKernel(NamedTuple):
    """A call of several nodes: the kernel's name, the device, and the nodes in their order."""

    kernel: str
    assigned: str
    nodes: tuple[str, ...]


def fused_differences(
    graph: Graph, feeds: Mapping[str, Any], device: str, reference: str, fetches: Sequence[str],
    wrong: Collection[str], *, tolerance: float = TOLERANCE, initial_state: Sequence[Initializer] = (),
) -> list[Difference]:
    """Compare each kernel of several nodes on `device` with the single nodes on `reference`.

    `wrong`: the tensors that differ without fusions, which tell nothing of a fusion. The others as of `differences`.
    Returns the differences beyond the tolerance.
    """
    config: dict[str, Any] = {"placement": {"clear": True}}
    alone = config | {"passes": {"disable": ["fusion"]}}
    with (Session(graph, config, device=device, initial_state=initial_state) as ours,
          Session(graph, alone, device=reference, initial_state=initial_state) as theirs):
        return list(compare_fused(ours, feeds, fetches, lambda names: theirs.run(list(names), feeds), wrong, tolerance))


def compare_fused(
    session: Session, feeds: Mapping[str, Any], fetches: Sequence[str], expected: Expected, wrong: Collection[str],
    tolerance: float, known: Collection[str] | None = None,
) -> Iterator[Difference]:
    """Yield the groups of the step of `fetches` that differ from the expected values.

    `known`: the tensors that have an expected value, by default all.
    """
    groups = fused_kernels(session, feeds, fetches)
    ends = [end for kernel in groups if (end := _end_of(session, kernel)) is not None
            and end not in wrong and (known is None or end in known)]
    for start in range(0, len(ends), TENSORS_PER_RUN):
        some = ends[start : start + TENSORS_PER_RUN]
        fetched = list(dict.fromkeys((*some, *fetches)))
        kernels = {_end_of(session, kernel): kernel for kernel in fused_kernels(session, feeds, fetched)}
        values = dict(zip(fetched, session.run(fetched, feeds), strict=True))
        for name, value in zip(some, expected(some), strict=True):
            largest, relative, is_beyond = compare(values[name], value, tolerance)
            if is_beyond and name in kernels:
                node, kernel = name.rpartition(":")[0], kernels[name]
                yield Difference(name, session.graph[node].op, kernel.assigned, kernel.kernel, value.shape,
                                 str(value.dtype), largest, relative, is_beyond, kernel.nodes)


def in_order(tensors: Sequence[Difference], groups: Sequence[Difference]) -> list[Difference]:
    """The tensors with the groups behind their last ones, so that the first difference is the place to look."""
    group_of = {group.tensor: group for group in groups}
    return [row for tensor in tensors for row in (tensor, group_of.get(tensor.tensor)) if row is not None]


def fused_kernels(session: Session, feeds: Mapping[str, Any], fetches: Sequence[str]) -> list[FusedKernel]:
    """The kernels of several nodes in the step of these fetches, in the order of their calls."""
    executable = session.prepare(list(fetches), tuple(feeds)).executable(
        tuple(np.asarray(value).shape for value in feeds.values()))
    return [FusedKernel(bound.call.code, executable.device_name(bound), bound.call.fused)
            for bound in executable.layout.calls if len(bound.call.fused or ()) > 1]


def _end_of(session: Session, kernel: FusedKernel) -> str | None:
    """The last tensor of a group, None where a graph pass made its node."""
    node = kernel.nodes[-1]
    entry = session.nodes.get(node)
    is_comparable = isinstance(entry, Resolved) and entry.output_tensors[0].dtype not in HANDLE_TYPES
    return f"{node}:0" if is_comparable else None
