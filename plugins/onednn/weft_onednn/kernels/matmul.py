"""Products of matrices."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from weft.api import Attachable, Bind, FusedOp, Kernels, errors

from ..epilogue import Epilogue
from ..library import library
from ..memory import Layout, row_major, rows
from ..products import Weights, product
from .binding import alone, has_elements

LEAST = 1 << 16  # multiplications from which NumPy's call is not cheaper
Matrices = tuple[list[int], list[int]]  # dimensions and strides


def matmul(b: Bind, node: FusedOp, after: Epilogue) -> Attachable:
    return _product(b, node, after, (node.attrs["transpose_a"], node.attrs["transpose_b"]))


def batch_matmul(b: Bind, node: FusedOp, after: Epilogue) -> Attachable:
    return _product(b, node, after, (node.attrs["adj_x"], node.attrs["adj_y"]))


def _product(b: Bind, node: FusedOp, after: Epilogue, turned: tuple[bool, bool]) -> Attachable:
    output = node.outputs[0].dims
    shapes = [b.inputs[a].meta.dims for a in node.args]
    left, right = (_matrices(shape, len(output), turn) for shape, turn in zip(shapes, turned, strict=True))
    has_elements(*shapes)
    if prod(output) * left[0][-1] < LEAST:
        raise errors.Unimplemented("NumPy's call is cheaper for so few elements")
    columns = output[-1]
    weights = Weights(*right, (columns, 1) if turned[1] else (columns,), (1,) * (len(output) - 1) + (columns,),
                      1 << len(output) - 1)
    source = Layout.of(*left, b.inputs[node.args[0]].meta.dtype)
    result = row_major(output, b.outputs[0].dtype)
    return product(b, node, after, weights, source, result, library().c.dnnl_matmul_primitive_desc_create,
                   lambda weights, bias, attributes: (source.descriptor, weights, bias, result.descriptor, attributes))


def _matrices(shape: tuple[int, ...], rank: int, turned: bool) -> Matrices:
    """Of this rank, with lengths of 1 before the shape's own; each matrix turned round or not."""
    dims = [1] * (rank - len(shape)) + list(shape)
    strides = rows(dims)
    if turned:
        dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
    return dims, strides


def register(kernels: Kernels, types: Collection[str]) -> None:
    kernels.kernel("MatMul", dtypes={"T": types})(alone(matmul))
    for op in ("BatchMatMul", "BatchMatMulV2"):
        kernels.kernel(op, dtypes={"T": types})(alone(batch_matmul))
