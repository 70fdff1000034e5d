"""Strided views: the positions of a tensor's elements in a buffer. Most data movement is a copy between two views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from heald.api import errors

from .broadcast import Dims


@dataclass(frozen=True)
class StridedView:
    """The sizes and strides of a view. Strides (`steps`) and the offset `first` are in elements."""

    dims: Dims
    steps: Dims
    first: int = 0

    def part(self, axis: int, start: int, length: int, step: int = 1) -> StridedView:
        """`length` elements along an axis: every `step`-th from `start` on."""
        dims, steps = list(self.dims), list(self.steps)
        dims[axis], steps[axis] = length, self.steps[axis] * step
        return StridedView(tuple(dims), tuple(steps), self.first + start * self.steps[axis])

    def permute_axes(self, axes: Sequence[int]) -> StridedView:
        return StridedView(tuple(self.dims[a] for a in axes), tuple(self.steps[a] for a in axes), self.first)

    def without(self, axis: int) -> StridedView:
        """The first index along an axis, with the axis removed."""
        dims, steps = self.dims[:axis] + self.dims[axis + 1 :], self.steps[:axis] + self.steps[axis + 1 :]
        return StridedView(dims, steps, self.first)

    def view_of_index(self, index: Sequence[Any]) -> StridedView:
        """The view that a NumPy index selects: slices, integers and None, which inserts an axis of size 1."""
        view, axis = self, 0
        for item in index:
            if item is None:
                dims, steps = (*view.dims[:axis], 1, *view.dims[axis:]), (*view.steps[:axis], 0, *view.steps[axis:])
                view = StridedView(dims, steps, view.first)
                axis += 1
            elif isinstance(item, slice):
                start, stop, step = item.indices(view.dims[axis])
                view, axis = view.part(axis, start, len(range(start, stop, step)), step), axis + 1
            else:
                view = view.part(axis, item, 1).without(axis)
        return view


def dense_view(dims: Dims) -> StridedView:
    """The view of a whole buffer in row-major order."""
    return StridedView(dims, tuple(prod(dims[axis + 1 :]) for axis in range(len(dims))))


def reach(first: int, axes: Iterable[tuple[int, int]]) -> int:
    """The elements from a buffer's start to the end of the last element of a view. `axes`: length and stride of each,
    without lengths of 0. Raises Unimplemented for elements before the start."""
    listed = list(axes)
    lowest, highest = (first + sum((n - 1) * pick(step, 0) for n, step in listed) for pick in (min, max))
    if lowest < 0:
        raise errors.Unimplemented("the types contradict each other: a view begins before its buffer")
    return highest + 1


def merge_axes(source: StridedView, target: StridedView) -> list[tuple[int, int, int]]:
    """The fewest axes that address both views: size, stride in the source, stride in the target."""
    axes: list[tuple[int, int, int]] = []
    for length, s, t in zip(target.dims, source.steps, target.steps, strict=True):
        if length == 1:
            continue
        if axes and axes[-1][1] == s * length and axes[-1][2] == t * length:
            axes[-1] = (axes[-1][0] * length, s, t)
        else:
            axes.append((length, s, t))
    return axes or [(1, 0, 0)]
