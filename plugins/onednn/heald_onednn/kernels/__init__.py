"""oneDNN kernels, a family a module. All serve float32; the families in TYPED and OF_CONVOLUTIONS serve `types`."""

from collections.abc import Collection

from heald.api import Kernels

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
    sequences,
    softmax,
)

FAMILIES = (einsum, layer_norm, normalization, recurrent, sequences, softmax)
TYPED = (casting, elementwise, joining, matmul, pooling, resize)
OF_CONVOLUTIONS = (convolution, fused)


def register_kernels(kernels: Kernels, types: Collection[str], winograd: bool) -> None:
    for family in FAMILIES:
        family.register_kernels(kernels)
    for typed in TYPED:
        typed.register_kernels(kernels, types)
    for module in OF_CONVOLUTIONS:
        module.register_kernels(kernels, types, winograd)
