"""Gradients of functions that work element by element.

Gradients of activations get the gradient first, then the function's input or output. The others get the function's
output first, and need equal element counts only. Some take the conjugate of a complex output. For Sigmoid and Tanh the
graph has done so already.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import COMPLEX, FLOATS, REAL, Array, attribute, stepwise
from .activations import SELU_SCALE, SELU_SCALE_ALPHA

Function = Callable[..., object]  # of both inputs and out, which may be the first input


def relu_grad(dy: Array, x: Array, out: Array) -> None:
    """A product, as in TensorFlow: an infinite gradient becomes NaN where x was cut off."""
    np.multiply(dy, x > 0, out)


def relu6_grad(dy: Array, x: Array, out: Array) -> None:
    np.multiply(dy, (x > 0) & (x < 6), out)


def elu_grad(dy: Array, y: Array, out: Array) -> None:
    np.multiply(dy, np.where(y < 0, y + 1, 1), out)


def selu_grad(dy: Array, y: Array, out: Array) -> None:
    np.multiply(dy, np.where(y < 0, y + SELU_SCALE_ALPHA, SELU_SCALE), out)


def softplus_grad(dy: Array, x: Array, out: Array) -> None:
    np.divide(dy, np.exp(-x) + 1, out)


def softsign_grad(dy: Array, x: Array, out: Array) -> None:
    np.divide(dy, np.square(np.absolute(x) + 1), out)


def sigmoid_grad(y: Array, dy: Array, out: Array) -> None:
    np.multiply(dy * y, 1 - y, out)


def tanh_grad(y: Array, dy: Array, out: Array) -> None:
    np.multiply(dy, 1 - np.square(y), out)


def reciprocal_grad(y: Array, dy: Array, out: Array) -> None:
    np.copyto(out, np.where(dy == 0, dy, -y * dy * y))


def sqrt_grad(y: Array, dy: Array, out: Array) -> None:
    np.copyto(out, np.where(dy == 0, dy, dy * 0.5 / y))


def rsqrt_grad(y: Array, dy: Array, out: Array) -> None:
    np.copyto(out, np.where(dy == 0, dy, dy * -0.5 * (y * y * y)))


OF_INTEGERS_TOO: dict[str, Function] = {"ReluGrad": relu_grad, "Relu6Grad": relu6_grad}
OF_ACTIVATIONS: dict[str, Function] = {
    "EluGrad": elu_grad, "SeluGrad": selu_grad, "SoftplusGrad": softplus_grad, "SoftsignGrad": softsign_grad,
}
BY_OUTPUT: dict[str, Function] = {"SigmoidGrad": sigmoid_grad, "TanhGrad": tanh_grad}
BY_CONJUGATE: dict[str, Function] = {
    "InvGrad": reciprocal_grad, "ReciprocalGrad": reciprocal_grad, "RsqrtGrad": rsqrt_grad, "SqrtGrad": sqrt_grad,
}


def leaky_relu_grad(b: Bind) -> Function:
    slope = attribute(b, "alpha", b.outputs[0].dtype)
    return lambda dy, x, out: np.copyto(out, np.where(x > 0, dy, dy * slope))


def by_output(function: Function) -> Callable[[Bind], Function]:
    bind = stepwise(function)

    def reshaping(b: Bind) -> Function:
        run, shape = bind(b), b.outputs[0].dims
        return run if b.inputs[1].shape == shape else lambda y, dy, out: run(y, dy.reshape(shape), out)

    return reshaping


def with_conjugates(function: Function) -> Function:
    return lambda y, dy, out: function(np.conjugate(y), dy, out)


def register_kernels(kernels: Kernels) -> None:
    for op, function in OF_INTEGERS_TOO.items():
        kernels.kernel(op, dtypes={"T": REAL}, inplace={0: 0})(lambda _, function=function: function)
    for op, function in OF_ACTIVATIONS.items():
        kernels.kernel(op, dtypes={"T": FLOATS}, inplace={0: 0})(stepwise(function))
    for op, function in BY_OUTPUT.items():
        kernels.kernel(op, dtypes={"T": FLOATS + COMPLEX}, inplace={0: 0})(by_output(function))
    for op, function in BY_CONJUGATE.items():
        kernels.kernel(op, dtypes={"T": FLOATS}, inplace={0: 0})(by_output(function))
        kernels.kernel(op, dtypes={"T": COMPLEX}, inplace={0: 0})(by_output(with_conjugates(function)))
    kernels.kernel("LeakyReluGrad", dtypes={"T": FLOATS}, inplace={0: 0})(leaky_relu_grad)
