"""The kernels, a family a module. All are for float32."""

from weft.api import Kernels

from . import convolution, elementwise, fused, matmul

FAMILIES = (convolution, elementwise, fused, matmul)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        family.register(kernels)
