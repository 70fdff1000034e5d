"""Softmax along the last axis. The library's LogSoftmax is off by more than 1e-6, so NumPy's kernel serves that op."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from heald.api import Bind, Kernels

from ..attributes import attributes, number
from ..library import library
from ..memory import Array, dense
from ..primitives import INFERENCE, RESULT, SOURCE, KernelAroundPrimitive, NativeKernel, Primitive, describe_primitive
from .binding import check_elements, declining

ACCURATE = number("dnnl_softmax_accurate")


class Softmax(KernelAroundPrimitive):
    """The primitive, which leaves NaN out of a row's sum. This kernel then makes the whole row NaN."""

    def run(self, x: Array, out: Array) -> None:
        self._primitive.run(x, out)
        _spread_nan(out)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        call, (out,) = self._primitive.attach(inputs, outputs), outputs

        def run() -> None:
            call()
            _spread_nan(out)

        return run


def _spread_nan(out: Array) -> None:
    total = np.add.reduce(out, axis=None)
    if total != total:
        out[np.isnan(out).any(-1)] = np.nan


def softmax(b: Bind) -> NativeKernel:
    shape = b.inputs[0].meta.dims
    check_elements(shape)
    layout = dense((prod(shape[:-1]), shape[-1]))
    description = describe_primitive(library().c.dnnl_softmax_forward_primitive_desc_create, INFERENCE, ACCURATE,
                                     layout.descriptor, layout.descriptor, 1, attributes())
    return Softmax(Primitive(description, {SOURCE: (layout, 0), RESULT: (layout, 1)}))


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Softmax", dtypes={"T": "float32"}, inplace={0: 0})(declining(softmax))
