"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    array,
    blocks,
    broadcasting,
    cast,
    conv,
    diagonal,
    elementwise,
    filling,
    fingerprint,
    indexed,
    joining,
    linear,
    nn,
    pool,
    quantize,
    reduction,
    reordering,
    slicing,
)


def register(kernels: Kernels) -> None:
    for family in (
        array,
        blocks,
        broadcasting,
        cast,
        conv,
        diagonal,
        elementwise,
        filling,
        fingerprint,
        indexed,
        joining,
        linear,
        nn,
        pool,
        quantize,
        reduction,
        reordering,
        slicing,
    ):
        family.register(kernels)
