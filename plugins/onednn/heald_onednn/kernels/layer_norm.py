"""Layer normalisation (Ba et al., 2016), from the ops of Keras and other frameworks in any written form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, FusedOp, Kernels, ValueInfo, errors

from ..attributes import attributes, number
from ..function_matching import KnownElements, Part, has_near_producer, is_close, part_result, parts
from ..library import library
from ..memory import Array, Operand, row_major
from ..primitives import INFERENCE, RESULT, SCALE, SHIFT, SOURCE, Primitive, describe_primitive
from .binding import declining, left_to_numpy

FLAGS = number("dnnl_use_scale") | number("dnnl_use_shift")
ENDS = ("Add", "AddV2", "Mul", "RealDiv", "Sub")
ROOTS = ("Rsqrt", "Sqrt")
GROUP_ONLY_OPS = (*ROOTS, "Add", "SquaredDifference")  # ops that this pack serves in groups only
SAMPLE_ROWS = 2  # of the sample inputs, along each axis
SMALLEST_DIVISOR = 1e-3  # magnitude of a divisor


class Norm(NamedTuple):
    """(x - mean) / sqrt(variance + epsilon) * scale + shift, over the last axis: float64 vectors."""

    epsilon: float
    scale: Array
    shift: Array

    def of(self, x: Array) -> Array:
        return _normal(x, self.epsilon) * self.scale + self.shift


def _normal(x: Array, epsilon: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    with np.errstate(all="ignore"):
        return np.asarray(centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon))


def match_layer_norm(part: Part, dims: Sequence[int], elements_of: KnownElements) -> Norm | None:
    """The normalisation that the ops compute for an array of these dimensions, or None."""
    epsilon = _epsilon(part, elements_of)
    if epsilon is None:
        return None
    shape = (*(min(length, SAMPLE_ROWS) for length in dims[:-1]), dims[-1])  # tells means over other axes apart
    rng = np.random.default_rng(0)
    numbers = rng.uniform(1, 2, shape) * np.where(np.arange(dims[-1]) % 2, 1, -1)
    normal = _normal(numbers, epsilon)
    shift, scaled = (part_result(part, x, elements_of) for x in (np.zeros(shape), numbers))
    if shift is None or scaled is None or np.abs(normal).min() < SMALLEST_DIVISOR:
        return None
    with np.errstate(all="ignore"):
        norm = Norm(epsilon, ((scaled - shift) / normal).reshape(-1, dims[-1])[0], shift.reshape(-1, dims[-1])[0])
        sizes = (1e-3, 1.0, 1e3, np.sqrt(epsilon))
        others = [size * rng.standard_normal(shape) + 3 * size for size in sizes]
        return norm if all(is_close(part_result(part, x, elements_of), norm.of(x)) for x in others) else None


def _epsilon(part: Part, elements_of: KnownElements) -> float | None:
    """The single number that is added to the radicand, or None."""
    producers = {op.results[0]: op for op in part.ops}
    for root in part.ops:
        inner = producers.get(root.args[0]) if root.op in ROOTS else None
        numbers = [] if inner is None else [value for a in inner.args if (value := elements_of(a)) is not None]
        if len(numbers) == 1 and numbers[0].size == 1:
            return float(numbers[0].reshape(-1)[0])
    return None


def find_layer_norm(last: FusedOp, producers: Mapping[int, FusedOp], infos: Sequence[ValueInfo]) -> Collection[FusedOp]:
    def elements_of(input_index: int) -> Array | None:
        return infos[input_index].value

    dims = last.outputs[0].dims
    if len(dims) < 2 or 0 in dims or not has_near_producer(last, producers, "Mean"):
        return ()
    for part in parts(last, producers, elements_of):
        ops = {op.op for op in part.ops}
        may_match = "Mean" in ops and not ops.isdisjoint(ROOTS) and infos[part.source].meta.dims == dims
        if may_match and match_layer_norm(part, dims, elements_of) is not None:
            return part.ops
    return ()


def layer_norm(b: Bind) -> Primitive:
    def elements_of(input_index: int) -> Array | None:
        return b.inputs[input_index].value if input_index < len(b.inputs) else None

    shape = b.outputs[0].dims
    (source,) = (i for i, info in enumerate(b.inputs) if info.value is None)
    norm = match_layer_norm(Part(source, list(b.fused)), shape, elements_of)
    if norm is None:
        raise errors.Unimplemented("these nodes are no layer normalisation")
    rows, vector = row_major((prod(shape[:-1]), shape[-1])), row_major(shape[-1:])
    statistics = row_major((prod(shape[:-1]),))
    description = describe_primitive(library().c.dnnl_layer_normalization_forward_primitive_desc_create, INFERENCE,
                            rows.descriptor, rows.descriptor, statistics.descriptor, norm.epsilon, FLAGS, attributes())
    operands: dict[int, tuple[Any, Operand]] = {
        SOURCE: (rows, source), RESULT: (rows, len(b.inputs)),
        SCALE: (vector, norm.scale.astype(np.float32)), SHIFT: (vector, norm.shift.astype(np.float32))}
    return Primitive(description, operands)


def register_kernels(kernels: Kernels) -> None:
    for op in GROUP_ONLY_OPS:
        kernels.kernel(op, dtypes={"T": "float32"})(left_to_numpy)
    kernels.pattern("LayerNorm", ends=ENDS, find=find_layer_norm)(declining(layer_norm))
