"""Lanes: work-items divide the last, contiguous dimension. Each has one element on a GPU, and a vector on a CPU.

A CPU's compiler vectorises a loop over 16 neighbours, and seldom vectorises neighbouring work-items that loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heald.api import DType, dtypes

from .c_text import write_lines
from .dialect import Target
from .plan import plane
from .statements import Body, Define, exit_beyond, work_item
from .tree import SIZE_T, Word


@dataclass(frozen=True)
class Lanes:
    """The number of neighbours that a work-item computes."""

    count: int

    def grid(self, columns: int, rows: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Work-items, and the local size, for this many columns (divided into lanes) and rows."""
        items = (-(-columns // self.count), rows)
        return items, (1, 1) if self.count > 1 else plane(*items)


def lanes_of(target: Target) -> Lanes:
    return Lanes(16 if target.cpu else 1)


def is_vector(width: int, dtype: DType) -> bool:
    """True if a CPU's lanes are best written as a vector, for compilers do not vectorise loops within loops."""
    return width == 16 and dtype is dtypes.float32


def over_channels(length: str, lanes: Lanes, body: Callable[[int], Body]) -> Body:
    """Text with `body` for the lanes from column c. On a CPU, columns that fill no vector are computed one by one."""
    if lanes.count == 1:
        return [Define("size_t", {"c": work_item(0)}), exit_beyond("c", SIZE_T(Word(length))), *body(1)]
    return [
        f"size_t c = GLOBAL_ID(0) * {lanes.count};", f"if (c + {lanes.count} <= (size_t){length}) {{",
        *(f"  {line}" for line in write_lines(body(lanes.count))), f"}} else for (; c < (size_t){length}; c++) {{",
        *(f"  {line}" for line in write_lines(body(1))), "}",
    ]
