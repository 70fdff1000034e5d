"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    array,
    cast,
    codec,
    color,
    conv,
    detection,
    elementwise,
    joining,
    linear,
    nn,
    pool,
    reduction,
    resize,
    sampling,
    slicing,
)

FAMILIES = (
    array, cast, codec, color, conv, detection, elementwise, joining, linear, nn, pool, reduction, resize, sampling,
    slicing,
)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        family.register(kernels)
