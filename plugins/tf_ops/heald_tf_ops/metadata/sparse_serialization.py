"""Metadata of ops that turn sparse tensors into strings, three for each, and back."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import dims_of_rank
from .sparse import sparse

Results = tuple[ValueInfo, ...]


@rule("SerializeSparse")
def serialize(attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> ValueInfo:
    """The three parts need not fit, as in TensorFlow."""
    for part, rank, name in ((indices, 2, "indices"), (values, 1, "values"), (shape, 1, "shape")):
        dims_of_rank(part, rank, name)
    return info(attrs["out_type"], (3,))


@rule("SerializeManySparse")
def serialize_many(attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> ValueInfo:
    _, rank = sparse(indices, values, shape)
    if rank is not None and rank < 2:
        raise InvalidArgument(f"Rank of input SparseTensor should be > 1, but saw rank: {rank}")
    return info(attrs["out_type"], (None, 3))


@rule("DeserializeSparse")
def deserialize(attrs: Attrs, serialized: ValueInfo) -> Results:
    shape = serialized.shape
    if shape is not None:
        if not shape or shape[-1] not in (None, 3):
            raise InvalidArgument(f"Serialized sparse should have 3 as the last dimension, given {shape_text(shape)}")
        if 0 in shape:
            raise InvalidArgument("Serialized sparse should have at least 1 serialized tensor")
    return info(dtypes.int64, (None, None)), info(attrs["dtype"], (None,)), info(dtypes.int64, (None,))


@rule("DeserializeManySparse")
def deserialize_many(attrs: Attrs, serialized: ValueInfo) -> Results:
    dims_of_rank(serialized, 2, "serialized_sparse")
    return deserialize(attrs, serialized)
