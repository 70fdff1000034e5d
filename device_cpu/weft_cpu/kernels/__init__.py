"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from weft.api import Kernels

from . import (
    array,
    cast,
    conv,
    conv_grad,
    ctc_decoder,
    ctc_loss,
    dilation,
    edit_distance,
    elementwise,
    fused_conv,
    joining,
    linear,
    loss,
    lrn,
    nn,
    pool,
    pool_grad,
    recurrent,
    reduction,
    slicing,
)


def register(kernels: Kernels) -> None:
    for family in (
        array, cast, conv, conv_grad, ctc_decoder, ctc_loss, dilation, edit_distance, elementwise, fused_conv, joining,
        linear, loss, lrn, nn, pool, pool_grad, recurrent, reduction, slicing,
    ):
        family.register(kernels)
