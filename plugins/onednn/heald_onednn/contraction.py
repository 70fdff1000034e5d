"""Contraction: an einsum of two operands as one product of matrices, or a batch of them, read and written in place.

Its axes are of four kinds. Batch axes are in both operands and the result; each is a dimension by itself. Rows are the
axes of the left operand and the result, columns of the right operand and the result, and inner axes of both operands
alone. All rows, all columns and all inner axes are one dimension each, so they must be adjacent in each array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from heald.api import errors, geometry

from .memory import Layout, row_major_strides

Labels = tuple[geometry.Label, ...]


class Matrices(NamedTuple):
    """The dimensions of an array as the library sees them, and their strides in elements."""

    dims: list[int]
    strides: list[int]

    @property
    def layout(self) -> Layout:
        return Layout.of(self.dims, self.strides)


class Contraction:
    """The product of an einsum. `turned`: the second operand is on the left. Raises Unimplemented for other einsums."""

    def __init__(self, equation: str, shapes: Sequence[tuple[int, ...]]) -> None:
        labels = geometry.einsum_labels(equation, [len(shape) for shape in shapes])
        if labels is None or len(shapes) != 2 or any(len({*operand_labels}) < len(operand_labels)
                                                     for operand_labels in (*labels[0], labels[1])):
            raise errors.Unimplemented("an einsum of one operand, or of diagonals")
        (first, second), self._output = labels
        self._lengths = dict(zip((*first, *second), (*shapes[0], *shapes[1]), strict=True))
        if any(self._lengths[label] != n for label, n in zip(first, shapes[0], strict=True)):
            raise errors.Unimplemented("an einsum that broadcasts")
        self.turned = self._output[-1:] != () and self._output[-1] not in second
        left, right = (second, first) if self.turned else (first, second)
        shared = [label for label in left if label in right]
        self._batch = [(label,) for label in self._output if label in shared]
        self._rows = tuple(label for label in left if label not in shared)
        self._columns = tuple(label for label in right if label not in shared)
        inner = tuple(label for label in shared if label not in self._output)
        if not {*self._rows, *self._columns} <= {*self._output}:
            raise errors.Unimplemented("an einsum that sums one operand by itself")
        self.left = self._matrices(left, self._rows, inner)
        self.right = self._matrices(right, inner, self._columns)
        self.result = self.of_result([self._lengths[label] for label in self._output])

    def of_result(self, shape: Sequence[int]) -> Matrices:
        """The matrices of an array of the result's rank, whose dimensions have the result's lengths, or 1."""
        lengths_by_label = dict(zip(self._output, shape, strict=True))
        return self._matrices(self._output, self._rows, self._columns, lengths_by_label)

    def _matrices(
        self, labels: Labels, first: Labels, second: Labels, lengths: Mapping[geometry.Label, int] | None = None
    ) -> Matrices:
        lengths = self._lengths if lengths is None else lengths
        strides = dict(zip(labels, row_major_strides([lengths[label] for label in labels]), strict=True))
        axes = [_merge_axes(group, lengths, strides) for group in (*self._batch, first, second)]
        *_, (high, down), (wide, across) = axes
        if high == across == 1:  # the library needs the distance of rows even for a single row
            axes[-2] = high, wide
        elif wide == down == 1:
            axes[-1] = wide, high
        return Matrices([n for n, _ in axes], [stride for _, stride in axes])


def _merge_axes(
    group: Labels, lengths: Mapping[geometry.Label, int], strides: Mapping[geometry.Label, int]
) -> tuple[int, int]:
    """The length and stride of axes merged into one. Raises Unimplemented if they are not adjacent in memory."""
    long_axes = [label for label in group if lengths[label] > 1]
    for outer, inner in pairwise(long_axes):
        if strides[outer] != strides[inner] * lengths[inner]:
            raise errors.Unimplemented("an einsum whose axes are not adjacent in memory")
    return prod(lengths[label] for label in group), strides[long_axes[-1]] if long_axes else 1
