"""Metadata of ops that give every partial result of a reduction along one axis."""

from __future__ import annotations

from heald.api import Attrs, ValueInfo

from .rules import rule
from .shapes import axis_in, single_integer


@rule("Cumprod", "Cumsum", "CumulativeLogsumexp", values=("axis",))
def scan(_: Attrs, x: ValueInfo, axis: ValueInfo) -> ValueInfo:
    at = single_integer(axis, "axis")
    if x.rank is not None and at is not None:
        axis_in(at, x.rank, "scan axis")
    return ValueInfo(x.meta)
