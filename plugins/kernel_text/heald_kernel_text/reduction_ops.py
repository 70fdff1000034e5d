"""The table of reductions: initial value, combining expression, final value; and a tree reduction in local memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from heald.api import DType, dtypes, errors

from .c_text import expression, literal
from .dialect import Target
from .element_types import ELEMENTS, limits, load, register_type, store
from .tree import T, Tree, U, Word, both, choose, either


class Reduction(NamedTuple):
    """`trees`: accumulator a and value v combined, by class of type (see elementwise_ops); `start`: the initial
    accumulator."""

    trees: dict[str, Tree]
    start: Callable[[DType], float]


a, v = Word("a"), Word("v")
_SUM = Reduction({"f": a + v, "iu": T(U(a) + U(v))}, lambda _: 0)
REDUCTIONS = {
    "All": Reduction({"b": both(a, v)}, lambda _: 1),
    "Any": Reduction({"b": either(a, v)}, lambda _: 0),
    "Max": Reduction({"f": choose(either(a > v, a != a), a, v), "iu": choose(a > v, a, v)},
                     lambda dtype: limits(dtype)[0]),
    "Mean": _SUM,
    "Min": Reduction({"f": choose(either(a < v, a != a), a, v), "iu": choose(a < v, a, v)},
                     lambda dtype: limits(dtype)[1]),
    "Prod": Reduction({"f": a * v, "iu": T(U(a) * U(v))}, lambda _: 1),
    "Sum": _SUM,
}
WIDE = {"i": dtypes.int64, "u": dtypes.uint64}  # accumulator types of the mean of integers
GROUP = 256  # work-items of a tree
WARP = 32  # threads of CUDA that exchange values without local memory


def combiner(op: str, dtype: DType) -> Callable[[str, str], str]:
    """A function that returns the expression combining two values. Raises Unimplemented."""
    tree = next((tree for classes, tree in REDUCTIONS[op].trees.items() if dtype.kind in classes), None)
    if tree is None or dtype not in ELEMENTS:
        raise errors.Unimplemented(f"no kernel text for {op} of {dtype.name}")
    types = {"T": register_type(dtype), "U": ELEMENTS[dtype].unsigned}
    return lambda total, value: expression(tree, types | {"a": total, "v": value})


@dataclass(frozen=True)
class ReductionProblem:
    """A reduction: the op, the element type, the accumulator type, and the number of elements for each output."""

    op: str
    dtype: DType
    sums: DType
    count: int

    @property
    def start(self) -> str:
        return literal(REDUCTIONS[self.op].start(self.sums), self.sums)

    def combine(self, a: str, v: str) -> str:
        return f"{a} = {combiner(self.op, self.sums)(a, v)};"

    def element(self, index: str) -> str:
        """The definition of v, an element of the input."""
        return f"const {register_type(self.sums)} v = ({register_type(self.sums)}){load(self.dtype, 'x0', index)};"

    def write(self, index: str, total: str) -> str:
        if self.op == "Mean" and self.sums.kind == "f":
            total = f"{total} / ({register_type(self.sums)})count"
        elif self.op == "Mean":
            total = f"count == 0 ? 0 : {total} / ({register_type(self.sums)})count"
        return store(self.dtype, "y0", index, f"({register_type(self.dtype)})({total})")


def tree(target: Target, combine: Callable[[str, str], str], c_type: str, value: str) -> list[str]:
    """Statements that combine the values of all work-items into part[0]. They may change `value`."""
    if "heald_shfl_down" not in target.dialect.functions:
        return [f"part[t] = {value};", "BARRIER;", f"for (u32 half_way = {GROUP // 2}; half_way > 0; half_way /= 2) {{",
                f"if (t < half_way) {{ {combine('part[t]', 'part[t + half_way]')} }}", "BARRIER;", "}"]

    def shuffle_sums(first: int) -> list[str]:
        return ["UNROLL", f"for (u32 by = {first}; by > 0; by /= 2) {{",
                f"const {c_type} other = heald_shfl_down({value}, by); {combine(value, 'other')}", "}"]

    warps = GROUP // WARP
    return [
        *shuffle_sums(WARP // 2), f"if (t % {WARP} == 0) part[t / {WARP}] = {value};", "BARRIER;",
        f"if (t < {WARP}) {{",
        f"{value} = part[t % {warps}];", *shuffle_sums(warps // 2), f"if (t == 0) part[0] = {value};", "}", "BARRIER;",
    ]
