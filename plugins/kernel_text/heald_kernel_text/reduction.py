"""Reductions along any axes. Neighbouring axes that are all kept, or all reduced, are one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import NamedTuple

from heald.api import DType, dtypes, errors

from .broadcast import Dims
from .dialect import Target
from .element_types import ELEMENTS, memory_type, register_type
from .epilogue import indent_lines
from .lanes import lanes_of, over_channels
from .plan import INPUT, OUTPUT, SCRATCH, Argument, Plan, Pointer, Stage, chain_plans, kernel
from .reduction_ops import GROUP, WIDE, ReductionProblem, tree
from .strided_view import reach

BUSY_GROUPS = 1024  # that a GPU has work for at once
SHORTEST_PIECE = 2048  # elements: a group's second launch takes as long as so many
EXACT_TYPES = frozenset({dtypes.bool_, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32,
                         dtypes.uint64})


class Axis(NamedTuple):
    length: int
    step: int
    reduced: bool


def axes_of(shape: Dims, reduced: Collection[int]) -> list[Axis]:
    """The axes as they alternate, kept and reduced, lengths of 1 left out."""
    merged_axes, step = [], prod(shape)
    lengths = [(n, axis in reduced) for axis, n in enumerate(shape) if n != 1]
    for is_reduced, run in groupby(lengths, lambda pair: pair[1]):
        length = prod(n for n, _ in run)
        step //= length
        merged_axes.append(Axis(length, step, is_reduced))
    return merged_axes


def reduce(target: Target, op: str, dtype: DType, shape: Dims, axes: Collection[int]) -> Plan:
    """`op` of REDUCTIONS along `axes` (counted from 0). Inputs: the tensor. Raises Unimplemented."""
    if dtype not in ELEMENTS:
        raise errors.Unimplemented(f"no kernel text for {op} of {dtype.name}")
    size = prod(n for axis, n in enumerate(shape) if axis not in axes)
    if not size:
        return Plan()
    sums = WIDE.get(dtype.kind, dtype) if op == "Mean" else dtype
    problem = ReductionProblem(op, dtype, sums, prod(shape) // size)
    if not problem.count:
        merged_axes = [Axis(size, 0, False), Axis(0, 0, True)]  # nothing is read
    else:
        merged_axes = axes_of(shape, axes) or [Axis(1, 1, False)]
    if not merged_axes[-1].reduced:
        return _kept_last(target, problem, merged_axes)
    if target.cpu:
        return _by_lanes(target, problem, merged_axes)
    pieces = _pieces_of(problem, merged_axes)
    return _by_groups(target, problem, merged_axes) if pieces == 1 else _in_pieces(target, problem, size, pieces)


def _pieces_of(problem: ReductionProblem, axes: Sequence[Axis]) -> int:
    """The pieces of each row that get a group of their own; 1 where rows are short, or keep the GPU busy as they are.

    The pieces have equal lengths, so the mean of their means is the mean. Their results are stored in the type of the
    tensor, so narrow types, whose sums are wider, stay whole.
    """
    is_exact = problem.dtype in EXACT_TYPES and (problem.op != "Mean" or problem.dtype.kind == "f")
    outputs = prod(axis.length for axis in axes if not axis.reduced)
    if not is_exact or len(axes) > 2 or outputs * 8 > BUSY_GROUPS:
        return 1
    most = min(BUSY_GROUPS // outputs, problem.count // SHORTEST_PIECE)
    return next((pieces for pieces in range(most, 1, -1) if problem.count % pieces == 0), 1)


def _in_pieces(target: Target, problem: ReductionProblem, rows: int, pieces: int) -> Plan:
    """Reduce the pieces of each row, and then their results."""
    first, second = (
        _by_groups(target, replace(problem, count=count), [Axis(outputs, count, False), Axis(count, 1, True)])
        for outputs, count in ((rows * pieces, problem.count // pieces), (rows, pieces)))
    results = Argument(SCRATCH, 0)
    return chain_plans([Stage(first, [Argument(INPUT, 0)], [results]), Stage(second, [results], [Argument(OUTPUT, 0)])],
                       [rows * pieces * problem.dtype.itemsize])


def _plan(
    target: Target, how: str, problem: ReductionProblem, lines: Sequence[str], axes: Sequence[Axis],
    items: Sequence[int], local: Sequence[int],
) -> Plan:
    read = reach(0, [(axis.length, axis.step) for axis in axes]) if problem.count else 0
    written = prod(axis.length for axis in axes if not axis.reduced)
    sizes = {f"n{d}": axis.length for d, axis in enumerate(axes)} | {f"s{d}": a.step for d, a in enumerate(axes)}
    stored = memory_type(problem.dtype)
    return Plan((kernel(
        target, f"{problem.op}_{how}", indent_lines(lines, 2), [Pointer("x0", INPUT, 0, stored, read)],
        [Pointer("y0", OUTPUT, 0, stored, written)], sizes | {"count": problem.count}, items, local,
    ),))


def _offset(name: str, number: str, axes: Sequence[Axis], counted_axes: Sequence[int]) -> list[str]:
    """Statements for the input's offset of element `number`, counted through `counted_axes`."""
    lines, remaining, terms = [], number, []
    for d in reversed(counted_axes[1:]):
        lines.append(f"const size_t {name}{d} = {remaining} % n{d}, {name}r{d} = {remaining} / n{d};")
        remaining = f"{name}r{d}"
        terms.append(f"{name}{d} * s{d}")
    if counted_axes:
        terms.append(f"{remaining} * s{counted_axes[0]}")
    return [*lines, f"const size_t {name} = {' + '.join(terms) or '0'};"]


def _kept_last(target: Target, problem: ReductionProblem, axes: Sequence[Axis]) -> Plan:
    """Neighbouring work-items (or lanes) sum neighbouring columns."""
    last = len(axes) - 1
    kept_axes = [d for d, axis in enumerate(axes[:-1]) if not axis.reduced]
    lanes, rows = lanes_of(target), prod(axes[d].length for d in kept_axes)
    loops, at = _loops(axes, [d for d, axis in enumerate(axes) if axis.reduced])

    def body(width: int) -> list[str]:
        every = f"for (u32 j = 0; j < {width}; j++) "
        return [
            f"{register_type(problem.sums)} acc[{width}];", f"{every}acc[j] = {problem.start};",
            *loops,
            f"  {every}{{ {problem.element(f'{at} + c + j')} {problem.combine('acc[j]', 'v')} }}",
            f"{every}{problem.write(f'row * n{last} + c + j', 'acc[j]')}",
        ]

    row_count = " * ".join(f"(size_t)n{d}" for d in kept_axes) or "1"
    lines = ["const size_t row = GLOBAL_ID(1);", f"if (row >= {row_count}) return;",
             *_offset("first", "row", axes, kept_axes),
             *over_channels(f"n{last}", lanes, body)]
    items, local = lanes.grid(axes[-1].length, rows)
    return _plan(target, "columns", problem, lines, axes, items, local)


def _loops(axes: Sequence[Axis], reduced: Sequence[int]) -> tuple[list[str], str]:
    """Loop heads over reduced axes, and the name of the offset in the innermost."""
    heads, at = [], "first"
    for d in reduced:
        heads.append(f"for (size_t i{d} = 0, at{d} = {at}; i{d} < (size_t)n{d}; i{d}++, at{d} += s{d})")
        at = f"at{d}"
    return heads, at


def _by_lanes(target: Target, problem: ReductionProblem, axes: Sequence[Axis]) -> Plan:
    """On a CPU: one work-item for each output, in 16 sums that are added up at the end."""
    last, c_type = len(axes) - 1, register_type(problem.sums)
    kept_axes = [d for d, axis in enumerate(axes) if not axis.reduced]
    reduced = [d for d, axis in enumerate(axes[:-1]) if axis.reduced]
    outputs = prod(axes[d].length for d in kept_axes)
    loops, at = _loops(axes, reduced)
    lines = [
        "const size_t o = GLOBAL_ID(0);", f"if (o >= {' * '.join(f'(size_t)n{d}' for d in kept_axes) or '1'}) return;",
        *_offset("first", "o", axes, kept_axes),
        f"{c_type} acc[16];", f"for (u32 j = 0; j < 16; j++) acc[j] = {problem.start};",
        *loops, "{", "  size_t k = 0;", f"  for (; k + 16 <= (size_t)n{last}; k += 16)",
        f"    for (u32 j = 0; j < 16; j++) {{ {problem.element(f'{at} + k + j')} {problem.combine('acc[j]', 'v')} }}",
        f"  for (; k < (size_t)n{last}; k++) {{ {problem.element(f'{at} + k')} {problem.combine('acc[0]', 'v')} }}",
        "}", f"for (u32 j = 1; j < 16; j++) {problem.combine('acc[0]', 'acc[j]')}", problem.write("o", "acc[0]"),
    ]
    return _plan(target, "rows", problem, lines, axes, (outputs,), (1,) if outputs < 64 else (16,))


def _by_groups(target: Target, problem: ReductionProblem, axes: Sequence[Axis]) -> Plan:
    """On a GPU: a group of work-items for each output, then a tree in local memory."""
    c_type = register_type(problem.sums)
    kept_axes = [d for d, axis in enumerate(axes) if not axis.reduced]
    reduced = [d for d, axis in enumerate(axes) if axis.reduced]
    lines = [
        f"LOCAL {c_type} part[{GROUP}];", "const size_t o = GROUP_ID(0);", "const u32 t = LOCAL_ID(0);",
        *_offset("first", "o", axes, kept_axes), f"{c_type} acc = {problem.start};",
        f"for (size_t k = t; k < (size_t)count; k += {GROUP}) {{", *_offset("at", "k", axes, reduced),
        f"{problem.element('first + at')} {problem.combine('acc', 'v')}", "}",
        *tree(target, problem.combine, c_type, "acc"),
        f"if (t == 0) {problem.write('o', 'part[0]')}",
    ]
    outputs = prod(axes[d].length for d in kept_axes)
    return _plan(target, "groups", problem, lines, axes, (outputs * GROUP,), (GROUP,))
