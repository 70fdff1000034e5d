"""Plans for nodes over images: convolutions, pooling, bias, batch normalisation. Convolutions and pools are NHWC."""

from __future__ import annotations

from heald.api import Attrs, Bind, DType, dtypes, errors

from .convolution import conv2d
from .copies import copy, fill
from .depthwise import depthwise_conv2d
from .dialect import Target
from .elementwise import elementwise
from .epilogue import Epilogue
from .expression import Literal, Step
from .plan import Plan
from .pool import pool
from .strided_view import dense_view
from .window import Window, sliding


def convolution(target: Target, b: Bind, epilogue: Epilogue | None = None) -> Plan:
    return conv2d(target, b.inputs[0].dtype, b.inputs[1].meta.dims, window_of(b), epilogue)


def window_of(b: Bind) -> Window:
    """The window of a Conv2D. Raises Unimplemented."""
    return sliding(b.attrs, b.inputs[0].meta.dims, b.inputs[1].meta.dims[:2])


def depthwise(target: Target, b: Bind, epilogue: Epilogue | None = None) -> Plan:
    x, kernel = b.inputs[0].meta.dims, b.inputs[1].meta.dims
    return depthwise_conv2d(target, b.inputs[0].dtype, kernel[3], sliding(b.attrs, x, kernel[:2]), epilogue)


def pooling(target: Target, b: Bind) -> Plan:
    sizes, strides = b.attrs["ksize"], b.attrs["strides"]
    if {sizes[0], sizes[3], strides[0], strides[3]} != {1}:
        raise errors.Unimplemented("no kernel text for pooling over the batch or the depth")
    window = sliding(b.attrs, b.inputs[0].meta.dims, sizes[1:3])
    return pool(target, b.op, b.inputs[0].dtype, window)


def channels(attrs: Attrs, count: int, rank: int) -> tuple[int, ...]:
    """The shape in which a vector of channels broadcasts against images of this rank."""
    return (count, *(1,) * (rank - 2)) if attrs["data_format"][1] == "C" else (count,)


def bias_add(target: Target, b: Bind) -> Plan:
    x, bias = b.inputs
    operands = [(x.dtype, x.meta.dims), (bias.dtype, channels(b.attrs, bias.size, len(x.meta.dims)))]
    return elementwise(target, (Step("AddV2", (0, 1)),), operands)


def normalisation(attrs: Attrs, dtype: DType) -> tuple[Step, ...]:
    """(x - mean) * (scale / sqrt(variance + epsilon)) + offset, in float32, over x, scale, offset, mean, variance."""
    if attrs["is_training"]:
        raise errors.Unimplemented("no kernel text for batch normalisation in training")
    return (
        Step("Cast", (0,), dtypes.float32), Step("AddV2", (4, Literal(attrs["epsilon"]))), Step("Rsqrt", (6,)),
        Step("Mul", (1, 7)), Step("Sub", (5, 3)), Step("Mul", (9, 8)), Step("AddV2", (10, 2)),
        Step("Cast", (11,), dtype),
    )


def batch_norm(target: Target, b: Bind) -> Plan:
    """The plan of FusedBatchNorm. The statistics are copied to the other outputs."""
    x, *parameters = b.inputs
    if not x.size:
        raise errors.Unimplemented("no kernel text for batch normalisation of nothing")
    vector = channels(b.attrs, parameters[0].size, len(x.meta.dims))
    steps = normalisation(b.attrs, x.dtype)
    operands = [(x.dtype, x.meta.dims), *((p.dtype, vector) for p in parameters)]
    launches = [*elementwise(target, steps, operands).launches]
    count = dense_view((parameters[0].size,))
    for output, source in zip(range(1, 5), (3, 4, 3, 4), strict=True):
        launches += copy(target, 4, count, count, input_=source, output=output)
    if len(b.outputs) > 5:
        launches += fill(target, dtypes.float32, 1, 0).over(outputs=(5,)).launches
    return Plan(tuple(launches))
