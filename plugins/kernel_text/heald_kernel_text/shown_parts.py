"""Shown parts: nodes whose outputs are runs of elements of one input, which a device may show without a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from heald.api import Bind, geometry

from .math_plans import ints
from .strided_view import StridedView, dense_view

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class Parts(NamedTuple):
    """The outputs of a node as views of an input."""

    source: int
    views: Sequence[StridedView]


def shown_parts(b: Bind) -> Mapping[int, tuple[int, int]] | None:
    """By output, the input that it shows and its first element; None where an element is missing in between."""
    if b.fused or b.op not in PARTS:
        return None
    source, views = PARTS[b.op](b)
    if not all(map(is_dense, views)):
        return None
    return {output: (source, view.first) for output, view in enumerate(views)}


def is_dense(view: StridedView) -> bool:
    """True for elements that follow one another. Axes of length 1 have any stride."""
    steps = dense_view(view.dims).steps
    return all(length == 1 or step == dense for length, step, dense in zip(view.dims, view.steps, steps, strict=True))


def slice_view(b: Bind) -> StridedView:
    return dense_view(b.inputs[0].meta.dims).view_of_index(
        [slice(at, at + n) for at, n in zip(ints(b, 1), b.outputs[0].dims, strict=True)])


def strided_slice_view(b: Bind) -> StridedView:
    dims, masks = b.inputs[0].meta.dims, {mask: b.attrs[mask] for mask in MASKS}
    window = geometry.strided_slice(dims, ints(b, 1), ints(b, 2), ints(b, 3), **masks)
    assert window.index is not None
    return dense_view(dims).view_of_index(window.index)


def unpacked_parts(b: Bind) -> Parts:
    dims = b.inputs[0].meta.dims
    return Parts(0, _parts_along(dims, b.attrs["axis"] % len(dims), (1,) * len(b.outputs)))


def split_parts(b: Bind) -> Parts:
    dims, (axis,) = b.inputs[1].meta.dims, ints(b, 0)
    axis %= len(dims)
    return Parts(1, _parts_along(dims, axis, [output.dims[axis] for output in b.outputs]))


def _parts_along(dims: tuple[int, ...], axis: int, lengths: Sequence[int]) -> list[StridedView]:
    whole = dense_view(dims)
    return [whole.part(axis, end - length, length)
            for end, length in zip(accumulate(lengths), lengths, strict=True)]


PARTS: Mapping[str, Callable[[Bind], Parts]] = {
    "Slice": lambda b: Parts(0, [slice_view(b)]), "Split": split_parts,
    "StridedSlice": lambda b: Parts(0, [strided_slice_view(b)]), "Unpack": unpacked_parts,
}
