"""ArgMax and ArgMin along one axis: the first place; NaN loses against every number."""

from __future__ import annotations

from math import prod

from heald.api import DType

from .broadcast import Dims
from .c_text import literal
from .dialect import Target
from .element_types import limits, load, memory_type, register_type, store
from .epilogue import indent_lines
from .plan import INPUT, LINE, OUTPUT, Plan, Pointer, kernel

BETTER = {"ArgMax": (">", 0), "ArgMin": ("<", 1)}  # op: comparison, which limit loses


def arg_extreme(target: Target, op: str, dtype: DType, shape: Dims, axis: int, output: DType) -> Plan:
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    if not outer * inner:
        return Plan()
    comparison, loser = BETTER[op]
    c_type = register_type(dtype)
    lines = [
        "const size_t o = GLOBAL_ID(0);", "if (o >= (size_t)outputs) return;",
        "const size_t first = o / inner * n * inner + o % inner;", "size_t found = 0;",
        f"{c_type} best = {literal(limits(dtype)[loser], dtype)};", "for (size_t k = 0; k < (size_t)n; k++) {",
        f"  const {c_type} v = {load(dtype, 'x0', 'first + k * inner')};",
        f"  if (v {comparison} best) {{ best = v; found = k; }}", "}",
        store(output, "y0", "o", f"({register_type(output)})found"),
    ]
    sizes = {"outputs": outer * inner, "n": shape[axis], "inner": inner}
    return Plan((kernel(
        target, op, indent_lines(lines, 2), [Pointer("x0", INPUT, 0, memory_type(dtype), prod(shape))],
        [Pointer("y0", OUTPUT, 0, memory_type(output), outer * inner)], sizes, (outer * inner,), LINE,
    ),))
