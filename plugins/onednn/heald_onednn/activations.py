"""Activations: several nodes of a graph become one function of the library, gelu or hard swish.

Gelu is x * P(X <= x) for a normal X, by erf or erfc, or its approximation by tanh (Hendrycks and Gimpel, 2016). Hard
swish is x * relu6(x + 3) / 6 (Howard et al., 2019).

The library's gelu by erf turns infinity into NaN, and numbers above 1.7e38 into infinity. TensorFlow does the same for
a gelu that is fused with a product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from heald.api import Bind, FusedOp

from .attributes import Eltwise, number
from .function_matching import Part, is_close, is_closed, part_result, parts
from .memory import Array

ACTIVATION = "Activation"  # the op of a FusedOp that replaces the nodes
CURVES = ("Erf", "Erfc", "Relu6", "Tanh")
LAST_OPS = ("Mul", "RealDiv")
SMALLEST_ACTIVATION_OPS = 4  # nodes of an activation
SAMPLE_INPUTS: Array = np.concatenate([np.linspace(-8, 8, 129), np.logspace(1, 4, 16), -np.logspace(1, 4, 16)])


def gelu_by_tanh(x: Array) -> Array:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)))


def gelu_by_erf(x: Array) -> Array:
    return np.asarray(x * np.array([0.5 * math.erfc(-element / math.sqrt(2)) for element in x]))


def hard_swish(x: Array) -> Array:
    return np.asarray(x * np.clip(x + 3, 0, 6) / 6)


LIBRARY_FUNCTIONS = {
    Eltwise(number("dnnl_eltwise_gelu_erf")): gelu_by_erf(SAMPLE_INPUTS),
    Eltwise(number("dnnl_eltwise_gelu_tanh")): gelu_by_tanh(SAMPLE_INPUTS),
    Eltwise(number("dnnl_eltwise_hardswish"), 1 / 6, 1 / 2): hard_swish(SAMPLE_INPUTS),
}


def with_activations(b: Bind, ops: Sequence[FusedOp]) -> list[FusedOp]:
    """The ops, where each activation is one op. The attribute `step` of that op is the library's function."""
    remaining = list(ops)
    if not any(op.op in CURVES for op in ops):
        return remaining
    producers = {op.results[0]: op for op in ops}
    for op in reversed(ops):
        match = _match_activation(b, op, producers, remaining) if op.op in LAST_OPS and op in remaining else None
        if match is not None:
            part, step = match
            activation = FusedOp(ACTIVATION, {"step": step}, (part.source,), op.results, op.outputs)
            remaining = [activation if old is op else old for old in remaining if old is op or old not in part.ops]
    return remaining


def _match_activation(
    b: Bind, last: FusedOp, producers: Mapping[int, FusedOp], remaining: Sequence[FusedOp]
) -> tuple[Part, Eltwise] | None:
    """The part that ends with this op and is an activation, and the library's function; else None.

    No op outside the part needs its values, and the part keeps the shape of its source.
    """
    def elements_of(input_index: int) -> Array | None:
        info = b.inputs[input_index] if input_index < len(b.inputs) else None
        return info.value if info is not None and info.size == 1 else None

    for part in parts(last, producers, elements_of):
        shape = b.inputs[part.source].meta.dims if part.source < len(b.inputs) else last.outputs[0].dims
        if len(part.ops) < SMALLEST_ACTIVATION_OPS or shape != last.outputs[0].dims or not is_closed(part, remaining):
            continue
        function_values = part_result(part, SAMPLE_INPUTS, elements_of)
        step = next((step for step, numbers in LIBRARY_FUNCTIONS.items() if is_close(function_values, numbers)), None)
        if step is not None:
            return part, step
    return None
