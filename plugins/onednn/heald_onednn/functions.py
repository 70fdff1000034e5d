"""Elementwise functions: the library's function for each op that has one.

Softplus is left out, for the library's is off by up to 8e-6, which is below 0 for some numbers. Maximum and Minimum are
left out, for the library's turn NaN into a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from heald.api import Attrs

from .attributes import Eltwise, number

UNARY: Mapping[str, Callable[[Attrs], Eltwise]] = {
    "Elu": lambda _: Eltwise(number("dnnl_eltwise_elu"), 1.0),
    "LeakyRelu": lambda attrs: Eltwise(number("dnnl_eltwise_relu"), float(attrs["alpha"])),
    "Neg": lambda _: linear(-1.0, 0.0),
    "Relu": lambda _: Eltwise(number("dnnl_eltwise_relu")),
    "Relu6": lambda _: Eltwise(number("dnnl_eltwise_clip"), 0.0, 6.0),
    "Sigmoid": lambda _: Eltwise(number("dnnl_eltwise_logistic")),
    "Square": lambda _: Eltwise(number("dnnl_eltwise_square")),
    "Tanh": lambda _: Eltwise(number("dnnl_eltwise_tanh")),
}
BINARY: Mapping[str, int] = {
    "AddV2": number("dnnl_binary_add"),
    "Mul": number("dnnl_binary_mul"),
    "RealDiv": number("dnnl_binary_div"),
    "Sub": number("dnnl_binary_sub"),
}
COMMUTING = ("AddV2", "Mul")
PARTS = ("Erf", "Erfc", "Pow")  # parts of functions of the library, which has none of these by itself


def swish(factor: float) -> Eltwise:
    """x * sigmoid(factor * x)."""
    return Eltwise(number("dnnl_eltwise_swish"), factor)


def linear(scale: float, shift: float) -> Eltwise:
    return Eltwise(number("dnnl_eltwise_linear"), scale, shift)


