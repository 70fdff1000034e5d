"""Metadata of products of matrices and of tensors."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, geometry, info, shape_text

from .rules import rule
from .shapes import dims_of_rank, same_dim, same_shape

ACTIVATIONS = ("Relu", "Relu6", "Tanh", "Sigmoid", "Elu", "LeakyRelu", "GeluApproximate", "GeluExact")


@rule("MatMul")
def matmul(attrs: Attrs, a: ValueInfo, b: ValueInfo) -> ValueInfo:
    rows, inner = dims_of_rank(a, 2, "a")[:: -1 if attrs["transpose_a"] else 1]
    other_inner, columns = dims_of_rank(b, 2, "b")[:: -1 if attrs["transpose_b"] else 1]
    same_dim(inner, other_inner, "the inner dimensions of a product")
    return info(a.dtype, (rows, columns))


@rule("_FusedMatMul")
def fused_matmul(attrs: Attrs, a: ValueInfo, b: ValueInfo, *args: ValueInfo) -> ValueInfo:
    """Adds a bias, then applies an activation or adds another tensor of the product's shape."""
    product = matmul(attrs, a, b)
    first, *later = attrs["fused_ops"] or [""]
    if first != "BiasAdd" or len(later) > 1 or not set(later) <= {*ACTIVATIONS, "Add"}:
        raise InvalidArgument(f"a product is fused with BiasAdd, then Add or an activation, not {attrs['fused_ops']}")
    count = 1 + ("Add" in later)
    if len(args) != count:
        raise InvalidArgument(f"{attrs['fused_ops']} of a product takes {count} tensors, not {len(args)}")
    (length,) = dims_of_rank(args[0], 1, "bias")
    columns = same_dim(dims_of_rank(product, 2, "product")[1], length, "the columns of the product and the bias")
    shape = (dims_of_rank(product, 2, "product")[0], columns)
    return info(a.dtype, same_shape((shape, *(x.shape for x in args[1:])), "what is added has the product's shape"))


@rule("BatchMatMulV2")
def batch_matmul(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(x.dtype, _batch_product(attrs, x, y))


@rule("BatchMatMulV3")
def batch_matmul_v3(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(attrs["Tout"], _batch_product(attrs, x, y))


@rule("BatchMatMul")
def batch_matmul_v1(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    """The batches must be equal: they do not broadcast."""
    shape = _batch_product(attrs, x, y)
    batches = [None if operand.shape is None else operand.shape[:-2] for operand in (x, y)]
    batch = same_shape(batches, "the batches of x and y must be equal")
    return info(x.dtype, shape if shape is None or batch is None else (*batch, *shape[-2:]))


def _batch_product(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> Shape:
    for operand in (x, y):
        if operand.rank is not None and operand.rank < 2:
            raise InvalidArgument(f"a batch of matrices has at least rank 2, given {shape_text(operand.shape)}")
    if x.shape is None or y.shape is None:
        return None
    rows, inner = x.shape[-2:][:: -1 if attrs["adj_x"] else 1]
    other_inner, columns = y.shape[-2:][:: -1 if attrs["adj_y"] else 1]
    same_dim(inner, other_inner, "the inner dimensions of a product")
    batch = geometry.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return None if batch is None else (*batch, rows, columns)


@rule("Einsum")
def einsum(attrs: Attrs, *xs: ValueInfo) -> ValueInfo:
    labels = geometry.einsum_labels(attrs["equation"], [x.rank for x in xs])
    if labels is None:
        return info(xs[0].dtype, None)
    lengths: dict[geometry.Label, int | None] = {}
    for x, axes in zip(xs, labels[0], strict=True):
        operand_lengths: dict[geometry.Label, int | None] = {}
        for label, length in zip(axes, x.shape or (None,) * len(axes), strict=True):
            operand_lengths[label] = same_dim(operand_lengths.get(label), length, f"dimensions '{label}' of an einsum")
        for label, length in operand_lengths.items():
            lengths[label] = _einsum_length(label, lengths.get(label, 1 if isinstance(label, int) else None), length)
    return info(xs[0].dtype, tuple(lengths[label] for label in labels[1]))


def _einsum_length(label: geometry.Label, a: int | None, b: int | None) -> int | None:
    """Return the length of an axis that two inputs share; the axes of an ellipsis broadcast."""
    if isinstance(label, str):
        return same_dim(a, b, f"dimensions '{label}' of an einsum")
    together = geometry.broadcast_shapes((a,), (b,))
    return None if together is None else together[0]


@rule("Cross")
def cross(_: Attrs, a: ValueInfo, b: ValueInfo) -> ValueInfo:
    shape = same_shape((a.shape, b.shape), "both inputs must be of same shape")
    if shape is None:
        return info(a.dtype, None)
    if not shape:
        raise InvalidArgument("input must be at least 1D, given shape []")
    same_dim(shape[-1], 3, "the innermost dimension of cross products and 3")
    return info(a.dtype, shape)
