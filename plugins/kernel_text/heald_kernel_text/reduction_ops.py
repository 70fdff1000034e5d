"""The table of reductions: initial value, combining expression, final value; and a tree reduction in local memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from heald.api import DType, dtypes, errors

from .dialect import Target
from .element_types import ELEMENTS, limits, number_tree, register_type
from .statements import Assign, Barrier, Body, Define, Loop, SameLine, Store, When
from .statements import Step as LoopStep
from .tree import Group, Load, Number, T, Tree, TypeName, U, Word, both, choose, either, function, instantiate


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


def combiner(op: str, dtype: DType) -> Callable[[Tree, Tree], Assign]:
    """A function that returns the statement combining a value into an accumulator. Raises Unimplemented."""
    tree = next((tree for classes, tree in REDUCTIONS[op].trees.items() if dtype.kind in classes), None)
    if tree is None or dtype not in ELEMENTS:
        raise errors.Unimplemented(f"no kernel text for {op} of {dtype.name}")
    types = {"T": register_type(dtype), "U": ELEMENTS[dtype].unsigned}
    return lambda total, value: Assign(total, instantiate(tree, {"a": total, "v": value}, types))


@dataclass(frozen=True)
class ReductionProblem:
    """A reduction: the op, the element type, the accumulator type, and the number of elements for each output."""

    op: str
    dtype: DType
    sums: DType
    count: int

    @property
    def start(self) -> Tree:
        return number_tree(REDUCTIONS[self.op].start(self.sums), self.sums)

    def combine(self, total: Tree, value: Tree) -> Assign:
        return combiner(self.op, self.sums)(total, value)

    def element(self, index: Tree) -> Define:
        """The definition of v, an element of the input."""
        name = TypeName(register_type(self.sums))
        return Define(name, {"v": name(Load(self.dtype, "x0", index))})

    def write(self, index: Tree, total: Tree) -> Store:
        count = Word("count")
        if self.op == "Mean":
            mean = total / TypeName(register_type(self.sums))(count)
            total = mean if self.sums.kind == "f" else choose(count == 0, 0, mean)
        return Store(self.dtype, "y0", index, TypeName(register_type(self.dtype))(Group(total)))


def group_position(name: str) -> Body:
    """The number of the group, which has one result, and that of the work-item in it."""
    return [Define("size_t", {name: function("GROUP_ID")(0)}), Define("u32", {"t": function("LOCAL_ID")(0)})]


def tree(target: Target, combine: Callable[[Tree, Tree], Assign], c_type: str, value: str) -> Body:
    """Statements that combine the values of all work-items into part[0]. They may change `value`."""
    total, part, t = Word(value), Word("part"), Word("t")
    if "heald_shfl_down" not in target.dialect.functions:
        half_way = Word("half_way")
        halves = LoopStep("half_way", Number(GROUP // 2), "/", Number(2))
        step = When(t < half_way, [combine(part[t], part[t + half_way])], "braces")
        return [Assign(part[t], total), Barrier(), Loop("u32", (halves,), half_way > 0, [step, Barrier()], "block")]

    def shuffle_sums(first: int) -> Loop:
        other = Define(c_type, {"other": function("heald_shfl_down")(total, Word("by"))})
        halves = LoopStep("by", Number(first), "/", Number(2))
        return Loop("u32", (halves,), Word("by") > 0, [SameLine([other, combine(total, Word("other"))])], "block", True)

    warps = GROUP // WARP
    return [
        shuffle_sums(WARP // 2), When(t % WARP == 0, [Assign(part[t / WARP], total)]), Barrier(),
        When(t < WARP, [Assign(total, part[t % warps]), shuffle_sums(warps // 2),
                        When(t == 0, [Assign(part[0], total)])], "block"), Barrier(),
    ]
