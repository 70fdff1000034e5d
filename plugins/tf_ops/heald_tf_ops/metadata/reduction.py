"""Metadata of ops that reduce along axes, and of softmax, which normalises along the last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from heald.api import (
    Attrs,
    InvalidArgument,
    MetadataFunction,
    Shape,
    TensorMetadata,
    ValueInfo,
    geometry,
    info,
    shape_text,
)

from .rules import rule
from .values import fold

FOLDING = {"Prod": np.multiply, "Sum": np.add}


@rule("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", values=("reduction_indices",))
def reduce(attrs: Attrs, x: ValueInfo, axes: ValueInfo) -> ValueInfo:
    if axes.rank is not None and axes.rank > 1:
        raise InvalidArgument(f"reduction_indices is a scalar or vector, given {shape_text(axes.shape)}")
    return info(x.dtype, _reduced_shape(x.shape, _known_axes(axes), keep_dims=attrs["keep_dims"]))


def folding(ufunc: np.ufunc) -> MetadataFunction:
    """Return the metadata function of a reduction that occurs in shape computations."""

    def metadata(attrs: Attrs, x: ValueInfo, axes: ValueInfo) -> ValueInfo:
        output = reduce(attrs, x, axes)
        known_axes = _known_axes(axes)
        if x.rank is None or known_axes is None:
            return output
        along = {"axis": geometry.reduction_axes(x.rank, known_axes), "keepdims": attrs["keep_dims"]}
        known_total = partial(np.logical_and.reduce, **along)
        return fold(lambda v: ufunc.reduce(v, dtype=v.dtype, **along), known_total, output.meta, x)

    return metadata


for _op, _ufunc in FOLDING.items():
    rule(_op, values=("reduction_indices",))(folding(_ufunc))


def _known_axes(axes: ValueInfo) -> Sequence[int] | None:
    elements = axes.vector()
    return None if elements is None or None in elements else [axis for axis in elements if axis is not None]


def _reduced_shape(shape: Shape, axes: Sequence[int] | None, *, keep_dims: bool) -> Shape:
    if shape is None:
        return None
    if axes is None:
        return (None,) * len(shape) if keep_dims else None
    reduced_axes = geometry.reduction_axes(len(shape), axes)
    if keep_dims:
        return tuple(1 if i in reduced_axes else length for i, length in enumerate(shape))
    return tuple(length for i, length in enumerate(shape) if i not in reduced_axes)


@rule("ArgMax", "ArgMin", values=("dimension",))
def arg_reduce(attrs: Attrs, x: ValueInfo, dimension: ValueInfo) -> ValueInfo:
    if dimension.rank:
        raise InvalidArgument(f"dimension must be a scalar, given shape {shape_text(dimension.shape)}")
    return ValueInfo(TensorMetadata(attrs["output_type"], _without(x.shape, dimension)))


def _without(shape: Shape, dimension: ValueInfo) -> Shape:
    if shape is None:
        return None
    if dimension.value is None:
        return (None,) * (len(shape) - 1)
    rank, axis = len(shape), int(dimension.value)
    if not -rank <= axis < rank:
        raise InvalidArgument(f"Expected dimension in the range [{-rank}, {rank}), but got {axis}")
    remaining = shape[: axis % rank] + shape[axis % rank + 1 :]
    if shape[axis] == 0:
        raise InvalidArgument(f"Reduction axis {axis % rank} is empty in shape {shape_text(shape)}")
    return remaining


@rule("L2Loss")
def l2_loss(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(x.dtype, ())


@rule("LogSoftmax", "Softmax")
def softmax(_: Attrs, logits: ValueInfo) -> ValueInfo:
    if logits.rank == 0:
        raise InvalidArgument("logits must have >= 1 dimension, got []")
    return ValueInfo(logits.meta)
