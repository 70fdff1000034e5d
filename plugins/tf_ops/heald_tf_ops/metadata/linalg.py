"""Metadata of factorisations, inverses and solutions of matrices, which are the last two dimensions of a tensor."""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, Shape, ValueInfo, dtypes, geometry, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, same_dim, same_shape


@rule("BatchCholesky", "BatchMatrixInverse", "Cholesky", "MatrixExponential", "MatrixInverse", "MatrixLogarithm",
      "MatrixSquareRoot")
def square(_: Attrs, x: ValueInfo) -> ValueInfo:
    batch_and_side = _square(x)
    return info(x.dtype, None if batch_and_side is None else (*batch_and_side[0], batch_and_side[1], batch_and_side[1]))


@rule("BatchMatrixDeterminant", "MatrixDeterminant")
def determinant(_: Attrs, x: ValueInfo) -> ValueInfo:
    batch_and_side = _square(x)
    return info(x.dtype, None if batch_and_side is None else batch_and_side[0])


@rule("LogMatrixDeterminant")
def log_determinant(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    return determinant(attrs, x), determinant(attrs, x)


@rule("BatchMatrixSolve", "MatrixSolve")
def solve(_: Attrs, matrix: ValueInfo, rhs: ValueInfo) -> ValueInfo:
    return info(rhs.dtype, _solution(matrix, rhs, broadcast=False))


@rule("BatchMatrixTriangularSolve", "MatrixTriangularSolve")
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


@rule("BatchSvd", "Svd")
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


@rule("BatchSelfAdjointEigV2", "SelfAdjointEigV2")
def self_adjoint_eig(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    return _values_and_vectors(attrs, x, x.dtype)


@rule("Eig")
def eig(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    expected = dtypes.complex128 if x.dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64
    if attrs["Tout"] is not expected:
        raise InvalidArgument(f"Invalid output dtype {attrs['Tout'].name}, expected {expected.name} for {x.dtype.name}")
    return _values_and_vectors(attrs, x, expected)


def _values_and_vectors(attrs: Attrs, x: ValueInfo, dtype: DType) -> tuple[ValueInfo, ...]:
    """Eigenvalues, and vectors as columns: empty unless `compute_v` is set."""
    batch_and_side = _square(x)
    vectors: Shape = None if batch_and_side is None else (*batch_and_side[0], batch_and_side[1], batch_and_side[1])
    values: Shape = None if batch_and_side is None else (*batch_and_side[0], batch_and_side[1])
    return info(dtype, values), info(dtype, vectors if attrs["compute_v"] else (0,))


@rule("BatchSelfAdjointEig", "SelfAdjointEig")
def self_adjoint_eig_v1(_: Attrs, x: ValueInfo) -> ValueInfo:
    """The first row is the eigenvalues."""
    batch_and_side = _square(x)
    if batch_and_side is None:
        return info(x.dtype, None)
    batch, side = batch_and_side
    return info(x.dtype, (*batch, None if side is None else side + 1, side))


@rule("Lu")
def lu(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    batch_and_side = _square(x)
    if batch_and_side is None:
        return info(x.dtype, None), info(attrs["output_idx_type"], None)
    batch, side = batch_and_side
    return info(x.dtype, (*batch, side, side)), info(attrs["output_idx_type"], (*batch, side))


@rule("BatchCholeskyGrad", "CholeskyGrad")
def cholesky_gradient(attrs: Attrs, lower: ValueInfo, grad: ValueInfo) -> ValueInfo:
    shapes = square(attrs, lower).shape, square(attrs, grad).shape
    return info(lower.dtype, same_shape(shapes, "Inputs (L and grad) must have the same shape"))


@rule("BatchMatrixSolveLs", "MatrixSolveLs")
def solve_least_squares(_: Attrs, matrix: ValueInfo, rhs: ValueInfo, regulariser: ValueInfo) -> ValueInfo:
    dims_of_rank(regulariser, 0, "l2_regularizer")
    left, right = _matrices(matrix, "matrix"), _matrices(rhs, "rhs")
    if left is None or right is None:
        return info(rhs.dtype, None)
    batch = _same_batch(left[0], right[0])
    same_dim(left[1], right[1], "the rows of the matrix and of rhs")
    return info(rhs.dtype, (*batch, left[2], right[2]))


@rule("TridiagonalSolve")
def tridiagonal_solve(_: Attrs, diagonals: ValueInfo, rhs: ValueInfo) -> ValueInfo:
    left, right = _matrices(diagonals, "diagonals"), _matrices(rhs, "rhs")
    if left is None or right is None:
        return info(rhs.dtype, None)
    same_dim(left[1], 3, "the rows of diagonals and 3")
    rows = same_dim(left[2], right[1], "the number of left-hand sides and right-hand sides")
    return info(rhs.dtype, (*_same_batch(left[0], right[0]), rows, right[2]))


@rule("TridiagonalMatMul")
def tridiagonal_product(_: Attrs, *tensors: ValueInfo) -> ValueInfo:
    """Each diagonal is a matrix of one row."""
    *diagonals, rhs = (_matrices(x, name) for x, name in zip(tensors, ("superdiag", "maindiag", "subdiag", "rhs"),
                                                             strict=True))
    if rhs is None:
        return info(tensors[-1].dtype, None)
    batch, rows, columns = rhs
    for diagonal in diagonals:
        if diagonal is not None:
            batch = _same_batch(diagonal[0], batch)
            same_dim(diagonal[1], 1, "the rows of a diagonal and 1")
            rows = same_dim(diagonal[2], rows, "the length of a diagonal and the rows of rhs")
    return info(tensors[-1].dtype, (*batch, rows, columns))


@rule("BandedTriangularSolve")
def banded_solve(_: Attrs, bands: ValueInfo, rhs: ValueInfo) -> ValueInfo:
    left, right = _matrices(bands, "bands"), _matrices(rhs, "rhs")
    if left is None or right is None:
        return info(rhs.dtype, None)
    for x, name in ((bands, "bands"), (rhs, "rhs")):
        if x.shape is not None and 0 in x.shape:
            raise InvalidArgument(f"{name} must not be an empty tensor, given shape {shape_text(x.shape)}")
    rows = same_dim(left[2], right[1], "the length of the bands and the rows of rhs")
    if left[1] is not None and rows is not None and left[1] > rows:
        raise InvalidArgument(f"Number of bands {left[1]} cannot exceed the size of the matrix {rows}")
    batch = geometry.broadcast_shapes(left[0], right[0])
    return info(rhs.dtype, None if batch is None else (*batch, rows, right[2]))


def _same_batch(left: Dims, right: Dims) -> Dims:
    if len(left) != len(right):
        raise InvalidArgument("All input tensors must have the same rank.")
    return same_shape((left, right), "All input tensors must have the same outer dimensions") or ()


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
