"""MatMul and BatchMatMul as products."""

from __future__ import annotations

from math import prod

from heald.api import DType, errors

from .broadcast import Dims, broadcast_dims, canonical
from .dialect import Target
from .epilogue import Epilogue
from .gemm import gemm
from .gemm_problem import GemmProblem
from .lhs import Matrix
from .plan import Plan


def matmul(
    target: Target, dtype: DType, x: Dims, y: Dims, *, transpose_x: bool = False, transpose_y: bool = False,
    epilogue: Epilogue | None = None,
) -> Plan:
    """Products of the last two dimensions; those before broadcast. Raises Unimplemented for some mixed broadcasts."""
    problem, lhs = matmul_problem(dtype, x, y, transpose_x=transpose_x, transpose_y=transpose_y)
    return gemm(target, "MatMul", problem, lhs, epilogue or Epilogue())


def matmul_problem(
    dtype: DType, x: Dims, y: Dims, *, transpose_x: bool = False, transpose_y: bool = False
) -> tuple[GemmProblem, Matrix]:
    """The sizes and strides of a product, and its left operand. Raises Unimplemented."""
    rows, inner = x[-2:][:: -1 if transpose_x else 1]
    columns = y[-2] if transpose_y else y[-1]
    batch = broadcast_dims((x[:-2], y[:-2]))
    form = canonical((x[:-2], y[:-2]), batch)
    if len(form.lengths) > 1:
        raise errors.Unimplemented("the operands' batch dimensions broadcast in more than one way")
    (x_batch,), (y_batch,) = form.present
    if not transpose_x and y_batch is False and x_batch:
        rows, batch = rows * prod(batch), ()  # one matrix for all: one tall product
    problem = GemmProblem(
        dtype, prod(batch), rows, inner, columns, *((1, inner) if transpose_y else (columns, 1)),
        inner * columns if y_batch else 0, columns, rows * columns,
    )
    return problem, Matrix(dtype, *((1, rows) if transpose_x else (inner, 1)), rows * inner if x_batch else 0)
