"""What a reduction does with two values, where it begins and how it ends; also a tree of them in local memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from weft.api import DType, dtypes, errors

from .element import ELEMENTS, computed, limits, literal, load, store


class Reduction(NamedTuple):
    """How v joins the accumulator a, by class of type (as in the table of ops), and what a begins with."""

    c: dict[str, str]
    start: Callable[[DType], float]


_SUM = Reduction({"f": "a + v", "iu": "(T)((U)a + (U)v)"}, lambda _: 0)
REDUCTIONS = {
    "All": Reduction({"b": "a && v"}, lambda _: 1),
    "Any": Reduction({"b": "a || v"}, lambda _: 0),
    "Max": Reduction({"f": "a > v || a != a ? a : v", "iu": "a > v ? a : v"}, lambda dtype: limits(dtype)[0]),
    "Mean": _SUM,
    "Min": Reduction({"f": "a < v || a != a ? a : v", "iu": "a < v ? a : v"}, lambda dtype: limits(dtype)[1]),
    "Prod": Reduction({"f": "a * v", "iu": "(T)((U)a * (U)v)"}, lambda _: 1),
    "Sum": _SUM,
}
WIDE = {"i": dtypes.int64, "u": dtypes.uint64}  # what the mean of integers is summed in
GROUP = 256  # work-items of a tree


def joins(op: str, dtype: DType) -> Callable[[str, str], str]:
    """The expression that joins two values. Raises Unimplemented."""
    text = next((text for classes, text in REDUCTIONS[op].c.items() if dtype.kind in classes), None)
    if text is None or dtype not in ELEMENTS:
        raise errors.Unimplemented(f"no kernel text for {op} of {dtype.name}")

    def joined(a: str, v: str) -> str:
        words = {"T": computed(dtype), "U": ELEMENTS[dtype].unsigned, "a": a, "v": v}
        return re.sub(r"\b[TUav]\b", lambda word: words[word[0]], text)

    return joined


@dataclass(frozen=True)
class Whole:
    """What is reduced: the op, the type, that of the sums, and how many elements each output has."""

    op: str
    dtype: DType
    sums: DType
    count: int

    @property
    def start(self) -> str:
        return literal(REDUCTIONS[self.op].start(self.sums), self.sums)

    def join(self, a: str, v: str) -> str:
        return f"{a} = {joins(self.op, self.sums)(a, v)};"

    def element(self, index: str) -> str:
        """The definition of v, an element of the input."""
        return f"const {computed(self.sums)} v = ({computed(self.sums)}){load(self.dtype, 'x0', index)};"

    def write(self, place: str, total: str) -> str:
        if self.op == "Mean" and self.sums.kind == "f":
            total = f"{total} / ({computed(self.sums)})count"
        elif self.op == "Mean":
            total = f"count == 0 ? 0 : {total} / ({computed(self.sums)})count"
        return store(self.dtype, "y0", place, f"({computed(self.dtype)})({total})")


def tree(join: Callable[[str, str], str], value: str) -> list[str]:
    """part[0] becomes all work-items' values joined."""
    return [f"part[t] = {value};", "BARRIER;", f"for (u32 half_way = {GROUP // 2}; half_way > 0; half_way /= 2) {{",
            f"if (t < half_way) {{ {join('part[t]', 'part[t + half_way]')} }}", "BARRIER;", "}"]
