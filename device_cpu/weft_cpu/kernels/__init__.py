"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    activations,
    arithmetic,
    array,
    bitwise,
    cast,
    checks,
    complex_numbers,
    conv,
    elementwise,
    erf,
    gradients,
    joining,
    linear,
    nn,
    pool,
    reduction,
    slicing,
    special,
)

FAMILIES = (
    activations,
    arithmetic,
    array,
    bitwise,
    cast,
    checks,
    complex_numbers,
    conv,
    elementwise,
    erf,
    gradients,
    joining,
    linear,
    nn,
    pool,
    reduction,
    slicing,
    special,
)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        family.register(kernels)
