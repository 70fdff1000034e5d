"""Products: primitives with two operands and an epilogue. The second operand is mostly known before the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, FusedOp, ValueInfo

from .attributes import Binary, Eltwise, PostOp, Sum, attributes, number, operands
from .epilogue import Epilogue
from .functions import BINARY
from .library import library
from .memory import ANY, FLOAT, Array, Layout, Operand, dense, row_major
from .packing import pack_in_thread, packed_once
from .primitives import (
    BIAS,
    RESULT,
    SOURCE,
    WEIGHTS,
    Accumulating,
    NativeKernel,
    Primitive,
    PrimitiveThenPrimitive,
    chosen_layout,
    describe_primitive,
    eltwise_description,
    extents_of,
    pack_array,
)

LONG_FUNCTIONS = (number("dnnl_eltwise_logistic"), number("dnnl_eltwise_swish"), number("dnnl_eltwise_tanh"))
SMALLEST_APART_ELEMENTS = 1 << 14  # elements
BY_CHANNEL = ("DepthwiseConv2dNative",)  # products without sums over channels


class Weights(NamedTuple):
    """The second operand as the library reads it: its dimensions and strides.

    `channels`: the shape in which one number per channel broadcasts against the array; `bias`: the library's dimensions
    of such a vector; `mask`: a bit for each dimension of the operand that belongs to the channels.
    """

    dims: Sequence[int]
    strides: Sequence[int]
    channels: Sequence[int]
    bias: Sequence[int]
    mask: int


def without_leading_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without its leading ones."""
    return tuple(shape[next((i for i, length in enumerate(shape) if length > 1), len(shape)) :])


# of the descriptors of weights and bias, and the attributes
DescriptionArguments = Callable[[Any, Any, Any], Sequence[Any]]


def product(
    b: Bind, node: FusedOp, after: Epilogue, weights: Weights, source: Layout, result: Layout,
    create: Callable[..., int], arguments: DescriptionArguments,
) -> NativeKernel:
    """The primitive of the node and its epilogue. Known weights are packed in the primitive's layout, once for all
    links with the same layout."""
    after, last = _split_long_step(b, node, after)
    operand, is_known = b.inputs[node.args[1]], b.inputs[node.args[1]].is_known
    plain_layout = Layout.of(weights.dims, weights.strides, FLOAT if is_known else operand.dtype)
    bias = None if after.bias is None else row_major(weights.bias, b.outputs[0].dtype)  # the fastest layout

    def description(weights: Layout, steps: Sequence[PostOp]) -> Any:
        bias_descriptor = library().ffi.NULL if bias is None else bias.descriptor
        return describe_primitive(create, *arguments(weights.descriptor, bias_descriptor, attributes(steps)))

    apart = description(Layout.of(weights.dims, ANY, operand.dtype) if is_known else plain_layout, after.steps)
    packed_layout = chosen_layout(apart, number("dnnl_query_weights_md")) if is_known else plain_layout
    all_operands: dict[int, tuple[Layout, Operand]] = {
        SOURCE: (source, node.args[0]), RESULT: (result, len(b.inputs)),
        WEIGHTS: (packed_layout, _pack_weights(b, node, after.scale, weights, plain_layout, packed_layout)
                  if is_known else node.args[1]),
    }
    if bias is not None and after.bias is not None:
        all_operands[BIAS] = bias, after.bias.astype(b.outputs[0].dtype.numpy)

    def make_primitive(description: Any, steps: Sequence[PostOp]) -> Primitive:
        return Primitive(description, all_operands | operands(steps))

    added = _summand_step(b, node, after, result)
    if added is None:
        return _with_step_after(make_primitive(apart, after.steps), last, b)
    number_of_step, input_index = added
    steps = [*after.steps[:number_of_step], Sum(), *after.steps[number_of_step + 1 :]]
    over = description(packed_layout, steps)
    extents = extents_of(all_operands | operands(after.steps))
    accumulating = Accumulating(lambda: make_primitive(apart, after.steps), lambda: make_primitive(over, steps),
                                input_index, extents, over)
    return _with_step_after(accumulating, last, b)


def _pack_weights(b: Bind, node: FusedOp, scale: Array | None, weights: Weights, plain_layout: Layout,
                  packed_layout: Layout) -> Operand:
    """Known weights times `scale`, one number per channel, in the layout `packed_layout`."""

    def pack() -> Array:
        array, factors = with_factors(b.inputs[node.args[1]], scale, weights.channels)
        return pack_array(array, plain_layout, packed_layout, weights.mask, factors)

    return packed_once(b, name_of_weights(node, scale, packed_layout), packed_layout,
                       lambda: pack_in_thread(packed_layout.nbytes, pack))


def with_factors(operand: ValueInfo, scale: Array | None, channels: Sequence[int]) -> tuple[Array, Array | None]:
    """Known weights, and the factors that are not yet multiplied into them, in the shape `channels`.

    The factors are the graph's own times `scale`; None without either.
    """
    array, factors = operand.parts()
    if factors is not None and without_leading_ones(factors.shape) != without_leading_ones(channels):
        array, factors = operand.value, None
    if scale is not None:
        by_channel = scale.reshape(channels)
        factors = by_channel if factors is None else factors.reshape(channels) * by_channel
    return np.ascontiguousarray(array, np.float32), factors


def name_of_weights(node: FusedOp, scale: Array | None, packed_layout: Layout, form: str = "") -> str:
    """The key under which the packed weights are kept."""
    return f"onednn {library().version}/{node.op}{'' if scale is None else ' scaled'}{form}/{packed_layout.name}"


def _split_long_step(b: Bind, node: FusedOp, after: Epilogue) -> tuple[Epilogue, Eltwise | None]:
    """The epilogue without its last step, and that step if it is better computed after the product.

    Products of bfloat16 are summed by tiles, which makes long functions in the epilogue slow.
    """
    last = after.steps[-1] if after.steps else None
    is_narrow = node.op not in BY_CHANNEL and b.inputs[node.args[0]].dtype is not FLOAT
    pays = is_narrow and b.outputs[0].size >= SMALLEST_APART_ELEMENTS
    if pays and isinstance(last, Eltwise) and last.algorithm in LONG_FUNCTIONS:
        return replace(after, steps=after.steps[:-1]), last
    return after, None


def _with_step_after(product: Primitive | Accumulating, step: Eltwise | None, b: Bind) -> NativeKernel:
    if step is None:
        return product
    layout = dense((b.outputs[0].size,), b.outputs[0].dtype)
    after = Primitive(eltwise_description(step, layout, layout), {SOURCE: (layout, 0), RESULT: (layout, 0)})
    return PrimitiveThenPrimitive(product, after, len(b.inputs))


def _summand_step(b: Bind, node: FusedOp, after: Epilogue, result: Layout) -> tuple[int, int] | None:
    """The index of a step that adds an input of the result's shape, and the input's index; else None. The input has no
    other use in the group."""
    uses = [*node.args, *(step.operand for step in after.steps if isinstance(step, Binary))]
    for i, step in enumerate(after.steps):
        if isinstance(step, Binary) and step.algorithm == BINARY["AddV2"] and isinstance(step.operand, int):
            meta = b.inputs[step.operand].meta
            if step.layout.name == result.name and meta == b.outputs[0] and uses.count(step.operand) == 1:
                return i, step.operand
    return None
