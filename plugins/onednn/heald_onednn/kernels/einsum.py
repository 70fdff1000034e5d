"""Einsums that are products of matrices. The library reads and writes by strides, so nothing is transposed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heald.api import Bind, FusedOp, Kernels, errors

from ..contraction import Contraction
from ..epilogue import Epilogue, OperandLayouts, steps_after
from ..library import library
from ..memory import Layout, Operand
from ..primitives import NativeKernel
from ..products import Weights, product
from .binding import check_elements, declining, node_of
from .matmul import SMALLEST_MULTIPLICATIONS


def einsum(b: Bind) -> NativeKernel:
    return einsum_and(b, node_of(b), [])


def einsum_and(b: Bind, node: FusedOp, following_ops: Sequence[FusedOp]) -> NativeKernel:
    """Bind the einsum `node` with the `following_ops` that follow it."""
    shapes = [b.inputs[a].meta.dims for a in node.args]
    check_elements(*shapes)
    contraction = Contraction(node.attrs["equation"], shapes)
    if not node.outputs[0].dims or prod(contraction.result.dims) * contraction.left.dims[-1] < SMALLEST_MULTIPLICATIONS:
        raise errors.Unimplemented("NumPy's call is cheaper for one number, and for so few elements")
    source, result = contraction.left.layout, contraction.result.layout
    weights = Weights(contraction.right.dims, contraction.right.strides, (), (), 0)
    after = Epilogue(steps=steps_after(b, node, following_ops,
                                       _operand_layouts(b, contraction, len(node.outputs[0].dims))))
    ordered = node._replace(args=node.args[::-1]) if contraction.turned else node
    return product(b, ordered, after, weights, source, result, library().c.dnnl_matmul_primitive_desc_create,
                   lambda weights, bias, attributes: (source.descriptor, weights, bias, result.descriptor, attributes))


def _operand_layouts(b: Bind, contraction: Contraction, rank: int) -> OperandLayouts:
    """Lay out the operands of the steps, which broadcast against the result as it is written."""
    def operand_layout(input_index: int) -> tuple[Layout, Operand]:
        shape = b.inputs[input_index].meta.dims
        return contraction.of_result((1,) * (rank - len(shape)) + shape).layout, input_index

    return operand_layout


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Einsum", dtypes={"T": "float32"})(declining(einsum))
