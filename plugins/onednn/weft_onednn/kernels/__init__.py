"""The kernels, a family a module. All are for float32."""

from weft.api import Kernels

from . import convolution, einsum, elementwise, fused, joining, layer_norm, matmul, normalization, pooling, softmax

FAMILIES = (convolution, einsum, elementwise, fused, joining, layer_norm, matmul, normalization, pooling, softmax)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        family.register(kernels)
