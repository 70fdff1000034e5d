"""Products of matrices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from heald.api import Bind, DType, FusedOp, Kernels, errors

from ..epilogue import Epilogue, OperandLayouts, broadcast
from ..library import library
from ..memory import Layout, row_major, row_major_strides
from ..primitives import NativeKernel
from ..products import Weights, product
from .binding import check_elements, without_epilogue

# Multiplications from which NumPy's call is not cheaper. With the nodes that follow, NumPy needs a call for each.
SMALLEST_MULTIPLICATIONS = 1 << 16
Matrices = tuple[list[int], list[int]]  # dimensions and strides


def matmul(b: Bind, node: FusedOp, after: Epilogue) -> NativeKernel:
    return _product(b, node, after, (node.attrs["transpose_a"], node.attrs["transpose_b"]))


def batch_matmul(b: Bind, node: FusedOp, after: Epilogue) -> NativeKernel:
    return _product(b, node, after, (node.attrs["adj_x"], node.attrs["adj_y"]))


def operands_of(b: Bind, node: FusedOp) -> OperandLayouts:
    """The layouts of the epilogue's operands, which broadcast against the product's result."""
    return broadcast(b, len(node.outputs[0].dims), _in_rows if _is_of_one_matrix(b, node) else row_major)


def _in_rows(shape: Sequence[int], dtype: DType) -> Layout:
    return row_major(_as_rows(shape), dtype)


def _is_of_one_matrix(b: Bind, node: FusedOp) -> bool:
    """True if all rows of the left operand are multiplied by one matrix, which is then read once, not once a batch.

    All other operands must fit this form: each has the result's shape, or is the same for all rows.
    """
    output, (left, right) = node.outputs[0].dims, (b.inputs[a].meta.dims for a in node.args)
    if node.attrs.get("adj_x", False) or len(left) < len(output) or prod(right[:-2]) != 1:
        return False
    beside = {a for other_node in b.fused if other_node is not node for a in other_node.args if a < len(b.inputs)}
    return all(dims == output or prod(dims[:-1]) == 1 for dims in (b.inputs[a].meta.dims for a in beside))


def _as_rows(shape: Sequence[int]) -> tuple[int, ...]:
    return prod(shape[:-1]), shape[-1]


def _product(b: Bind, node: FusedOp, after: Epilogue, turned: tuple[bool, bool]) -> NativeKernel:
    output = node.outputs[0].dims
    shapes = [b.inputs[a].meta.dims for a in node.args]
    if len(output) > 2 and _is_of_one_matrix(b, node):
        output, shapes = _as_rows(output), [_as_rows(shapes[0]), shapes[1][-2:]]
    left, right = (_matrices(shape, len(output), turn) for shape, turn in zip(shapes, turned, strict=True))
    check_elements(*shapes)
    if len(b.fused) < 2 and prod(output) * left[0][-1] < SMALLEST_MULTIPLICATIONS:
        raise errors.Unimplemented("NumPy's call is cheaper for so few elements")
    columns = output[-1]
    weights = Weights(*right, (columns, 1) if turned[1] else (columns,), (1,) * (len(output) - 1) + (columns,),
                      1 << len(output) - 1)
    source = Layout.of(*left, b.inputs[node.args[0]].meta.dtype)
    result = row_major(output, b.outputs[0].dtype)
    return product(b, node, after, weights, source, result, library().c.dnnl_matmul_primitive_desc_create,
                   lambda weights, bias, attributes: (source.descriptor, weights, bias, result.descriptor, attributes))


def _matrices(shape: tuple[int, ...], rank: int, turned: bool) -> Matrices:
    """Dimensions and strides of this rank, with leading lengths of 1. `turned` transposes each matrix."""
    dims = [1] * (rank - len(shape)) + list(shape)
    strides = row_major_strides(dims)
    if turned:
        dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
    return dims, strides


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    kernels.kernel("MatMul", dtypes={"T": types})(without_epilogue(matmul))
    for op in ("BatchMatMul", "BatchMatMulV2"):
        kernels.kernel(op, dtypes={"T": types})(without_epilogue(batch_matmul))
