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
    examples,
    gradients,
    hashing,
    joining,
    linear,
    nn,
    parsing,
    pool,
    reduction,
    regex,
    slicing,
    special,
    string_formatting,
    string_joining,
    string_splitting,
    strings,
    unicode,
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
    examples,
    gradients,
    hashing,
    joining,
    linear,
    nn,
    parsing,
    pool,
    reduction,
    regex,
    slicing,
    special,
    string_formatting,
    string_joining,
    string_splitting,
    strings,
    unicode,
)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        family.register(kernels)
