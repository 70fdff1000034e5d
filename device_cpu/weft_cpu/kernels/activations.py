"""Activation functions of more than one step. Their gradients are in gradients.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from weft.api import Bind, Kernels

from .element_types import FLOATS, Array, attribute, stepwise

# Klambauer et al., Self-Normalizing Neural Networks, 2017
SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123

Function = Callable[..., object]  # of x and out, which may be x


def elu(x: Array, out: Array) -> None:
    negative = np.expm1(np.minimum(x, 0))
    np.add(np.maximum(x, 0), negative, out)


def selu(x: Array, out: Array) -> None:
    negative = np.expm1(np.minimum(x, 0)) * SELU_SCALE_ALPHA
    np.add(np.maximum(x, 0) * SELU_SCALE, negative, out)


def softplus(x: Array, out: Array) -> None:
    """As np.logaddexp(x, 0), which takes ten times as long."""
    beyond = np.log1p(np.exp(-np.absolute(x)))
    np.add(np.maximum(x, 0), beyond, out)


def softsign(x: Array, out: Array) -> None:
    np.divide(x, np.absolute(x) + 1, out)


IN_STEPS: dict[str, Function] = {"Elu": elu, "Selu": selu, "Softplus": softplus, "Softsign": softsign}


def leaky_relu(b: Bind) -> Function:
    slope = attribute(b, "alpha", b.outputs[0].dtype)
    if 0 < slope <= 1:
        return lambda x, out: np.maximum(x, x * slope, out=out)
    return lambda x, out: np.copyto(out, np.where(x > 0, x, x * slope))


def register(kernels: Kernels) -> None:
    for op, function in IN_STEPS.items():
        kernels.kernel(op, dtypes={"T": FLOATS}, inplace={0: 0})(stepwise(function))
    kernels.kernel("LeakyRelu", dtypes={"T": FLOATS}, inplace={0: 0})(leaky_relu)
