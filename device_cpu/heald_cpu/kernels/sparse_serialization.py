"""Kernels that turn sparse tensors into strings, a TensorProto each for indices, values and shape, and back.

The bytes are TensorFlow's: numbers are raw content, and strings are their lengths in front of all their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, DType, Kernels, TensorValue, dtypes, errors, wire

from ..element_types import Array
from .sparse_checks import check_increasing, check_inside

Run = Callable[..., Any]
ROW_BYTES = 200  # of one serialized sparse tensor without elements
DTYPE_FIELD, SHAPE_FIELD, CONTENT_FIELD = 1, 2, 4  # of TensorProto; dimensions are field 2 of its shape


def serialize(_: Bind) -> Run:
    def run(indices: Array, values: Array, shape: Array, out: Array) -> None:
        out[:] = [serialize_tensor(part) for part in (indices, values, shape)]

    return run


def serialize_many(b: Bind) -> Run:
    """SerializeManySparse: each row along the first dimension becomes a sparse tensor of its own."""

    def run(indices: Array, values: Array, shape: Array) -> Array:
        rows = int(shape[0])
        b.ask(max(rows, 0) * ROW_BYTES, "serialized sparse tensors")
        check_inside(indices, shape)
        check_increasing(indices)
        out = np.empty((max(rows, 0), 3), object)
        out[:, 2] = serialize_tensor(shape[1:])
        ends = np.searchsorted(indices[:, 0], np.arange(len(out)), "right").tolist()
        for row, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            out[row, 0] = serialize_tensor(indices[start:end, 1:])
            out[row, 1] = serialize_tensor(values[start:end])
        return out

    return run


def serialize_tensor(x: Array) -> bytes:
    if x.dtype != object or not x.size:
        return bytes(TensorValue(np.ascontiguousarray(x)).raw)
    dims = b"".join(wire.put_bytes(2, wire.put_integer(1, n)) for n in x.shape)
    lengths = b"".join(wire.put_varint(len(text)) for text in x)
    return (wire.put_integer(DTYPE_FIELD, dtypes.string.number) + wire.put_bytes(SHAPE_FIELD, dims)
            + wire.put_bytes(CONTENT_FIELD, lengths + b"".join(x)))


class Sparse(NamedTuple):
    indices: Array
    values: Array
    shape: Array


def deserialize(b: Bind) -> Run:
    """DeserializeSparse and DeserializeManySparse. The dimensions of the strings come in front of those of the sparse
    tensors, whose shape becomes the largest. Indices are not checked, as in TensorFlow."""
    dtype, lead = b.attrs["dtype"], b.inputs[0].meta.dims[:-1]

    def run(serialized: Array) -> tuple[Array, Array, Array]:
        tensors = [_parse(row, dtype) for row in serialized.reshape(prod(lead), 3)]
        rank = len(tensors[0].shape)
        if any(len(tensor.shape) != rank for tensor in tensors):
            raise errors.InvalidArgument("sparse tensors must have the same rank, given "
                                         f"{sorted({len(tensor.shape) for tensor in tensors})}")
        counts = [len(tensor.values) for tensor in tensors]
        b.ask(sum(counts) * (8 * (rank + len(lead) + 1) + tensors[0].values.itemsize), "sparse tensors")
        rows = np.repeat(np.arange(len(tensors)), counts)
        in_front = np.stack([*np.unravel_index(rows, lead)], 1) if lead else np.zeros((len(rows), 0), np.int64)
        indices = np.concatenate([in_front, np.concatenate([tensor.indices for tensor in tensors])], 1)
        shape = np.max([tensor.shape for tensor in tensors], 0)
        values = np.concatenate([tensor.values for tensor in tensors])
        return indices, values, np.append(np.array(lead, np.int64), shape).astype(np.int64)

    return run


def _parse(strings: Array, dtype: DType) -> Sparse:
    parts = []
    for text, part_type in zip(strings, (dtypes.int64, dtype, dtypes.int64), strict=True):
        try:
            value = TensorValue.read(text, 0, len(text))
        except errors.DataLoss as error:
            raise errors.InvalidArgument(f"Could not parse serialized proto: {error}") from None
        if value.dtype is not part_type:
            raise errors.InvalidArgument(f"Requested SparseTensor with {part_type} but a part is {value.dtype}")
        parts.append(value.array())
    sparse = Sparse(*parts)
    _check_parts(sparse)
    return sparse


def _check_parts(sparse: Sparse) -> None:
    indices, values, shape = sparse
    if indices.shape != (*values.shape, *shape.shape) or values.ndim != 1 or (shape < 0).any():
        raise errors.InvalidArgument(f"indices of shape {indices.shape}, values of shape {values.shape} and the shape "
                                     f"{shape.tolist()} are no sparse tensor")


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SerializeSparse", dtypes={"out_type": "string"})(serialize)
    kernels.kernel("SerializeManySparse", dtypes={"out_type": "string"}, allocates=True)(serialize_many)
    kernels.kernel("DeserializeSparse", dtypes={"Tserialized": "string"}, allocates=True)(deserialize)
    kernels.kernel("DeserializeManySparse", allocates=True)(deserialize)
