"""Reductions along any axes. Neighbouring axes that are all kept, or all reduced, are one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import reduce as fold_terms
from itertools import groupby
from math import prod
from typing import NamedTuple

from heald.api import DType, dtypes, errors

from .broadcast import Dims
from .c_text import expression, write_lines
from .dialect import Target
from .element_types import ELEMENTS, memory_type, register_type
from .kernel_parts import Pointer
from .lanes import lanes_of, over_channels
from .plan import INPUT, OUTPUT, SCRATCH, Argument, Plan, Stage, chain_plans, kernel
from .reduction_ops import GROUP, WIDE, ReductionProblem, group_position, tree
from .statements import (
    Array,
    Assign,
    Body,
    Define,
    Indented,
    Loop,
    SameLine,
    Statement,
    When,
    count_up,
    exit_beyond,
    work_item,
)
from .statements import Step as LoopStep
from .strided_view import reach
from .tree import SIZE_T, Number, Tree, Word

BUSY_GROUPS = 1024  # that a GPU has work for at once
SHORTEST_PIECE = 2048  # elements: a group's second launch takes as long as so many
EXACT_TYPES = frozenset({dtypes.bool_, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32,
                         dtypes.uint64})
SUMS, J, VALUE = Word("acc"), Word("j"), Word("v")


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
    target: Target, how: str, problem: ReductionProblem, lines: Body, axes: Sequence[Axis],
    items: Sequence[int], local: Sequence[int],
) -> Plan:
    read = reach(0, [(axis.length, axis.step) for axis in axes]) if problem.count else 0
    written = prod(axis.length for axis in axes if not axis.reduced)
    sizes = {f"n{d}": axis.length for d, axis in enumerate(axes)} | {f"s{d}": a.step for d, a in enumerate(axes)}
    stored = memory_type(problem.dtype)
    return Plan((kernel(
        target, f"{problem.op}_{how}", lines, [Pointer("x0", INPUT, 0, stored, read)],
        [Pointer("y0", OUTPUT, 0, stored, written)], sizes | {"count": problem.count}, items, local,
    ),))


def _offset(name: str, number: str, axes: Sequence[Axis], counted_axes: Sequence[int]) -> Body:
    """Statements for the input's offset of element `number`, counted through `counted_axes`."""
    lines: list[Statement] = []
    remaining, terms = Word(number), []
    for d in reversed(counted_axes[1:]):
        length, position, quotient = Word(f"n{d}"), Word(f"{name}{d}"), Word(f"{name}r{d}")
        lines.append(Define("size_t", {position.name: remaining % length, quotient.name: remaining / length}))
        remaining = quotient
        terms.append(position * Word(f"s{d}"))
    if counted_axes:
        terms.append(remaining * Word(f"s{counted_axes[0]}"))
    return [*lines, Define("size_t", {name: _sum(terms)})]


def _sum(terms: Sequence[Tree]) -> Tree:
    return fold_terms(operator.add, terms) if terms else Number(0)


def _outputs(kept_axes: Sequence[int]) -> Tree:
    lengths = [SIZE_T(Word(f"n{d}")) for d in kept_axes]
    return fold_terms(operator.mul, lengths) if lengths else Number(1)


def _kept_last(target: Target, problem: ReductionProblem, axes: Sequence[Axis]) -> Plan:
    """Neighbouring work-items (or lanes) sum neighbouring columns."""
    last = len(axes) - 1
    kept_axes = [d for d, axis in enumerate(axes[:-1]) if not axis.reduced]
    lanes, rows = lanes_of(target), prod(axes[d].length for d in kept_axes)
    reduced = [d for d, axis in enumerate(axes) if axis.reduced]
    column, row = Word("c"), Word("row")

    def body(width: int) -> Body:
        def add(at: Word) -> Body:
            return [Indented([count_up("u32", "j", width, [
                problem.element(at + column + J), problem.combine(SUMS[J], VALUE)], "braces")])]

        return [
            Array(register_type(problem.sums), "acc", width),
            count_up("u32", "j", width, [Assign(SUMS[J], problem.start)]), *_loops(reduced, add),
            count_up("u32", "j", width, [problem.write(row * Word(f"n{last}") + column + J, SUMS[J])]),
        ]

    lines = [Define("size_t", {"row": work_item(1)}), exit_beyond("row", _outputs(kept_axes)),
             *_offset("first", "row", axes, kept_axes), *over_channels(f"n{last}", lanes, body)]
    items, local = lanes.grid(axes[-1].length, rows)
    return _plan(target, "columns", problem, lines, axes, items, local)


def _loops(reduced: Sequence[int], body: Callable[[Word], Body], at: str = "first") -> Body:
    """Loops over reduced axes around `body`, which gets the offset of the innermost."""
    if not reduced:
        return body(Word(at))
    d, *inner = reduced
    steps = (LoopStep(f"i{d}", Number(0), "+", Number(1)), LoopStep(f"at{d}", Word(at), "+", Word(f"s{d}")))
    return [Loop("size_t", steps, Word(f"i{d}") < SIZE_T(Word(f"n{d}")), _loops(inner, body, f"at{d}"),
                 "below")]


def _by_lanes(target: Target, problem: ReductionProblem, axes: Sequence[Axis]) -> Plan:
    """On a CPU: one work-item for each output, in 16 sums that are added up at the end."""
    last, c_type = len(axes) - 1, register_type(problem.sums)
    kept_axes = [d for d, axis in enumerate(axes) if not axis.reduced]
    reduced = [d for d, axis in enumerate(axes[:-1]) if axis.reduced]
    outputs = prod(axes[d].length for d in kept_axes)
    length, k = SIZE_T(Word(f"n{last}")), Word("k")

    def add(at: Word) -> Body:
        lanes = count_up("u32", "j", 16, [problem.element(at + k + J), problem.combine(SUMS[J], VALUE)], "braces")
        last_elements: Body = [problem.element(at + k), problem.combine(SUMS[0], VALUE)]
        return [
            "{", "  size_t k = 0;", f"  for (; k + 16 <= {expression(length)}; k += 16)",
            *(f"    {line}" for line in write_lines([lanes])),
            f"  for (; k < {expression(length)}; k++) {{ {' '.join(write_lines(last_elements))} }}", "}",
        ]

    lines = [
        Define("size_t", {"o": work_item(0)}), exit_beyond("o", _outputs(kept_axes)),
        *_offset("first", "o", axes, kept_axes),
        Array(c_type, "acc", 16), count_up("u32", "j", 16, [Assign(SUMS[J], problem.start)]), *_loops(reduced, add),
        count_up("u32", "j", 16, [problem.combine(SUMS[0], SUMS[J])], start=1), problem.write(Word("o"), SUMS[0]),
    ]
    return _plan(target, "rows", problem, lines, axes, (outputs,), (1,) if outputs < 64 else (16,))


def _by_groups(target: Target, problem: ReductionProblem, axes: Sequence[Axis]) -> Plan:
    """On a GPU: a group of work-items for each output, then a tree in local memory."""
    c_type = register_type(problem.sums)
    kept_axes = [d for d, axis in enumerate(axes) if not axis.reduced]
    reduced = [d for d, axis in enumerate(axes) if axis.reduced]
    total = Word("acc")
    lines = [
        Array(c_type, "part", GROUP, is_shared=True), *group_position("o"),
        *_offset("first", "o", axes, kept_axes), Define(c_type, {"acc": problem.start}, constant=False),
        count_up("size_t", "k", SIZE_T(Word("count")), [
            *_offset("at", "k", axes, reduced),
            SameLine([problem.element(Word("first") + Word("at")), problem.combine(total, VALUE)]),
        ], "block", start=Word("t"), by=GROUP),
        *tree(target, problem.combine, c_type, "acc"),
        When(Word("t") == 0, [problem.write(Word("o"), Word("part")[0])]),
    ]
    outputs = prod(axes[d].length for d in kept_axes)
    return _plan(target, "groups", problem, lines, axes, (outputs * GROUP,), (GROUP,))
