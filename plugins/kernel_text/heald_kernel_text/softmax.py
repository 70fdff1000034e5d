"""Softmax and LogSoftmax along the last dimension."""

from __future__ import annotations

from math import inf

from heald.api import DType

from .c_text import literal
from .dialect import Target
from .element_types import load, memory_type, register_type, store
from .epilogue import indent_lines
from .plan import INPUT, LINE, OUTPUT, Plan, Pointer, kernel
from .reduction_ops import GROUP, combiner, tree

RESULTS = {"Softmax": "exp(v - most) / total", "LogSoftmax": "v - most - log(total)"}


def softmax(target: Target, op: str, dtype: DType, rows: int, columns: int) -> Plan:
    """Each row has one work-item on a CPU, a group of them on a GPU. Two-byte floats are computed in float32."""
    if not rows * columns:
        return Plan()
    c_type = register_type(dtype)
    value = f"const {c_type} v = {load(dtype, 'x0', 'r * columns + c')};"
    write = store(dtype, "y0", "r * columns + c", RESULTS[op])
    largest, add = combiner("Max", dtype), combiner("Sum", dtype)
    least = literal(-inf, dtype)
    if target.cpu:
        every = "for (size_t c = 0; c < (size_t)columns; c++)"
        lines = [
            "const size_t r = GLOBAL_ID(0);", "if (r >= (size_t)rows) return;", f"{c_type} most = {least}, total = 0;",
            f"{every} {{ {value} most = {largest('most', 'v')}; }}", f"{every} {{ {value} total += exp(v - most); }}",
            f"{every} {{ {value} {write} }}",
        ]
    else:
        every = f"for (size_t c = t; c < (size_t)columns; c += {GROUP})"
        lines = [
            f"LOCAL {c_type} part[{GROUP}];", "const size_t r = GROUP_ID(0);", "const u32 t = LOCAL_ID(0);",
            f"{c_type} most = {least}, total = 0;", f"{every} {{ {value} most = {largest('most', 'v')}; }}",
            *tree(target, lambda a, v: f"{a} = {largest(a, v)};", c_type, "most"), "most = part[0];", "BARRIER;",
            f"{every} {{ {value} total += exp(v - most); }}",
            *tree(target, lambda a, v: f"{a} = {add(a, v)};", c_type, "total"),
            "total = part[0];", f"{every} {{ {value} {write} }}",
        ]
    return Plan((kernel(
        target, op, indent_lines(lines, 2), [Pointer("x0", INPUT, 0, memory_type(dtype), rows * columns)],
        [Pointer("y0", OUTPUT, 0, memory_type(dtype), rows * columns)], {"rows": rows, "columns": columns},
        *(((rows,), (1,)) if target.cpu else ((rows * GROUP,), LINE)),
    ),))
