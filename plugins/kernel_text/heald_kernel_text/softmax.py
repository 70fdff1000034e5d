"""Softmax and LogSoftmax along the last dimension."""

from __future__ import annotations

from math import inf

from heald.api import DType

from .dialect import Target
from .element_types import memory_type, number_tree, register_type
from .kernel_parts import Pointer
from .plan import INPUT, LINE, OUTPUT, Plan, kernel
from .reduction_ops import GROUP, combiner, group_position, tree
from .statements import (
    Array,
    Assign,
    Barrier,
    Body,
    Define,
    Loop,
    Statement,
    Store,
    count_up,
    exit_beyond,
    work_item,
)
from .tree import SIZE_T, Load, Number, Word, function

V, MOST, TOTAL = map(Word, ("v", "most", "total"))
exp, log = function("exp"), function("log")
RESULTS = {"Softmax": exp(V - MOST) / TOTAL, "LogSoftmax": V - MOST - log(TOTAL)}


def softmax(target: Target, op: str, dtype: DType, rows: int, columns: int) -> Plan:
    """Each row has one work-item on a CPU, a group of them on a GPU. Two-byte floats are computed in float32."""
    if not rows * columns:
        return Plan()
    c_type = register_type(dtype)
    at = Word("r") * Word("columns") + Word("c")
    value = Define(c_type, {"v": Load(dtype, "x0", at)})
    largest, add = combiner("Max", dtype), combiner("Sum", dtype)
    start = Define(c_type, {"most": number_tree(-inf, dtype), "total": Number(0)}, constant=False)

    def each(statement: Statement) -> Loop:
        first, by = (0, 1) if target.cpu else (Word("t"), GROUP)
        return count_up("size_t", "c", SIZE_T(Word("columns")), [value, statement], "braces", start=first, by=by)

    greatest, sums = each(largest(MOST, V)), each(Assign(TOTAL, exp(V - MOST), "+"))
    results = each(Store(dtype, "y0", at, RESULTS[op]))
    lines: Body
    if target.cpu:
        lines = [Define("size_t", {"r": work_item(0)}), exit_beyond("r", SIZE_T(Word("rows"))), start,
                 greatest, sums, results]
    else:
        lines = [
            Array(c_type, "part", GROUP, is_shared=True), *group_position("r"), start,
            greatest, *tree(target, largest, c_type, "most"), Assign(MOST, Word("part")[0]), Barrier(),
            sums, *tree(target, add, c_type, "total"), Assign(TOTAL, Word("part")[0]), results,
        ]
    return Plan((kernel(
        target, op, lines, [Pointer("x0", INPUT, 0, memory_type(dtype), rows * columns)],
        [Pointer("y0", OUTPUT, 0, memory_type(dtype), rows * columns)], {"rows": rows, "columns": columns},
        *(((rows,), (1,)) if target.cpu else ((rows * GROUP,), LINE)),
    ),))
