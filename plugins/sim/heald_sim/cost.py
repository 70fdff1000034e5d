"""The cost of a kernel in floating-point operations, with a table of the ops that need more than one per element."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from heald.api import Bind


def flops(b: Bind) -> float:
    count = FLOPS_OF_OPS.get(b.op)
    if count is not None:
        return count(b)
    return max((meta.size for meta in (*(x.meta for x in b.inputs), *b.outputs)), default=0)


def _product(b: Bind) -> float:
    is_transposed = b.attrs["transpose_a"] if b.op == "MatMul" else b.attrs["adj_x"]
    return 2 * b.outputs[0].size * b.inputs[0].meta.dims[-2 if is_transposed else -1]


def _convolution(b: Bind) -> float:
    height, width, channels, _ = b.inputs[1].meta.dims
    return 2 * b.outputs[0].size * height * width * channels


def _depthwise(b: Bind) -> float:
    return 2 * b.outputs[0].size * prod(b.inputs[1].meta.dims[:2])


def _pool(b: Bind) -> float:
    return b.outputs[0].size * prod(b.attrs["ksize"])


FLOPS_OF_OPS: dict[str, Callable[[Bind], float]] = {
    "AvgPool": _pool, "BatchMatMulV2": _product, "Conv2D": _convolution, "DepthwiseConv2dNative": _depthwise,
    "MatMul": _product, "MaxPool": _pool,
}
