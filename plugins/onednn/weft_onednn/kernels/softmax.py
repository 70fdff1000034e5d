"""Softmax and its logarithm, along the last axis."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from weft.api import Attachable, Bind, Kernels

from ..attributes import attributes, number
from ..library import library
from ..memory import Array, dense
from ..primitives import RESULT, SOURCE, Primitive, described
from .binding import declining, has_elements

INFERENCE = number("dnnl_forward_inference")
KINDS = {"Softmax": number("dnnl_softmax_accurate"), "LogSoftmax": number("dnnl_softmax_log")}


class Softmax:
    """The primitive, which leaves out of a row's sum what is NaN: here the whole row is NaN then."""

    def __init__(self, primitive: Primitive) -> None:
        self._primitive = primitive

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


def softmax(kind: int) -> Callable[[Bind], Attachable]:
    def bind(b: Bind) -> Attachable:
        shape = b.inputs[0].meta.dims
        has_elements(shape)
        layout = dense((prod(shape[:-1]), shape[-1]))
        description = described(library().c.dnnl_softmax_forward_primitive_desc_create, INFERENCE, kind,
                                layout.descriptor, layout.descriptor, 1, attributes())
        return Softmax(Primitive(description, {SOURCE: (layout, 0), RESULT: (layout, 1)}))

    return bind


def register(kernels: Kernels) -> None:
    for op, kind in KINDS.items():
        kernels.kernel(op, dtypes={"T": "float32"}, inplace={0: 0})(declining(softmax(kind)))
