"""The kernels, a family a module. All are for float32; those in TYPED and OF_CONVOLUTIONS for other types too, where
these are wanted."""

from collections.abc import Collection

from weft.api import Kernels

from . import (
    casting,
    convolution,
    einsum,
    elementwise,
    fused,
    joining,
    layer_norm,
    matmul,
    normalization,
    pooling,
    recurrent,
    resize,
    softmax,
)

FAMILIES = (einsum, layer_norm, normalization, recurrent, softmax)
TYPED = (casting, elementwise, joining, matmul, pooling, resize)
OF_CONVOLUTIONS = (convolution, fused)


def register(kernels: Kernels, types: Collection[str], winograd: bool) -> None:
    for family in FAMILIES:
        family.register(kernels)
    for typed in TYPED:
        typed.register(kernels, types)
    for each in OF_CONVOLUTIONS:
        each.register(kernels, types, winograd)
