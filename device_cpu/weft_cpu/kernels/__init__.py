"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    array,
    cast,
    conv,
    elementwise,
    examples,
    hashing,
    joining,
    linear,
    nn,
    parsing,
    pool,
    reduction,
    regex,
    slicing,
    string_formatting,
    string_joining,
    string_splitting,
    strings,
    unicode,
)


def register(kernels: Kernels) -> None:
    for family in (
        array, cast, conv, elementwise, examples, hashing, joining, linear, nn, parsing, pool, reduction, regex,
        slicing, string_formatting, string_joining, string_splitting, strings, unicode,
    ):
        family.register(kernels)
