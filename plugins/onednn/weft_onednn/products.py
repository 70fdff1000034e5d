"""Products: primitives of two operands, the second of which is mostly known, with an epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from weft.api import Bind, FusedOp

from .attributes import attributes, number, operands
from .epilogue import Epilogue
from .library import library
from .memory import ANY, Array, Layout, Operand, row_major
from .primitives import BIAS, RESULT, SOURCE, WEIGHTS, Primitive, described, packed, wanted


class Weights(NamedTuple):
    """How the second operand is to be read; the shape in which one number per channel broadcasts against the array, and
    the dimensions of such a vector as the library has them."""

    dims: Sequence[int]
    strides: Sequence[int]
    channels: Sequence[int]
    bias: Sequence[int]


Describe = Callable[[Any, Any, Any], Sequence[Any]]  # of the descriptors of weights and bias, and the attributes


def product(
    b: Bind, node: FusedOp, after: Epilogue, weights: Weights, source: Layout, result: Layout,
    create: Callable[..., int], arguments: Describe,
) -> Primitive:
    """The primitive of the node and of what comes after it. Weights that are known are laid as it wants them, once for
    all links that want it alike."""
    given, value = Layout.of(weights.dims, weights.strides), b.inputs[node.args[1]].value
    bias = None if after.bias is None else row_major(weights.bias)
    description = described(create, *arguments(
        given.descriptor if value is None else Layout.of(weights.dims, ANY).descriptor,
        library().ffi.NULL if bias is None else bias.descriptor, attributes(after.steps)))
    chosen = wanted(description, number("dnnl_query_weights_md"))

    def pack() -> Array:
        scaled = value if after.scale is None else value * after.scale.reshape(weights.channels)
        return packed(np.ascontiguousarray(scaled, np.float32), given, chosen)

    key = f"onednn {library().version}/{node.op}{'' if after.scale is None else ' scaled'}/{chosen.name}"
    all_operands: dict[int, tuple[Layout, Operand]] = {
        SOURCE: (source, node.args[0]), RESULT: (result, len(b.inputs)),
        WEIGHTS: (chosen, node.args[1] if value is None else b.prepared(key, pack)), **operands(after.steps),
    }
    if bias is not None and after.bias is not None:
        all_operands[BIAS] = bias, after.bias.astype(np.float32)
    return Primitive(description, all_operands)
