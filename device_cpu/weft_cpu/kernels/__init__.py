"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    array,
    cast,
    conv,
    einsum,
    elementwise,
    fft,
    joining,
    linalg,
    linear,
    nn,
    pool,
    random,
    reduction,
    slicing,
)

FAMILIES = (
    array, cast, conv, einsum, elementwise, fft, joining, linalg, linear, nn, pool, random, reduction, slicing,
)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        family.register(kernels)
