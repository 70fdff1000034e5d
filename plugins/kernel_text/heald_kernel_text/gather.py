"""GatherV2. An index out of range gives zeros, as TensorFlow does on GPUs: a kernel cannot raise."""

from __future__ import annotations

from heald.api import DType

from .copies import WORDS
from .dialect import Target
from .element_types import memory_type
from .kernel_parts import Pointer
from .plan import INPUT, OUTPUT, Plan, kernel, plane
from .statements import Body, Define, Exit, Store, When, work_item
from .tree import OFFSET, SIZE_T, Load, Word, both, choose, either


def gather(
    target: Target, itemsize: int, indices: DType, *, batch: int, outer: int, length: int, inner: int, picks: int
) -> Plan:
    """Inputs: (batch, outer, length, inner) and indices (batch, picks). Output: (batch, outer, picks, inner)."""
    rows = batch * outer * picks
    if not rows * inner:
        return Plan()
    c, row, pick, above, at, b = map(Word, ("c", "row", "pick", "above", "at", "b"))
    inner_length, count = Word("inner"), Word("picks")
    element = WORDS[itemsize]
    picked = Load(element, "x0", (above * Word("length") + at) * inner_length + c)
    lines: Body = [
        Define("size_t", {"c": work_item(0), "row": work_item(1)}),
        When(either(c >= SIZE_T(inner_length), row >= SIZE_T(Word("rows"))), [Exit()]),
        Define("size_t", {"pick": row % count, "above": row / count, "b": above / Word("outer")}),
        Define(OFFSET, {"at": OFFSET(Load(indices, "x1", b * count + pick))}),
        Store(element, "y0", row * inner_length + c, choose(both(at >= 0, at < Word("length")), picked, 0)),
    ]
    word = memory_type(element)
    reads = [Pointer("x0", INPUT, 0, word, batch * outer * length * inner),
             Pointer("x1", INPUT, 1, memory_type(indices), batch * picks)]
    sizes = {"rows": rows, "outer": outer, "length": length, "inner": inner, "picks": picks}
    return Plan((kernel(
        target, "GatherV2", lines, reads, [Pointer("y0", OUTPUT, 0, word, rows * inner)], sizes,
        (inner, rows), plane(inner, rows),
    ),))
