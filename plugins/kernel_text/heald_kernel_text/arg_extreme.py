"""ArgMax and ArgMin along one axis: the first place; NaN loses against every number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod

from heald.api import DType

from .broadcast import Dims
from .dialect import Target
from .element_types import limits, memory_type, number_tree, register_type
from .kernel_parts import Pointer
from .plan import INPUT, LINE, OUTPUT, Plan, kernel
from .statements import Assign, Body, Define, Store, When, count_up, exit_beyond, work_item
from .tree import SIZE_T, Load, Number, Tree, TypeName, Word

# By op: the comparison, and the limit that loses.
BETTER: dict[str, tuple[Callable[[Tree, Tree], Tree], int]] = {"ArgMax": (operator.gt, 0), "ArgMin": (operator.lt, 1)}


def arg_extreme(target: Target, op: str, dtype: DType, shape: Dims, axis: int, output: DType) -> Plan:
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    if not outer * inner:
        return Plan()
    (compare, loser), c_type = BETTER[op], register_type(dtype)
    o, k, n, inner_length, best, v = map(Word, ("o", "k", "n", "inner", "best", "v"))
    lines: Body = [
        Define("size_t", {"o": work_item(0)}), exit_beyond("o", SIZE_T(Word("outputs"))),
        Define("size_t", {"first": o / inner_length * n * inner_length + o % inner_length}),
        Define("size_t", {"found": Number(0)}, constant=False),
        Define(c_type, {"best": number_tree(limits(dtype)[loser], dtype)}, constant=False),
        count_up("size_t", "k", SIZE_T(n), [
            Define(c_type, {"v": Load(dtype, "x0", Word("first") + k * inner_length)}),
            When(compare(v, best), [Assign(best, v), Assign(Word("found"), k)], "braces"),
        ], "indented"),
        Store(output, "y0", o, TypeName(register_type(output))(Word("found"))),
    ]
    sizes = {"outputs": outer * inner, "n": shape[axis], "inner": inner}
    return Plan((kernel(
        target, op, lines, [Pointer("x0", INPUT, 0, memory_type(dtype), prod(shape))],
        [Pointer("y0", OUTPUT, 0, memory_type(output), outer * inner)], sizes, (outer * inner,), LINE,
    ),))
