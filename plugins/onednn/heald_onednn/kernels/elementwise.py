"""Elementwise functions, one by one or several in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import prod

import numpy as np
from heald.api import Attrs, Bind, FusedOp, Kernels, ValueInfo, errors

from ..activations import ACTIVATION
from ..attributes import Eltwise, attributes, operands
from ..epilogue import CHAINED, SWISH, OperandLayouts, broadcast, steps_after, with_swish
from ..functions import BINARY, COMMUTING, PARTS, UNARY, swish
from ..library import library
from ..memory import Layout, Operand, dense, row_major
from ..primitives import RESULT, SECOND_SOURCE, SOURCE, NativeKernel, Primitive, describe_primitive, eltwise_description
from .binding import NO_GAIN, BindFunction, check_elements, declining, is_narrow, left_to_numpy, node_of

SMALLEST_ELEMENTS = 1 << 13  # elements from which NumPy's calls are not cheaper
FEW_CHANNELS = 16  # channels: with fewer, the library's vectors are partly empty
IN_PASSES = ("Elu", "LeakyRelu", "Sigmoid")  # ops for which NumPy's kernels take several passes
STEPS: Mapping[str, Callable[[Attrs], Eltwise]] = {
    **UNARY, SWISH: lambda attrs: swish(attrs["factor"]), ACTIVATION: lambda attrs: attrs["step"],
}
ARITHMETIC = ("AddV2", "Mul", "Sub")


def unary(b: Bind) -> NativeKernel:
    _check_size(b)
    return _of_one(b, node_of(b))


def binary(b: Bind) -> NativeKernel:
    """Bind an op of two operands if one broadcasts, for NumPy then goes through the other in short rows."""
    _check_size(b)
    is_long = b.inputs[0].meta.dims == b.inputs[1].meta.dims or 1 in (b.inputs[0].size, b.inputs[1].size)
    if is_long and not is_narrow(b):
        raise errors.Unimplemented(NO_GAIN)
    return _of_two(b, node_of(b), [])


def if_narrow(bind: BindFunction) -> BindFunction:
    """A bind function that calls `bind` for element types without fast functions in NumPy, and else declines."""
    return lambda b: bind(b) if is_narrow(b) else left_to_numpy(b)


def chain(b: Bind) -> NativeKernel:
    """Bind two nodes or more. The first has two operands, or all are one x * sigmoid(x) or one activation."""
    _check_size(b)
    first, *following_ops = with_swish(b, b.fused)
    if first.op in (SWISH, ACTIVATION) and not following_ops:
        return _of_one(b, first)
    if first.op not in BINARY:
        raise errors.Unimplemented("the library fuses nothing with a function of one operand")
    return _of_two(b, first, following_ops)


def _check_size(b: Bind) -> None:
    check_elements(b.outputs[0].dims)
    if b.outputs[0].size < SMALLEST_ELEMENTS:
        raise errors.Unimplemented("NumPy's calls are cheaper for so few elements")


def _of_one(b: Bind, node: FusedOp) -> Primitive:
    step = STEPS[node.op](node.attrs)
    size = (b.outputs[0].size,)
    source, result = dense(size, b.inputs[node.args[0]].meta.dtype), dense(size, b.outputs[0].dtype)
    return Primitive(eltwise_description(step, source, result),
                     {SOURCE: (source, node.args[0]), RESULT: (result, len(b.inputs))})


def _of_two(b: Bind, node: FusedOp, following_ops: list[FusedOp]) -> Primitive:
    shape = node.outputs[0].dims
    operand_layout = _in_rows(b, shape) if _is_of_few_channels(b, shape) else broadcast(b, len(shape), dense)
    steps = steps_after(b, node, following_ops, operand_layout)
    places = list(node.args)
    if b.inputs[places[0]].meta.dims != shape and node.op in COMMUTING:
        places.reverse()
    if b.inputs[places[0]].meta.dims != shape:
        raise errors.Unimplemented("the first operand broadcasts")
    (left, first), (right, second) = map(operand_layout, places)
    description = describe_primitive(library().c.dnnl_binary_primitive_desc_create, BINARY[node.op], left.descriptor,
                                     right.descriptor, left.descriptor, attributes(steps))
    return Primitive(description, {SOURCE: (left, first), SECOND_SOURCE: (right, second),
                                   RESULT: (left, len(b.inputs)), **operands(steps)})


def _is_of_few_channels(b: Bind, shape: tuple[int, ...]) -> bool:
    """True if the channels are too few for the library's vectors, and all operands fit a layout in rows.

    An operand fits with this shape, or if it is known before the run with one number per channel or one for all.
    """
    def fits(info: ValueInfo) -> bool:
        dims = info.meta.dims
        return dims == shape or (info.value is not None and (info.size == 1 or info.size == dims[-1] == shape[-1]))

    return len(shape) > 1 and shape[-1] < FEW_CHANNELS and all(map(fits, b.inputs))


def _in_rows(b: Bind, shape: tuple[int, ...]) -> OperandLayouts:
    """Lay the channels of a row of places out as one dimension. A known operand of one place is repeated."""
    *_, places, channels = shape
    rows = prod(shape[:-2])

    def operand_layout(input_index: int) -> tuple[Layout, Operand]:
        info = b.inputs[input_index]
        if info.meta.dims == shape:
            return row_major((rows, places * channels), info.dtype), input_index
        assert info.value is not None
        row = np.empty((places, channels), info.dtype.numpy)
        row[:] = info.value.reshape(-1)
        return row_major((1, places * channels), info.dtype), row

    return operand_layout


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    rivals = dict.fromkeys(IN_PASSES, declining(unary)) | dict.fromkeys(ARITHMETIC, declining(binary))
    narrow = dict.fromkeys(UNARY, if_narrow(declining(unary))) | dict.fromkeys(BINARY, if_narrow(declining(binary)))
    for op in CHAINED:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(rivals.get(op) or narrow.get(op, left_to_numpy))
    kernels.fusion("Chain", ops=(*UNARY, *BINARY, *PARTS))(declining(chain))
