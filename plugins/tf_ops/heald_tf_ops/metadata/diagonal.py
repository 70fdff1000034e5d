"""Metadata of ops that build tensors from diagonals, extract diagonals, or replace them.

Diagonal k of a matrix holds its elements (i, i + k). A band of diagonals k = (lower, upper) is packed one a row, from
`upper` down to `lower`, each padded to the longest. A single diagonal has no dimension of rows.
"""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, elements_in, same_dim, same_shape, single_integer


@rule("Diag")
def diag(_: Attrs, x: ValueInfo) -> ValueInfo:
    if x.rank == 0:
        raise InvalidArgument("Input must be at least rank 1, got 0")
    return info(x.dtype, None if x.shape is None else x.shape * 2)


@rule("DiagPart")
def diag_part(_: Attrs, x: ValueInfo) -> ValueInfo:
    if x.shape is None:
        return info(x.dtype, None)
    half, odd = divmod(len(x.shape), 2)
    if odd or not half:
        raise InvalidArgument(f"The rank of the tensor should be even and positive, got shape {shape_text(x.shape)}")
    return info(x.dtype, same_shape((x.shape[:half], x.shape[half:]), "Dimensions must be equal"))


@rule("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(_: Attrs, x: ValueInfo) -> ValueInfo:
    _check_rank(x, 1, "diagonal")
    return info(x.dtype, None if x.shape is None else (*x.shape, x.shape[-1]))


@rule("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diag_part(_: Attrs, x: ValueInfo) -> ValueInfo:
    _check_rank(x, 2, "input")
    return info(x.dtype, None if x.shape is None else (*x.shape[:-2], _longest(x.shape, 0, 0)))


@rule("MatrixSetDiag", "BatchMatrixSetDiag")
def matrix_set_diag(_: Attrs, x: ValueInfo, diagonal: ValueInfo) -> ValueInfo:
    return _with_diagonals(x, diagonal, (0, 0))


@rule("MatrixDiagPartV2", "MatrixDiagPartV3", values=("k",))
def matrix_diag_part_band(_: Attrs, x: ValueInfo, k: ValueInfo, padding: ValueInfo) -> ValueInfo:
    _check_rank(x, 2, "input")
    dims_of_rank(padding, 0, "padding_value")
    band = _band(k)
    if x.shape is None or band is None:
        return info(x.dtype, None)
    return info(x.dtype, _band_shape(x.shape, band))


@rule("MatrixSetDiagV2", "MatrixSetDiagV3", values=("k",))
def matrix_set_diag_band(_: Attrs, x: ValueInfo, diagonal: ValueInfo, k: ValueInfo) -> ValueInfo:
    return _with_diagonals(x, diagonal, _band(k))


@rule("MatrixDiagV2", "MatrixDiagV3", values=("k", "num_rows", "num_cols"))
def matrix_diag_band(
    _: Attrs, x: ValueInfo, k: ValueInfo, num_rows: ValueInfo, num_cols: ValueInfo, padding: ValueInfo
) -> ValueInfo:
    _check_rank(x, 1, "diagonal")
    dims_of_rank(padding, 0, "padding_value")
    band, rows, columns = _band(k), single_integer(num_rows, "num_rows"), single_integer(num_cols, "num_cols")
    if x.shape is None or band is None or rows is None or columns is None:
        return info(x.dtype, None)
    lower, upper = band
    lead = x.shape[:-1]
    if lower != upper:
        _check_rank(x, 2, "diagonal")
        same_dim(x.shape[-2], upper - lower + 1, "the rows of diagonal and the number of diagonals")
        lead = x.shape[:-2]
    return info(x.dtype, (*lead, *_matrix(x.shape[-1], band, rows, columns)))


@rule("MatrixBandPart", "BatchMatrixBandPart", values=("num_lower", "num_upper"))
def matrix_band_part(_: Attrs, x: ValueInfo, num_lower: ValueInfo, num_upper: ValueInfo) -> ValueInfo:
    _check_rank(x, 2, "input")
    for number, axis, name in ((num_lower, -2, "num_lower"), (num_upper, -1, "num_upper")):
        count, length = single_integer(number, name), None if x.shape is None else x.shape[axis]
        if count is not None and length is not None and count > length:
            raise InvalidArgument(f"{name} must be negative or less or equal to number of "
                                  f"{'rows' if axis == -2 else 'columns'} ({length}) got: {count}")
    return ValueInfo(x.meta)


def _check_rank(x: ValueInfo, least: int, name: str) -> None:
    if x.rank is not None and x.rank < least:
        raise InvalidArgument(f"{name} must be at least {least}-dim, received shape: {shape_text(x.shape)}")


def _band(k: ValueInfo) -> tuple[int, int] | None:
    """Return the lowest and the highest diagonal; None while they are not known."""
    if k.rank is not None and (k.rank > 1 or elements_in(k.shape) not in (1, 2, None)):
        raise InvalidArgument(f"diag_index must be a scalar or have one or two elements, received shape: "
                              f"{shape_text(k.shape)}")
    if k.value is None:
        return None
    lower, upper = int(k.value.flat[0]), int(k.value.flat[-1])
    if lower > upper:
        raise InvalidArgument(f"lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}")
    return lower, upper


def _longest(shape: Dims, lower: int, upper: int) -> int | None:
    """Return the length of the longest of these diagonals of matrices of this shape."""
    rows, columns = shape[-2:]
    return None if rows is None or columns is None else min(rows + min(upper, 0), columns - max(lower, 0))


def _band_shape(shape: Dims, band: tuple[int, int]) -> Dims:
    """Return the shape of a band of matrices of this shape."""
    lower, upper = band
    rows, columns = shape[-2:]
    for k, name in ((lower, "lower_diag_index"), (upper, "upper_diag_index")):
        if k and ((rows is not None and -k >= rows) or (columns is not None and k >= columns)):
            raise InvalidArgument(f"{name} is out of bound: {k} in matrices of {shape_text((rows, columns))}")
    several = () if lower == upper else (upper - lower + 1,)
    return (*shape[:-2], *several, _longest(shape, lower, upper))


def _with_diagonals(x: ValueInfo, diagonal: ValueInfo, band: tuple[int, int] | None) -> ValueInfo:
    _check_rank(x, 2, "input")
    _check_rank(diagonal, 1, "diagonal")
    if x.shape is None or band is None:
        return ValueInfo(x.meta)
    together = same_shape((_band_shape(x.shape, band), diagonal.shape), "diagonal does not fit the input's diagonals")
    assert together is not None
    return info(x.dtype, (*together[: len(x.shape) - 2], *x.shape[-2:]))


def _matrix(longest: int | None, band: tuple[int, int], rows: int, columns: int) -> Dims:
    """Return rows and columns of matrices with these diagonals. -1 requests the fewest, two -1 the smallest square."""
    if longest is None:
        return tuple(None if n == -1 else n for n in (rows, columns))
    lower, upper = band
    least_rows, least_columns = longest - min(upper, 0), longest + max(lower, 0)
    if rows == columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns or (rows > least_rows and columns > least_columns):
        raise InvalidArgument(f"{rows} rows and {columns} columns are not consistent with diagonals {lower} to {upper} "
                              f"of length {longest}")
    return rows, columns
