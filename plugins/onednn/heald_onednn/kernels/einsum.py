"""Einsums that are products of matrices. The library reads and writes by strides, so nothing is transposed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heald.api import Bind, FusedOp, Kernels, errors

from ..contraction import Contraction
from ..epilogue import Epilogue, Lay, steps_after
from ..library import library
from ..memory import Layout, Operand
from ..primitives import NativeKernel
from ..products import Weights, product
from .binding import declining, has_elements, node_of
from .matmul import LEAST


def einsum(b: Bind) -> NativeKernel:
    return einsum_and(b, node_of(b), [])


def einsum_and(b: Bind, node: FusedOp, rest: Sequence[FusedOp]) -> NativeKernel:
    """Bind the einsum `node` with the ops `rest` that follow it."""
    shapes = [b.inputs[a].meta.dims for a in node.args]
    has_elements(*shapes)
    found = Contraction(node.attrs["equation"], shapes)
    if not node.outputs[0].dims or prod(found.result.dims) * found.left.dims[-1] < LEAST:
        raise errors.Unimplemented("NumPy's call is cheaper for one number, and for so few elements")
    source, result = found.left.layout, found.result.layout
    weights = Weights(found.right.dims, found.right.strides, (), (), 0)
    after = Epilogue(steps=steps_after(b, node, rest, _lay(b, found, len(node.outputs[0].dims))))
    ordered = node._replace(args=node.args[::-1]) if found.turned else node
    return product(b, ordered, after, weights, source, result, library().c.dnnl_matmul_primitive_desc_create,
                   lambda weights, bias, attributes: (source.descriptor, weights, bias, result.descriptor, attributes))


def _lay(b: Bind, found: Contraction, rank: int) -> Lay:
    """Lay out the operands of the steps, which broadcast against the result as it is written."""
    def lay(place: int) -> tuple[Layout, Operand]:
        shape = b.inputs[place].meta.dims
        return found.of_result((1,) * (rank - len(shape)) + shape).layout, place

    return lay


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Einsum", dtypes={"T": "float32"})(declining(einsum))
