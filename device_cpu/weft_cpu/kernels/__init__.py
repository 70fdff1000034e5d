"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    array,
    cast,
    conv,
    counting,
    elementwise,
    joining,
    linear,
    nn,
    order,
    pool,
    ragged,
    reduction,
    scan,
    search,
    segment,
    sets,
    slicing,
    sparse,
)


def register(kernels: Kernels) -> None:
    for family in (
        array, cast, conv, counting, elementwise, joining, linear, nn, order, pool, ragged, reduction, scan,
        search, segment, sets, slicing, sparse,
    ):
        family.register(kernels)
