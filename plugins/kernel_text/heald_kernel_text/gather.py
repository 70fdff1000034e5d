"""GatherV2. An index out of range gives zeros, as TensorFlow does on GPUs: a kernel cannot raise."""

from __future__ import annotations

from heald.api import DType

from .copies import WORDS
from .dialect import Target
from .element_types import memory_type
from .kernel_parts import Pointer
from .plan import INPUT, OUTPUT, Plan, kernel, plane


def gather(
    target: Target, itemsize: int, indices: DType, *, batch: int, outer: int, length: int, inner: int, picks: int
) -> Plan:
    """Inputs: (batch, outer, length, inner) and indices (batch, picks). Output: (batch, outer, picks, inner)."""
    rows = batch * outer * picks
    if not rows * inner:
        return Plan()
    lines = [
        "const size_t c = GLOBAL_ID(0), row = GLOBAL_ID(1);", "if (c >= (size_t)inner || row >= (size_t)rows) return;",
        "const size_t pick = row % picks, above = row / picks, b = above / outer;",
        "const i64 at = (i64)x1[b * picks + pick];",
        "y0[row * inner + c] = at >= 0 && at < length ? x0[(above * length + at) * inner + c] : 0;",
    ]
    word = WORDS[itemsize]
    reads = [Pointer("x0", INPUT, 0, word, batch * outer * length * inner),
             Pointer("x1", INPUT, 1, memory_type(indices), batch * picks)]
    sizes = {"rows": rows, "outer": outer, "length": length, "inner": inner, "picks": picks}
    return Plan((kernel(
        target, "GatherV2", lines, reads, [Pointer("y0", OUTPUT, 0, word, rows * inner)], sizes,
        (inner, rows), plane(inner, rows),
    ),))
