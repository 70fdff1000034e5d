"""Products and what follows them, one primitive for all."""

from __future__ import annotations

from collections.abc import Mapping

from weft.api import Attachable, Bind, Kernels, errors

from ..epilogue import OPS, epilogue
from .binding import Head, declining
from .convolution import conv2d, depthwise_conv2d
from .matmul import batch_matmul, matmul

HEADS: Mapping[str, Head] = {
    "BatchMatMulV2": batch_matmul,
    "Conv2D": conv2d,
    "DepthwiseConv2dNative": depthwise_conv2d,
    "MatMul": matmul,
}


def product(b: Bind) -> Attachable:
    head = next((each for each in b.fused if each.op in HEADS), None)
    if head is None:
        raise errors.Unimplemented("there is no product among these nodes")
    return HEADS[head.op](b, head, epilogue(b, head))


def register(kernels: Kernels) -> None:
    kernels.fusion("Product", heads=HEADS, ops=OPS, priority=1)(declining(product))
