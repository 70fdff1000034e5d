"""Einsum: planned once into diagonals, sums and transposes of each operand, and one matrix product."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from heald.api import Bind, Kernels, geometry

from ..element_types import COMPLEX, FLOATS, NARROW, Array
from .staging import nothing
from .strided_view import strided_view

Labels = tuple[geometry.Label, ...]
Lengths = Mapping[geometry.Label, int]
Step = Callable[[Array], Array]
Run = Callable[..., None]


@dataclass(frozen=True)
class Operand:
    """`step` makes of an input the array that has one axis for each of `labels`."""

    labels: Labels
    step: Step
    widened: bool  # to float32


def einsum(b: Bind) -> Run:
    equation = geometry.einsum_labels(b.attrs["equation"], [x.rank for x in b.inputs])
    assert equation is not None
    axes, output = equation
    if not b.outputs[0].size:
        return nothing
    lengths: dict[geometry.Label, int] = {}
    for labels, x in zip(axes, b.inputs, strict=True):
        lengths |= {label: n for label, n in zip(labels, x.meta.dims, strict=True) if lengths.get(label, 1) == 1}
    narrow = b.outputs[0].dtype.name in NARROW
    operands = []
    for i, x in enumerate(b.inputs):
        needed = {*output, *(label for labels in (*axes[:i], *axes[i + 1 :]) for label in labels)}
        operands.append(_operand(axes[i], x.meta.dims, needed, lengths, widen=narrow))
    first, *other_operands = operands
    run = _product(first, other_operands[0], output, lengths) if other_operands else _arrangement(first, output)
    return run if len(set(output)) == len(output) else _on_diagonal(run, output)


def _on_diagonal(run: Run, output: Labels) -> Run:
    """`run` for an output with equal labels, which is 0 off their diagonal."""
    def inflate(*arrays: Array) -> None:
        out = arrays[-1]
        out.fill(0)
        run(*arrays[:-1], _diagonal(out, output))

    return inflate


def _arrangement(x: Operand, output: Labels) -> Run:
    order = _order(x.labels, tuple(dict.fromkeys(output)))
    return lambda a, out: np.copyto(out, x.step(a).transpose(order), casting="unsafe")


def _product(x: Operand, y: Operand, output: Labels, lengths: Lengths) -> Run:
    target = tuple(dict.fromkeys(output))
    shared = tuple(label for label in x.labels if label in y.labels and label not in target)
    if not shared:
        left, right = _alignment(x, target), _alignment(y, target)
        multiply: Run = np.multiply if not x.widened else _multiply_and_round
        return lambda a, b, out: multiply(left(a), right(b), out)
    batch = tuple(label for label in target if label in x.labels and label in y.labels)
    rows, columns = (tuple(label for label in target if label not in other.labels) for other in (y, x))
    natural = (*batch, *rows, *columns)
    if target != natural and target == (*batch, *columns, *rows):
        turned = _product(y, x, output, lengths)
        return lambda a, b, out: turned(b, a, out)
    left, right = _matrix(x, batch, rows, shared, lengths), _matrix(y, batch, shared, columns, lengths)
    order, dims = _order(target, natural), [lengths[label] for label in natural]

    def run(a: Array, b: Array, out: Array) -> None:
        np.copyto(out.transpose(order), np.matmul(left(a), right(b)).reshape(dims), casting="unsafe")

    def run_in_place(a: Array, b: Array, out: Array) -> None:
        first, second = left(a), right(b)
        np.matmul(first, second, out=out.reshape(*first.shape[:-1], second.shape[-1]))

    return run_in_place if target == natural == output and not x.widened else run


def _multiply_and_round(x: Array, y: Array, out: Array) -> None:
    np.copyto(out, x * y, casting="unsafe")


def _alignment(x: Operand, target: Labels) -> Step:
    """A step that arranges `x` with one axis for each label of the output. Axes of labels that `x` lacks have length
    1."""
    order = _order(x.labels, [label for label in target if label in x.labels])
    index = tuple(slice(None) if label in x.labels else None for label in target)
    return lambda a: x.step(a).transpose(order)[index]


def _matrix(x: Operand, batch: Labels, first: Labels, second: Labels, lengths: Lengths) -> Step:
    """A step that makes matrices for a BLAS: adjacent elements in memory are of one row or of one column."""
    order = _order(x.labels, (*batch, *first, *second))
    sizes = [prod(lengths[label] for label in group) for group in (first, second)]
    shape = (*(lengths[label] for label in batch), *sizes)
    last = next((label for label in reversed(x.labels) if lengths[label] > 1), None)
    if last in batch:
        return lambda a: np.ascontiguousarray(x.step(a).transpose(order)).reshape(shape)
    return lambda a: x.step(a).transpose(order).reshape(shape)


def _operand(labels: Labels, dims: Sequence[int], needed: Collection[geometry.Label], lengths: Lengths, *,
             widen: bool) -> Operand:
    """The operand, summed over the axes that no other operand and no output has, without its axes that broadcast."""
    distinct = tuple(dict.fromkeys(labels))
    length_of = dict(zip(labels, dims, strict=True))
    dropped_labels = {label for label in distinct if label not in needed or length_of[label] != lengths[label]}
    axes = tuple(distinct.index(label) for label in dropped_labels)
    steps: list[Step] = [lambda x: x.astype(np.float32)] if widen else []
    if len(distinct) < len(labels):
        steps.append(lambda x: _diagonal(x, labels))
    if dropped_labels:
        ones = all(length_of[label] == 1 for label in dropped_labels)
        steps.append(lambda x: x.squeeze(axes) if ones else np.add.reduce(x, axes, x.dtype))

    def step(x: Array) -> Array:
        for transform in steps:
            x = transform(x)
        return x

    return Operand(tuple(label for label in distinct if label not in dropped_labels), step, widen)


def _diagonal(x: Array, labels: Labels) -> Array:
    """A view of `x` with one axis for each distinct label. Equal labels share an axis, along their diagonal."""
    lengths = dict(zip(labels, x.shape, strict=True))
    strides = dict.fromkeys(labels, 0)
    for label, stride in zip(labels, x.strides, strict=True):
        strides[label] += stride
    return strided_view(x, tuple(lengths.values()), tuple(strides.values()), writeable=True)


def _order(source: Labels, target: Sequence[geometry.Label]) -> tuple[int, ...]:
    return tuple(source.index(label) for label in target)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Einsum", dtypes={"T": ("int32", "int64", *FLOATS, *COMPLEX)})(einsum)
