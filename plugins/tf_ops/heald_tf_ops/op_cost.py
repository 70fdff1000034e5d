"""OpCost: the least work of a node, by op and shapes: arithmetic operations, and bytes to read and write.

A multiplication and an addition are two operations. An op without a row takes one operation per output element; an op
that only moves elements takes none. Every input and output counts once in the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from heald.api import Attrs, OpCost, TensorMetadata

Metas = Sequence[TensorMetadata]
Count = Callable[[Attrs, Metas, Metas], int]


def op_cost(op: str, attrs: Attrs, inputs: Metas, outputs: Metas) -> OpCost:
    """Return the cost of a node. Operations are 0 and only known bytes count when a shape is unknown."""
    metas = [*inputs, *outputs]
    nbytes = sum(meta.nbytes for meta in metas if meta.is_static)
    if not all(meta.is_static for meta in metas) or op in MOVES:
        return OpCost(0, nbytes)
    count = OPERATION_COUNTS.get(op, _one_each)
    return OpCost(count(attrs, inputs, outputs), nbytes)


def _one_each(_: Attrs, __: Metas, outputs: Metas) -> int:
    return sum(meta.size for meta in outputs)


def _per_input(times: int) -> Count:
    return lambda _, inputs, __: times * inputs[0].size


def _matmul(attrs: Attrs, inputs: Metas, outputs: Metas) -> int:
    first = inputs[0].dims
    is_turned = attrs.get("transpose_a") or attrs.get("adj_x")
    return 2 * outputs[0].size * first[-2 if is_turned else -1]


def _convolution(_: Attrs, inputs: Metas, outputs: Metas) -> int:
    return 2 * outputs[0].size * prod(inputs[1].dims[:-1])


def _depthwise(_: Attrs, inputs: Metas, outputs: Metas) -> int:
    return 2 * outputs[0].size * prod(inputs[1].dims[:-2])


def _transposed_convolution(_: Attrs, inputs: Metas, __: Metas) -> int:
    return 2 * inputs[2].size * prod(inputs[1].dims[:-1])


def _pool(attrs: Attrs, _: Metas, outputs: Metas) -> int:
    return outputs[0].size * prod(attrs["ksize"])


def _einsum(attrs: Attrs, inputs: Metas, outputs: Metas) -> int:
    """Return a multiplication and an addition for each combination of the indices; of one operand an addition each.

    The sizes of indices that an ellipsis stands for are those of the output, which are the largest."""
    equation = attrs["equation"]
    text = (equation.decode() if isinstance(equation, bytes) else str(equation)).replace(" ", "")
    terms, _, result = text.partition("->")
    sizes: dict[str, int] = {}
    for term, meta in zip(terms.split(","), inputs, strict=False):
        before, dots, behind = term.partition("...")
        sizes |= zip(before, meta.dims, strict=False)
        if dots and behind:
            sizes |= zip(behind, meta.dims[-len(behind):], strict=False)
    sums = prod(size for index, size in sizes.items() if index not in result)
    return (2 if len(inputs) > 1 else 1) * outputs[0].size * sums


OPERATION_COUNTS: dict[str, Count] = {
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul", "_FusedMatMul"), _matmul),
    "Einsum": _einsum,
    **dict.fromkeys(("Conv2D", "Conv3D", "_FusedConv2D"), _convolution),
    **dict.fromkeys(("DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative"), _depthwise),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _transposed_convolution),
    **dict.fromkeys(("AvgPool", "AvgPool3D", "MaxPool", "MaxPool3D"), _pool),
    **dict.fromkeys(("All", "Any", "ArgMax", "ArgMin", "Max", "Mean", "Min", "Prod", "Sum"), _per_input(1)),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _per_input(5)),  # greatest, difference, exponential, sum, quotient
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _per_input(2)),
}
MOVES = frozenset({
    "BatchToSpaceND", "BroadcastTo", "Concat", "ConcatV2", "DepthToSpace", "ExpandDims", "Fill", "Gather", "GatherNd",
    "GatherV2", "Identity", "IdentityN", "MirrorPad", "Pack", "Pad", "PadV2", "ReadVariableOp", "Reshape",
    "ResizeNearestNeighbor", "Reverse", "ReverseV2", "Select", "SelectV2", "Shape", "Slice", "SpaceToBatchND",
    "SpaceToDepth", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice", "Tile", "Transpose", "Unpack",
})
