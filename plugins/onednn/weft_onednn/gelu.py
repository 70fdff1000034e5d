"""Gelu: x * P(X <= x) for a normal X, by erf or erfc, or nearly that by tanh (Hendrycks and Gimpel, 2016).

Of infinity the library's makes NaN by erf, and infinity of more than 1.7e38, as where TensorFlow has a product do it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from weft.api import Bind, FusedOp

from .attributes import Eltwise, number
from .memory import Array
from .recognition import Part, computed, is_close, is_closed, parts

GELU = "Gelu"  # of the nodes that are one
CURVES = ("Erf", "Erfc", "Tanh")
FEWEST = 4  # nodes
NUMBERS: Array = np.concatenate([np.linspace(-8, 8, 129), np.logspace(1, 4, 16), -np.logspace(1, 4, 16)])


def by_tanh(x: Array) -> Array:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)))


def by_erf(x: Array) -> Array:
    return np.asarray(x * np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in x]))


FORMS = {"dnnl_eltwise_gelu_erf": by_erf(NUMBERS), "dnnl_eltwise_gelu_tanh": by_tanh(NUMBERS)}


def with_gelu(b: Bind, ops: Sequence[FusedOp]) -> list[FusedOp]:
    """The ops, with one, whose attribute `step` is the library's function, in place of those that are Gelu together."""
    kept = list(ops)
    if not any(op.op in CURVES for op in ops):
        return kept
    made = {op.results[0]: op for op in ops}
    for op in reversed(ops):
        found = _found(b, op, made, kept) if op.op == "Mul" and op in kept else None
        if found is not None:
            part, form = found
            whole = FusedOp(GELU, {"step": Eltwise(number(form))}, (part.source,), op.results, op.outputs)
            kept = [whole if each is op else each for each in kept if each is op or each not in part.ops]
    return kept


def _found(
    b: Bind, last: FusedOp, made: Mapping[int, FusedOp], kept: Sequence[FusedOp]
) -> tuple[Part, str] | None:
    """The part that ends with this op and is Gelu, and which; what nobody else needs, of the shape that it takes."""
    def known(place: int) -> Array | None:
        info = b.inputs[place] if place < len(b.inputs) else None
        return info.value if info is not None and info.size == 1 else None

    for part in parts(last, made, known):
        shape = b.inputs[part.source].meta.dims if part.source < len(b.inputs) else last.outputs[0].dims
        if len(part.ops) < FEWEST or shape != last.outputs[0].dims or not is_closed(part, kept):
            continue
        given = computed(part, NUMBERS, known)
        form = next((name for name, numbers in FORMS.items() if is_close(given, numbers)), None)
        if form is not None:
            return part, form
    return None
