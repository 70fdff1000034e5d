"""Activation functions of more than one step, and the activations that end fused ops. gradients.py has their
gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Attrs, Bind, Kernels

from ..element_types import FLOATS, Array, attribute, stepwise
from .elementwise import sigmoid

# Klambauer et al., Self-Normalizing Neural Networks, 2017
SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123

Function = Callable[..., object]  # of x and out, which may be x


def elu(x: Array, out: Array) -> None:
    negative = np.expm1(np.minimum(x, 0))  # not in place: for 0-d arrays NumPy returns scalars
    np.maximum(x, 0, out=out)
    np.add(out, negative, out)


def selu(x: Array, out: Array) -> None:
    negative = np.expm1(np.minimum(x, 0)) * SELU_SCALE_ALPHA
    np.add(np.maximum(x, 0) * SELU_SCALE, negative, out)


def softplus(x: Array, out: Array) -> None:
    """As np.logaddexp(x, 0), which takes ten times as long."""
    beyond = np.log1p(np.exp(-np.absolute(x)))
    np.add(np.maximum(x, 0), beyond, out)


def softsign(x: Array, out: Array) -> None:
    np.divide(x, np.absolute(x) + 1, out)


def gelu(x: Array, out: Array) -> None:
    """Hendrycks and Gimpel, Gaussian Error Linear Units, 2016: the approximation by tanh."""
    waves = np.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x))
    np.multiply(x * np.float32(0.5), 1 + waves, out)


def hard_swish(x: Array, out: Array) -> None:
    """Howard et al., Searching for MobileNetV3, 2019."""
    np.multiply(x, (x + 3).clip(0, 6) / 6, out)


IN_STEPS: dict[str, Function] = {"Elu": elu, "Selu": selu, "Softplus": softplus, "Softsign": softsign}


def leaky_relu(b: Bind) -> Function:
    return leaky(attribute(b, "alpha", b.outputs[0].dtype))


def leaky(slope: Array | float) -> Function:
    if 0 < slope <= 1:
        return lambda x, out: np.maximum(x, x * slope, out=out)
    return lambda x, out: np.copyto(out, np.where(x > 0, x, x * slope))


FUSED: dict[str, Callable[[Attrs], Function]] = {  # from a node's attributes; for elements of four or eight bytes
    "Elu": lambda _: elu,
    "GeluApproximate": lambda _: gelu,
    "LeakyRelu": lambda attrs: leaky(attrs["leakyrelu_alpha"]),
    "Relu": lambda _: lambda x, out: np.maximum(x, 0, out=out),
    "Relu6": lambda _: lambda x, out: x.clip(0, 6, out),
    "Sigmoid": lambda _: sigmoid(1),
    "Tanh": lambda _: np.tanh,
    "_FusedHardSwish": lambda _: hard_swish,
}


def register_kernels(kernels: Kernels) -> None:
    for op, function in IN_STEPS.items():
        kernels.kernel(op, dtypes={"T": FLOATS}, inplace={0: 0})(stepwise(function))
    kernels.kernel("LeakyRelu", dtypes={"T": FLOATS}, inplace={0: 0})(leaky_relu)
