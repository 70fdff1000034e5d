"""The kernel of the maximum spanning tree of a directed graph, by the algorithm of Chu, Liu and Edmonds.

`scores[t, s]` is the score of the arc from source s to target t, `scores[t, t]` that of t as a root. A tree has one
root, a forest has any number. A virtual root stands for the diagonal, so that both are arborescences of n + 1 nodes. A
weight is a pair, compared in order: minus 1 for an arc of a tree's virtual root, then the score. So a tree has as few
roots as possible, which is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array

Weight = tuple[int, float]
Arcs = dict[int, dict[int, Weight]]  # by target and source; a missing arc is forbidden


def max_spanning_tree(b: Bind) -> Callable[..., Any]:
    is_forest = b.attrs["forest"]

    def run(num_nodes: Array, scores: Array, best: Array, sources: Array) -> None:
        batch, size = sources.shape
        if len(num_nodes) != batch or scores.shape != (batch, size, size):
            raise InvalidArgument(f"scores must be square matrices, one for each of {len(num_nodes)} counts, given "
                                  f"{list(scores.shape)}")
        sources.fill(-1)
        for row, count in enumerate(num_nodes.tolist()):
            if not 0 < count <= size:
                raise InvalidArgument(f"num_nodes must be 1 to {size}, given {count}")
            matrix = scores[row, :count, :count]
            tree = spanning_sources(matrix.tolist(), is_forest=is_forest)
            sources[row, :count] = tree
            best[row] = sum_of_arcs(matrix, tree)

    return run


def sum_of_arcs(matrix: Array, sources: list[int]) -> Any:
    return matrix[np.arange(len(sources)), sources].sum(dtype=matrix.dtype)


def spanning_sources(matrix: list[list[float]], *, is_forest: bool) -> list[int]:
    """The source of each node's arc; a root is its own source."""
    root = count = len(matrix)
    penalty = 0 if is_forest else -1
    arcs: Arcs = {t: {s: (0, matrix[t][s]) for s in range(count) if s != t} | {root: (penalty, matrix[t][t])}
                  for t in range(count)}
    sources = best_arborescence(arcs, root)
    return [t if sources[t] == root else sources[t] for t in range(count)]


def _difference(a: Weight, z: Weight) -> Weight:
    return a[0] - z[0], a[1] - z[1]


def best_arborescence(arcs: Arcs, root: int) -> dict[int, int]:
    """The source of the arc into each node but the root.

    Each node takes its best arc. A cycle becomes one node, whose arcs cost the loss of the arc that they replace.
    """
    levels = []
    while True:
        best = {t: _last_best(into) for t, into in arcs.items()}
        cycle = _cycle(best, root)
        if not cycle:
            break
        merged = max(root, *arcs) + 1
        levels.append((arcs, best, cycle, merged))
        arcs = contract_cycle(arcs, best, cycle, merged)
    for outer, outer_best, cycle, merged in reversed(levels):
        best = expand_cycle(best, outer, outer_best, cycle, merged)
    return best


def _last_best(weights: dict[int, Weight]) -> int:
    """The node with the largest weight, the last one among equals."""
    return max(reversed(weights), key=weights.__getitem__)


def _cycle(best: dict[int, int], root: int) -> set[int]:
    """The nodes of a cycle among the best arcs, or none."""
    done = {root}
    for first in best:
        node, path = first, list[int]()
        while node not in done:
            done.add(node)
            path.append(node)
            node = best[node]
        if node in path:
            return set(path[path.index(node) :])
    return set()


def contract_cycle(
    arcs: Arcs, best: dict[int, int], cycle: set[int], merged: int
) -> Arcs:
    into_cycle: dict[int, Weight] = {}
    outer: Arcs = {}
    for t, into in arcs.items():
        for s, score in into.items():
            if t in cycle and s not in cycle:
                gain = _difference(score, into[best[t]])
                into_cycle[s] = max(gain, into_cycle.get(s, gain))
            elif t not in cycle:
                source, row = merged if s in cycle else s, outer.setdefault(t, {})
                row[source] = max(score, row.get(source, score))
    return {**outer, merged: into_cycle}


def expand_cycle(
    inner: dict[int, int], arcs: Arcs, best: dict[int, int], cycle: set[int], merged: int
) -> dict[int, int]:
    """The arcs of the graph in front of a contraction, from those behind it."""
    sources: dict[int, int] = {t: best[t] for t in cycle}
    for t, s in inner.items():
        if t == merged:
            gains = {node: _difference(arcs[node][s], arcs[node][best[node]]) for node in cycle if s in arcs[node]}
            sources[_last_best(gains)] = s
        else:
            sources[t] = _last_best({c: arcs[t][c] for c in sorted(cycle) if c in arcs[t]}) if s == merged else s
    return sources


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("MaxSpanningTree")(max_spanning_tree)
