"""Batch normalisation with given statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..attributes import attributes, number
from ..epilogue import NORMALISATIONS
from ..library import library
from ..memory import Array, Layout, Operand, dense
from ..primitives import (
    INFERENCE,
    MEAN,
    RESULT,
    SCALE,
    SHIFT,
    SOURCE,
    VARIANCE,
    KernelAroundPrimitive,
    NativeKernel,
    Primitive,
    describe_primitive,
)
from .binding import check_elements, declining

FLAGS = number("dnnl_use_global_stats") | number("dnnl_use_scale") | number("dnnl_use_shift")
STATISTICS = (3, 4)  # the inputs that the outputs beside the first repeat


class Normalization(KernelAroundPrimitive):
    """The primitive, and TensorFlow's further outputs: mean and variance, twice, and a zero."""

    def run(self, *arrays: Array) -> None:
        self._primitive.run(*arrays[:6])
        _repeat(arrays[:5], arrays[6:])

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        normalise = self._primitive.attach(inputs, outputs[:1])

        def call() -> None:
            normalise()
            _repeat(inputs, outputs[1:])

        return call


def _repeat(inputs: Sequence[Any], statistics: Sequence[Any]) -> None:
    mean, variance = (inputs[i] for i in STATISTICS)
    for target, source in zip(statistics, (mean, variance, mean, variance, 0), strict=False):
        np.copyto(target, source)


def batch_norm(b: Bind) -> NativeKernel:
    shape = b.inputs[0].meta.dims
    if b.attrs["is_training"] or b.attrs["data_format"] != "NHWC":
        raise errors.Unimplemented("statistics of the batch, or channels that are not last")
    check_elements(shape)
    layout, vector = dense(shape), dense(shape[-1:])
    description = describe_primitive(
        library().c.dnnl_batch_normalization_forward_primitive_desc_create, INFERENCE, layout.descriptor,
        layout.descriptor, b.attrs["epsilon"], FLAGS, attributes(),
    )
    operands: dict[int, tuple[Layout, Operand]] = {
        number: (vector, input_index) for input_index, number in enumerate((SCALE, SHIFT, MEAN, VARIANCE), 1)}
    return Normalization(Primitive(description, operands | {SOURCE: (layout, 0), RESULT: (layout, 5)}))


def register_kernels(kernels: Kernels) -> None:
    for op in NORMALISATIONS:
        types = {"T": "float32"} | ({"U": "float32"} if op != "FusedBatchNorm" else {})
        kernels.kernel(op, dtypes=types)(declining(batch_norm))
