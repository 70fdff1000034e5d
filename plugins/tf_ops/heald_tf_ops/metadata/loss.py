"""Metadata of cross entropies, which return a loss an example and its gradient for the logits."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, geometry, info, shape_text

from .rules import rule
from .shapes import dims_of_rank, same_dim


@rule("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(_: Attrs, logits: ValueInfo, labels: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    """Labels are probabilities; labels and logits broadcast against each other."""
    shape = geometry.broadcast_shapes(logits.shape, labels.shape) or (None, None)
    if len(shape) != 2:
        raise InvalidArgument("logits and labels must be 2-dimensional, or broadcast to that, given "
                              f"{shape_text(logits.shape)} and {shape_text(labels.shape)}")
    return info(logits.dtype, shape[:1]), info(logits.dtype, shape)


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(_: Attrs, logits: ValueInfo, labels: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    """A label is the index of a class."""
    batch, classes = dims_of_rank(logits, 2, "logits")
    batch = same_dim(batch, dims_of_rank(labels, 1, "labels")[0], "the examples of logits and labels")
    if classes == 0:
        raise InvalidArgument(f"Must have at least one class, but got logits shape {shape_text(logits.shape)}")
    return info(logits.dtype, (batch,)), info(logits.dtype, (batch, classes))
