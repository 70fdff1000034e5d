"""Einsum of two operands as one matrix product by strides. Groups of labels that have no common stride are copied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from heald.api import Bind, errors, geometry

from .copies import copy
from .dialect import Target
from .epilogue import Epilogue
from .gemm import gemm
from .gemm_problem import GemmProblem
from .lhs import Matrix
from .plan import INPUT, OUTPUT, SCRATCH, Argument, Plan, Stage, chain_plans
from .strided_view import StridedView, dense_view

Labels = tuple[geometry.Label, ...]


class Operand(NamedTuple):
    """A tensor: a buffer, and a label for each axis of its view."""

    buffer: Argument
    labels: Labels
    view: StridedView

    def view_by_labels(self, labels: Labels) -> StridedView:
        return self.view.permute_axes([self.labels.index(label) for label in labels])

    def length(self, group: Labels) -> int:
        return prod(self.view_by_labels(group).dims)

    def stride(self, group: Labels) -> int | None:
        """The stride of a group of labels as one axis; None where they have none in common."""
        part = self.view_by_labels(group)
        axes = [(n, step) for n, step in zip(part.dims, part.steps, strict=True) if n != 1]
        joined = all(step == n * inner for (_, step), (n, inner) in pairwise(axes))
        return (axes[-1][1] if axes else 1) if joined else None


def einsum(target: Target, b: Bind) -> Plan:
    """The plan of Einsum. Raises Unimplemented for equations that are no product of matrices."""
    x, y, output = _operands(b)
    if not b.outputs[0].size:
        return Plan()
    if output.labels[-1:] and output.labels[-1] in x.labels:
        x, y = y, x  # neighbouring columns of the product are neighbours in memory
    shared = tuple(label for label in x.labels if label not in output.labels)
    batch = tuple(label for label in output.labels if label in x.labels and label in y.labels)
    rows, columns = (tuple(label for label in output.labels if label not in other.labels) for other in (y, x))
    if batch and not rows and not columns:
        raise errors.Unimplemented(f"no kernel text for {b.attrs['equation']}: it is no product of matrices")
    copies = Copies(target, b.outputs[0].dtype.itemsize)
    left, (a_batch, a_row, a_column) = copies.input_buffer(x, (batch, rows, shared))
    right, (b_batch, b_row, b_column) = copies.input_buffer(y, (batch, shared, columns))
    result, (y_batch, y_row), behind = copies.output_buffer(output, batch, rows, columns)
    problem = GemmProblem(
        b.outputs[0].dtype, batch=x.length(batch), rows=x.length(rows), inner=x.length(shared),
        columns=y.length(columns), b_row=b_row, b_column=b_column, b_batch=b_batch, y_row=y_row, y_batch=y_batch)
    product = gemm(target, "Einsum", problem, Matrix(problem.dtype, a_row, a_column, a_batch), Epilogue())
    return chain_plans([*copies.stages, Stage(product, (left, right), (result,)), *behind], copies.scratch)


class Copies:
    """The copies before and after a product, and their buffers."""

    def __init__(self, target: Target, itemsize: int) -> None:
        self.stages: list[Stage] = []
        self.scratch: list[int] = []
        self._target = target
        self._itemsize = itemsize

    def input_buffer(self, operand: Operand, groups: Sequence[Labels]) -> tuple[Argument, list[int]]:
        """The buffer of an operand and the stride of each group. An operand with a group without a stride is copied."""
        strides = [stride for group in groups if (stride := operand.stride(group)) is not None]
        if len(strides) == len(groups):
            return operand.buffer, strides
        copied = self._copy_operand(operand, tuple(label for group in groups for label in group))
        source = operand.view_by_labels(copied.labels)
        self.stages.append(self._copy(source, copied.view, operand.buffer, copied.buffer))
        return self.input_buffer(copied, groups)

    def output_buffer(self, output: Operand, *groups: Labels) -> tuple[Argument, list[int], list[Stage]]:
        """The buffer that the product writes, its strides but the last, which is 1, and the copy to the output."""
        strides = [stride for group in groups if (stride := output.stride(group)) is not None]
        if len(strides) == len(groups) and strides[-1] == 1:
            return output.buffer, strides[:-1], []
        copied = self._copy_operand(output, tuple(label for group in groups for label in group))
        behind = self._copy(copied.view_by_labels(output.labels), output.view, copied.buffer, output.buffer)
        return copied.buffer, [copied.stride(group) or 0 for group in groups[:-1]], [behind]

    def _copy_operand(self, operand: Operand, labels: Labels) -> Operand:
        dims = operand.view_by_labels(labels).dims
        self.scratch.append(prod(dims) * self._itemsize)
        return Operand(Argument(SCRATCH, len(self.scratch) - 1), labels, dense_view(dims))

    def _copy(self, source: StridedView, target: StridedView, read: Argument, written: Argument) -> Stage:
        return Stage(Plan(tuple(copy(self._target, self._itemsize, source, target))), (read,), (written,))


def _operands(b: Bind) -> tuple[Operand, Operand, Operand]:
    """Both inputs and the output. Raises Unimplemented unless each label of an input is one of another tensor."""
    shapes = [x.meta.dims for x in b.inputs]
    equation = geometry.einsum_labels(b.attrs["equation"], [len(shape) for shape in shapes])
    assert equation is not None
    axes, output = equation
    if len(axes) != 2:
        raise errors.Unimplemented(f"no kernel text for an Einsum of {len(axes)} operands")
    left, right = (dict(zip(labels, shape, strict=True)) for labels, shape in zip(axes, shapes, strict=True))
    alone = set(axes[0]) ^ set(axes[1])
    if (any(len(set(labels)) != len(labels) for labels in (*axes, output)) or not alone <= set(output)
            or any(left[label] != right[label] for label in left.keys() & right.keys())):
        raise errors.Unimplemented(f"no kernel text for {b.attrs['equation']}: it is more than a product")
    inputs = [Operand(Argument(INPUT, i), tuple(axes[i]), dense_view(shapes[i])) for i in range(2)]
    return inputs[0], inputs[1], Operand(Argument(OUTPUT, 0), tuple(output), dense_view(b.outputs[0].dims))
