"""Ops that only move elements, as copies between views: transpose, slices, concat, split, pack, tile, pad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import add, mul

from heald.api import DType, dtypes

from .broadcast import Dims
from .dialect import Target
from .element_types import memory_type, number_tree, store
from .kernel_parts import Pointer
from .plan import INPUT, LINE, OUTPUT, KernelText, Plan, kernel, plane
from .statements import Body, Define, Exit, Statement, Store, When, exit_beyond, work_item
from .strided_view import StridedView, dense_view, merge_axes, reach
from .tree import OFFSET, SIZE_T, Load, Number, Word, either

# The types that elements of so many bytes are copied as.
WORDS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def copy(
    target: Target, itemsize: int, source: StridedView, destination: StridedView, *, input_: int = 0, output: int = 0
) -> list[KernelText]:
    """The launch that copies one view to another; no launch for views without elements."""
    axes = merge_axes(source, destination)
    if not prod(destination.dims):
        return []
    last = len(axes) - 1
    sizes = {f"n{d}": n for d, (n, _, _) in enumerate(axes)} | {f"s{d}": s for d, (_, s, _) in enumerate(axes)}
    sizes |= {f"t{d}": t for d, (_, _, t) in enumerate(axes)} | {"s": source.first, "t": destination.first}
    row, lengths = Word("row"), [Word(f"n{d}") for d in range(last + 1)]
    all_rows = reduce(mul, map(SIZE_T, lengths[:last])) if last else Number(1)
    column = Word(f"c{last}")
    lines: list[Statement] = [
        Define("size_t", {column.name: work_item(0), "row": work_item(1) if last else Number(0)}),
        When(either(column >= SIZE_T(lengths[last]), row >= all_rows), [Exit()]),
    ]
    remaining: Word = row
    for d in range(last - 1, -1, -1):
        divided = {f"c{d}": remaining % lengths[d], f"r{d}": remaining / lengths[d]} if d else {"c0": remaining}
        lines.append(Define("size_t", divided))
        remaining = Word(f"r{d}")
    at_s, at_t = (reduce(add, (OFFSET(Word(f"c{d}")) * Word(f"{side}{d}") for d in range(last + 1)), Word(side))
                  for side in "st")
    element = WORDS[itemsize]
    lines.append(Store(element, "y0", at_t, Load(element, "x0", at_s)))
    columns, rows = axes[-1][0], prod(n for n, _, _ in axes[:-1])
    word = memory_type(element)
    read, written = (reach(view.first, [(n, axis[side]) for n, *axis in axes])
                     for side, view in enumerate((source, destination)))
    return [kernel(
        target, "copy", lines, [Pointer("x0", INPUT, input_, word, read)],
        [Pointer("y0", OUTPUT, output, word, written)], sizes, *(
            ((columns, rows), plane(columns, rows)) if last else ((columns,), LINE)),
    )]


def fill(target: Target, dtype: DType, size: int, value: float) -> Plan:
    """Fill output 0 with `value`. No inputs."""
    if not size:
        return Plan()
    lines: Body = [Define("size_t", {"o": work_item(0)}), exit_beyond("o", SIZE_T(Word("size"))),
                   Store(dtype, "y0", Word("o"), number_tree(value, dtype))]
    output = Pointer("y0", OUTPUT, 0, memory_type(dtype), size)
    return Plan((kernel(target, "fill", lines, [], [output], {"size": size}, (size,), LINE),))


def integers(target: Target, dtype: DType, values: Sequence[int]) -> Plan:
    """Write these integers, which are parameters of the kernel, to output 0. No inputs."""
    if not values:
        return Plan()
    sizes = {f"n{d}": value for d, value in enumerate(values)}
    lines = [f"if (GLOBAL_ID(0) == {d}) {store(dtype, 'y0', str(d), f'n{d}')}" for d in range(len(values))]
    writes = [Pointer("y0", OUTPUT, 0, memory_type(dtype), len(values))]
    return Plan((kernel(target, "integers", lines, [], writes, sizes, (len(values),), LINE),))


def transpose(target: Target, itemsize: int, shape: Dims, axes: Sequence[int]) -> Plan:
    source = dense_view(shape).permute_axes(axes)
    return Plan(tuple(copy(target, itemsize, source, dense_view(source.dims))))


def part(target: Target, itemsize: int, source: StridedView) -> Plan:
    """Copy a view of the input to the output."""
    return Plan(tuple(copy(target, itemsize, source, dense_view(source.dims))))


def concat(target: Target, itemsize: int, shapes: Sequence[Dims], axis: int, first_input: int = 0) -> Plan:
    total = sum(shape[axis] for shape in shapes)
    output = dense_view((*shapes[0][:axis], total, *shapes[0][axis + 1 :]))
    launches, at = [], 0
    for number, shape in enumerate(shapes, first_input):
        launches += copy(target, itemsize, dense_view(shape), output.part(axis, at, shape[axis]), input_=number)
        at += shape[axis]
    return Plan(tuple(launches))


def split(target: Target, itemsize: int, shape: Dims, axis: int, lengths: Sequence[int]) -> Plan:
    """Copy each part along an axis to an output of its own. Unpack's parts have length 1."""
    launches, at = [], 0
    for number, length in enumerate(lengths):
        source = dense_view(shape).part(axis, at, length)
        launches += copy(target, itemsize, source, dense_view(source.dims), output=number)
        at += length
    return Plan(tuple(launches))


def tile(target: Target, itemsize: int, shape: Dims, multiples: Sequence[int]) -> Plan:
    source = dense_view(shape)
    dims = tuple(d for times, n in zip(multiples, shape, strict=True) for d in (times, n))
    steps = tuple(s for step in source.steps for s in (0, step))
    return Plan(tuple(copy(target, itemsize, StridedView(dims, steps), dense_view(dims))))


def padded_view(shape: Dims, pads: Sequence[tuple[int, int]]) -> tuple[StridedView, Dims]:
    """The view of the input within the padded output, and the output's shape."""
    output = tuple(before + n + after for (before, after), n in zip(pads, shape, strict=True))
    inner = dense_view(output)
    for axis, ((before, _), n) in enumerate(zip(pads, shape, strict=True)):
        inner = inner.part(axis, before, n)
    return inner, output


def pad(target: Target, dtype: DType, shape: Dims, pads: Sequence[tuple[int, int]], value: float = 0) -> Plan:
    inner, output = padded_view(shape, pads)
    borders = fill(target, dtype, prod(output), value).launches if output != shape else ()
    return Plan((*borders, *copy(target, dtype.itemsize, dense_view(shape), inner)))


def mirror_pad(target: Target, itemsize: int, shape: Dims, pads: Sequence[tuple[int, int]], skip: int) -> Plan:
    """`skip` is 1 where the edge itself is not repeated (REFLECT). Each region of the output is one copy."""
    _, output = padded_view(shape, pads)
    launches = []
    for segments in product(*(list(_segments(n, *p, skip)) for n, p in zip(shape, pads, strict=True))):
        source, destination = dense_view(shape), dense_view(output)
        for axis, (at, start, length, step) in enumerate(segments):
            source, destination = source.part(axis, start, length, step), destination.part(axis, at, length)
        launches += copy(target, itemsize, source, destination)
    return Plan(tuple(launches))


def _segments(n: int, before: int, after: int, skip: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the copies along one axis: index in the output, index in the input, length, direction."""
    if before:
        yield 0, skip + before - 1, before, -1
    yield before, 0, n, 1
    if after:
        yield before + n, n - 1 - skip, after, -1
