"""Metadata of factorisations, inverses and solutions of matrices, which are the last two dimensions of a tensor."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, geometry, info, shape_text

from .rules import rule
from .shapes import Dims, same_dim, same_shape


@rule("Cholesky", "MatrixInverse")
def square(_: Attrs, x: ValueInfo) -> ValueInfo:
    batch_and_side = _square(x)
    return info(x.dtype, None if batch_and_side is None else (*batch_and_side[0], batch_and_side[1], batch_and_side[1]))


@rule("MatrixDeterminant")
def determinant(_: Attrs, x: ValueInfo) -> ValueInfo:
    batch_and_side = _square(x)
    return info(x.dtype, None if batch_and_side is None else batch_and_side[0])


@rule("LogMatrixDeterminant")
def log_determinant(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    return determinant(attrs, x), determinant(attrs, x)


@rule("MatrixSolve")
def solve(_: Attrs, matrix: ValueInfo, rhs: ValueInfo) -> ValueInfo:
    return info(rhs.dtype, _solution(matrix, rhs, broadcast=False))


@rule("MatrixTriangularSolve")
def triangular_solve(_: Attrs, matrix: ValueInfo, rhs: ValueInfo) -> ValueInfo:
    return info(rhs.dtype, _solution(matrix, rhs, broadcast=True))


def _solution(matrix: ValueInfo, rhs: ValueInfo, *, broadcast: bool) -> Shape:
    left, right = _square(matrix), _matrices(rhs, "rhs")
    if left is None or right is None:
        return None
    if not broadcast and len(left[0]) != len(right[0]):
        raise InvalidArgument("All input tensors must have the same rank.")
    batch = (geometry.broadcast_shapes(left[0], right[0]) if broadcast
             else same_shape((left[0], right[0]), "All input tensors must have the same outer dimensions"))
    rows = same_dim(left[1], right[1], "the rows of the matrix and of rhs")
    return None if batch is None else (*batch, rows, right[2])


@rule("Qr")
def qr(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    matrix_dims = _matrices(x, "input")
    if matrix_dims is None:
        return info(x.dtype, None), info(x.dtype, None)
    batch, rows, columns = matrix_dims
    inner = rows if attrs["full_matrices"] else _least(rows, columns)
    return info(x.dtype, (*batch, rows, inner)), info(x.dtype, (*batch, inner, columns))


@rule("Svd")
def svd(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    """Return singular values, and left and right vectors as columns: empty unless `compute_uv` is set."""
    matrix_dims = _matrices(x, "input")
    vectors: tuple[Shape, Shape] = ((0,), (0,)) if not attrs["compute_uv"] else (None, None)
    if matrix_dims is None:
        return info(x.dtype, None), *(info(x.dtype, shape) for shape in vectors)
    batch, rows, columns = matrix_dims
    count = _least(rows, columns)
    if attrs["compute_uv"]:
        left, right = (rows, columns) if attrs["full_matrices"] else (count, count)
        vectors = (*batch, rows, left), (*batch, columns, right)
    return info(x.dtype, (*batch, count)), *(info(x.dtype, shape) for shape in vectors)


@rule("SelfAdjointEigV2")
def self_adjoint_eig(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    batch_and_side = _square(x)
    vectors: Shape = None if batch_and_side is None else (*batch_and_side[0], batch_and_side[1], batch_and_side[1])
    values: Shape = None if batch_and_side is None else (*batch_and_side[0], batch_and_side[1])
    return info(x.dtype, values), info(x.dtype, vectors if attrs["compute_v"] else (0,))


def _matrices(x: ValueInfo, name: str) -> tuple[Dims, int | None, int | None] | None:
    """Return batch, rows and columns; None for an unknown rank."""
    if x.shape is None:
        return None
    if len(x.shape) < 2:
        raise InvalidArgument(f"{name} must have rank >= 2, got {shape_text(x.shape)}")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _square(x: ValueInfo) -> tuple[Dims, int | None] | None:
    matrix_dims = _matrices(x, "input")
    if matrix_dims is None:
        return None
    batch, rows, columns = matrix_dims
    return batch, same_dim(rows, columns, "rows and columns of a square matrix")


def _least(rows: int | None, columns: int | None) -> int | None:
    if 0 in (rows, columns):
        return 0
    return None if rows is None or columns is None else min(rows, columns)
