"""Diagonals: each op against the others and NumPy, for every band and alignment."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0]


@st.composite
def bands(draw):
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    ends = sorted(draw(st.tuples(*[st.integers(1 - rows, columns - 1)] * 2)))
    x = np.arange(1, 2 * rows * columns + 1).reshape(2, rows, columns)
    return x, np.int32(ends), np.subtract.outer(-np.arange(rows), -np.arange(columns))


@fast
@given(bands(), st.sampled_from(ALIGNMENTS))
def test_a_band_taken_out_fills_the_band_of_another(drawn, align):
    x, k, above = drawn
    in_band = (above >= k[0]) & (above <= k[1])
    packed = run("MatrixDiagPartV3", x, k, np.int64(0), align=align)
    got = run("MatrixSetDiagV3", -x, packed, k, align=align)
    np.testing.assert_array_equal(got, np.where(in_band, x, -x))
    rows, columns = (np.int32(n) for n in x.shape[1:])
    alone = run("MatrixDiagV3", packed, k, rows, columns, np.int64(-7), align=align)
    np.testing.assert_array_equal(alone, np.where(in_band, x, -7))


@fast
@given(bands(), st.sampled_from(ALIGNMENTS))
def test_a_diagonal_is_numpys_padded_on_the_side_that_it_is_not_aligned_to(drawn, align):
    x, k, _ = drawn
    packed = run("MatrixDiagPartV3", x, k, np.int64(0), align=align).reshape(2, k[1] - k[0] + 1, -1)
    for row, at in enumerate(range(k[1], k[0] - 1, -1)):
        diagonal = np.diagonal(x, at, 1, 2)
        left = align.split("_")[at < 0] == "LEFT"
        missing = packed.shape[2] - diagonal.shape[1]
        if at:
            margins = (0, missing) if left else (missing, 0)
            np.testing.assert_array_equal(packed[:, row], np.pad(diagonal, ((0, 0), margins)))


def test_a_matrix_without_rows_and_columns_is_a_square_or_as_small_as_can_be():
    free, zero = np.int32(-1), np.float64(0)
    assert run("MatrixDiagV2", np.ones(3), np.int32(1), free, free, zero).shape == (4, 4)
    assert run("MatrixDiagV2", np.ones(3), np.int32(1), free, np.int32(4), zero).shape == (3, 4)
    assert run("MatrixDiagV2", np.ones(3), np.int32(-1), np.int32(4), free, zero).shape == (4, 3)


def test_first_versions_know_the_main_diagonal():
    x = np.arange(6).reshape(1, 2, 3)
    diagonal = run("MatrixDiagPart", x)
    np.testing.assert_array_equal(diagonal, [[0, 4]])
    np.testing.assert_array_equal(run("MatrixDiag", diagonal), [np.diag([0, 4])])
    np.testing.assert_array_equal(run("MatrixSetDiag", x, diagonal + 1), [[[1, 1, 2], [3, 5, 5]]])
    assert run("MatrixDiag", np.zeros((0, 2))).shape == (0, 2, 2)
    np.testing.assert_array_equal(run("DiagPart", run("Diag", x[0])), x[0])


@fast
@given(bands(), st.integers(-1, 1), st.integers(-1, 1))
def test_a_negative_number_of_diagonals_keeps_them_all(drawn, lower, upper):
    x, _, above = drawn
    in_band = ((above >= -lower) | (lower < 0)) & ((above <= upper) | (upper < 0))
    np.testing.assert_array_equal(run("MatrixBandPart", x, np.int64(lower), np.int64(upper)), np.where(in_band, x, 0))


x23, zero = np.ones((2, 3)), np.float64(0)


@pytest.mark.parametrize(("op", "inputs"), [
    ("Diag", [zero]), ("DiagPart", [x23]), ("DiagPart", [np.ones(3)]), ("MatrixDiagPart", [np.ones(3)]),
    ("MatrixDiagPartV3", [x23, np.int32(3), zero]), ("MatrixDiagPartV3", [x23, np.int32([1, 0]), zero]),
    ("MatrixDiagPartV3", [x23, np.int32([0, 0, 0]), zero]), ("MatrixSetDiag", [x23, np.ones(3)]),
    ("MatrixSetDiagV3", [x23, np.ones(2), np.int32([-1, 0])]),
    ("MatrixDiagV3", [np.ones(3), np.int32(0), np.int32(2), np.int32(-1), zero]),
    ("MatrixDiagV3", [np.ones(3), np.int32(0), np.int32(4), np.int32(4), zero]),
    ("MatrixDiagV3", [np.ones((2, 3)), np.int32([0, 2]), np.int32(-1), np.int32(-1), zero]),
    ("MatrixBandPart", [x23, np.int64(3), np.int64(0)]), ("MatrixBandPart", [np.ones(3), np.int64(0), np.int64(0)]),
])
def test_a_diagonal_that_does_not_fit_is_refused(op, inputs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs)
