"""Views: where the elements of a tensor are in a buffer. Copies between two views are most of what moves data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from .broadcast import Dims


@dataclass(frozen=True)
class View:
    """Lengths, and steps in elements from the element `first` on."""

    dims: Dims
    steps: Dims
    first: int = 0

    def part(self, axis: int, start: int, length: int, step: int = 1) -> View:
        """`length` elements along an axis, every `step`."""
        dims, steps = list(self.dims), list(self.steps)
        dims[axis], steps[axis] = length, self.steps[axis] * step
        return View(tuple(dims), tuple(steps), self.first + start * self.steps[axis])

    def permuted(self, axes: Sequence[int]) -> View:
        return View(tuple(self.dims[a] for a in axes), tuple(self.steps[a] for a in axes), self.first)

    def without(self, axis: int) -> View:
        """The first element along an axis, which is gone."""
        return View(self.dims[:axis] + self.dims[axis + 1 :], self.steps[:axis] + self.steps[axis + 1 :], self.first)

    def indexed(self, index: Sequence[Any]) -> View:
        """What a NumPy index of slices, numbers and None (a length of 1) selects."""
        view, axis = self, 0
        for item in index:
            if item is None:
                view = View((*view.dims[:axis], 1, *view.dims[axis:]), (*view.steps[:axis], 0, *view.steps[axis:]),
                            view.first)
                axis += 1
            elif isinstance(item, slice):
                start, stop, step = item.indices(view.dims[axis])
                view, axis = view.part(axis, start, len(range(start, stop, step)), step), axis + 1
            else:
                view = view.part(axis, item, 1).without(axis)
        return view


def whole(dims: Dims) -> View:
    """All of a buffer, row by row."""
    return View(dims, tuple(prod(dims[axis + 1 :]) for axis in range(len(dims))))


def merged(source: View, target: View) -> list[tuple[int, int, int]]:
    """The fewest axes that both views can be walked in: length, step in the source, step in the target."""
    axes: list[tuple[int, int, int]] = []
    for length, s, t in zip(target.dims, source.steps, target.steps, strict=True):
        if length == 1:
            continue
        if axes and axes[-1][1] == s * length and axes[-1][2] == t * length:
            axes[-1] = (axes[-1][0] * length, s, t)
        else:
            axes.append((length, s, t))
    return axes or [(1, 0, 0)]
