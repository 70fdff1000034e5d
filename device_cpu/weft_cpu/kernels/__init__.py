"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import array, cast, conv, elementwise, joining, linear, nn, pool, reduction, resize, slicing


def register(kernels: Kernels) -> None:
    for family in (array, cast, conv, elementwise, joining, linear, nn, pool, reduction, resize, slicing):
        family.register(kernels)
