"""Kernels that join strings: of several tensors, along axes, by segments."""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile, pairwise
from math import prod
from operator import not_
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from .strings import attribute_bytes, map_elements

Run = Callable[..., Any]


def join(b: Bind) -> Run:
    separator = attribute_bytes(b, "separator")
    if not b.inputs:
        return lambda out: out.fill(b"")
    return map_elements(lambda *parts: separator.join(parts), len(b.inputs))


def reduce_join(b: Bind) -> Run:
    """ReduceJoin. The first of the given axes is the innermost: its elements are joined first."""
    value, rank = b.inputs[1].value, b.inputs[0].rank
    assert value is not None
    assert rank is not None
    separator = attribute_bytes(b, "separator")
    joined_axes = [int(axis) % rank for axis in reversed(value.reshape(-1))]
    if not joined_axes:
        return lambda x, _axes, out: np.copyto(out, x)
    other_axes = [i for i in range(rank) if i not in joined_axes]
    count = b.outputs[0].size

    def run(x: Any, _axes: Any, out: Any) -> None:
        rows = x.transpose(*other_axes, *joined_axes).reshape(count, x.size // max(1, count))
        out.reshape(-1)[:] = [separator.join(row) for row in rows]

    return run


def unsorted_segment_join(b: Bind) -> Run:
    """UnsortedSegmentJoin. Empty strings at the start of a segment are left out, as in TensorFlow."""
    separator, segments, inner = attribute_bytes(b, "separator"), b.outputs[0].dims[0], b.outputs[0].dims[1:]
    width = prod(inner)

    def run(x: Any, ids: Any, _num_segments: Any, out: Any) -> None:
        if ids.size and not (ids.min() >= 0 and ids.max() < segments):
            raise errors.InvalidArgument(f"segment_ids must be in [0, {segments})")
        order = np.argsort(ids, axis=None, kind="stable")
        bounds = np.searchsorted(ids.reshape(-1)[order], np.arange(segments + 1))
        rows = x.reshape(ids.size, width)[order]
        for target, (first, last) in zip(out.reshape(segments, width), pairwise(bounds), strict=True):
            target[:] = [separator.join(dropwhile(not_, column)) for column in rows[first:last].T]

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "ReduceJoin": reduce_join, "StringJoin": join, "UnsortedSegmentJoin": unsorted_segment_join,
    }.items():
        kernels.kernel(op)(bind)
