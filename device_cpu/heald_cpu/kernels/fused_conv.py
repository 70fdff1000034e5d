"""Fused convolutions: a convolution, bias or batch normalisation, then an activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Attachable, Bind, Kernels

from ..element_types import FLOATS
from .activations import FUSED
from .conv import Call, bind_convolution, bind_depthwise_convolution
from .staging import Scratched, compute_dtype, nothing, with_channels_last


def fused_convolution(convolution: Callable[[Bind], Attachable]) -> Callable[[Bind], Any]:
    """The bind function of fused ops that begin with `convolution`, which makes the convolution's kernel."""

    def bind(b: Bind) -> Any:
        return nothing if b.outputs[0].size == 0 else with_channels_last(b, _with_fused_functions(b, convolution(b)))

    return bind


def _with_fused_functions(b: Bind, convolution: Attachable) -> Attachable:
    dtype = compute_dtype(b)
    first, *activation_names = [op.decode() if isinstance(op, bytes) else op for op in b.attrs["fused_ops"]]
    activations = [FUSED[op](b.attrs) for op in activation_names]

    def attach(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Call:
        call, out = convolution.attach(inputs, outputs), outputs[0]

        def run() -> None:
            call()
            after(out, *(arg.astype(dtype, copy=False) for arg in inputs[2 : 2 + b.attrs["num_args"]]))
            for activation in activations:
                activation(out, out)

        return run

    def bias_add(out: Any, bias: Any) -> None:
        np.add(out, bias, out=out)

    def batch_norm(out: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> None:
        np.subtract(out, mean, out=out)
        np.multiply(out, scale / np.sqrt(variance + dtype.type(b.attrs["epsilon"])), out=out)
        np.add(out, offset, out=out)

    after: Callable[..., None] = bias_add if first == "BiasAdd" else batch_norm
    return Scratched(attach)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("_FusedConv2D", dtypes={"T": ("float16", "float32", "float64")})(fused_convolution(bind_convolution))
    kernels.kernel("_FusedDepthwiseConv2dNative", dtypes={"T": FLOATS})(fused_convolution(bind_depthwise_convolution))
