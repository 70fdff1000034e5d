"""Factorisations and solutions: their equations, and the refused inputs."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
NAN, INF = np.nan, np.inf


def run(op, *xs, **attrs):
    outputs = run_op(op, list(xs), {"T": dtypes.of_numpy(xs[0].dtype)} | attrs)
    return outputs[0] if len(outputs) == 1 else outputs


def random(*shape, dtype=np.float32):
    parts = np.random.default_rng(0).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype) if np.dtype(dtype).kind == "c" else parts[0].astype(dtype)


def adjoint(x):
    return x.swapaxes(-2, -1).conj()


def close(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
def test_factors_multiply_to_the_matrix(dtype):
    x = random(2, 4, 3, dtype=dtype)
    definite = x @ adjoint(x) + np.eye(4, dtype=dtype)
    lower = run("Cholesky", definite)
    close(lower @ adjoint(lower), definite)
    for full in (False, True):
        q, r = run("Qr", x, full_matrices=full)
        close(q @ r, x)
        s, u, v = run("Svd", x, full_matrices=full)
        close((u[..., :3] * s[:, None, :]) @ adjoint(v), x)
    e, v = run("SelfAdjointEigV2", definite)
    close((v * e[:, None, :]) @ adjoint(v), definite)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("turned", [False, True])
def test_solutions_solve(dtype, turned):
    x = random(3, 5, 5, dtype=dtype) + 3 * np.eye(5, dtype=dtype)
    y = random(3, 5, 2, dtype=dtype)
    used = adjoint(x) if turned else x
    close(used @ run("MatrixSolve", x, y, adjoint=turned), y)
    close(used @ run("MatrixInverse", x, adjoint=turned), np.broadcast_to(np.eye(5, dtype=dtype), x.shape))
    sign, logarithm = run("LogMatrixDeterminant", x)
    close(sign * np.exp(logarithm), run("MatrixDeterminant", x))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_triangular_solution_reads_one_triangle_and_broadcasts(dtype, lower, turned):
    x = random(2, 1, 70, 70, dtype=dtype) / 70 + np.eye(70, dtype=dtype)
    y = random(3, 70, 2, dtype=dtype)
    triangle = (np.tril if lower else np.triu)(x)
    x = np.where(triangle == 0, np.nan, x).astype(dtype)
    close((adjoint(triangle) if turned else triangle) @ run("MatrixTriangularSolve", x, y, lower=lower, adjoint=turned),
          np.broadcast_to(y, (2, 3, 70, 2)))


def test_a_zero_on_the_diagonal_of_a_triangle_divides():
    got = run("MatrixTriangularSolve", np.float32([[0, 0], [1, 1]]), np.float32([[1], [1]]))
    assert got.tolist() == [[np.inf], [-np.inf]]


def test_only_those_matrices_are_nan_that_are_not_positive_definite():
    got = run("Cholesky", np.float32([[[4, 9], [2, 5]], [[1, 2], [2, 1]]]))
    np.testing.assert_array_equal(got, np.float32([[[2, 0], [1, 2]], [[np.nan, 0], [np.nan, np.nan]]]))


def test_half_precision_is_inverted_in_float32():
    x = np.float16([[1, 2], [3, 4]])
    np.testing.assert_allclose(run("MatrixInverse", x, adjoint=False), [[-2, 1], [1.5, -0.5]], rtol=2e-3)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_factors_of_lu_multiply_to_the_permuted_matrix(dtype):
    x = random(2, 6, 6, dtype=dtype)
    packed, order = run("Lu", x, output_idx_type=dtypes.int64)
    lower = np.tril(packed, -1) + np.eye(6, dtype=dtype)
    close(lower @ np.triu(packed), np.take_along_axis(x, order[..., None], 1))
    assert np.abs(lower).max() <= 1.0001
    assert order.dtype == np.int64


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvectors_are_turned_by_their_eigenvalues(dtype):
    x = random(2, 5, 5, dtype=dtype)
    e, v = run("Eig", x, Tout=dtypes.of_numpy(np.result_type(dtype, np.complex64)))
    close(x @ v, v * e[:, None, :])
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, rtol=1e-5)
    assert (np.diff(np.abs(e)) >= -1e-5).all()


def test_the_first_form_of_self_adjoint_eig_puts_the_eigenvalues_above_the_vectors():
    x = random(2, 4, 4)
    x += adjoint(x)
    e, v = run("SelfAdjointEigV2", x)
    for op in ("SelfAdjointEig", "BatchSelfAdjointEig"):
        np.testing.assert_array_equal(run(op, x), np.concatenate([e[:, None], v], 1))


def tridiagonal(above, main, below):
    """The matrix of these diagonals, the first and last of whose elements are unused."""
    return np.diag(main) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("attrs", [
    {"partial_pivoting": False}, {"partial_pivoting": True}, {"partial_pivoting": True, "perturb_singular": True},
])
def test_products_and_solutions_of_tridiagonal_matrices_are_inverse_to_each_other(dtype, attrs):
    diagonals, y = random(3, 6, dtype=dtype) + np.array([[0], [3], [0]], dtype), random(6, 2, dtype=dtype)
    solution = run("TridiagonalSolve", diagonals, y, **attrs)
    close(tridiagonal(*diagonals) @ solution, y)
    close(run("TridiagonalMatMul", *diagonals[:, None], solution), y)


def test_pivots_are_chosen_for_each_matrix_of_a_batch():
    diagonals = np.float64([[[2, 3, 9], [0, 0, 1], [7, 4, 5]], [[1, 1, 9], [4, 4, 4], [7, 1, 1]]])
    y = random(2, 3, 2, dtype=np.float64)
    solved = run("TridiagonalSolve", diagonals, y)
    for matrix, right, x in zip(diagonals, y, solved, strict=True):
        close(tridiagonal(*matrix) @ x, right)


def test_a_singular_tridiagonal_matrix_is_nan_and_leaves_the_others():
    diagonals = np.float64([[[1, 1], [1, 1], [1, 1]], [[0, 0], [2, 4], [0, 0]]])
    solved = run("TridiagonalSolve", diagonals, np.ones((2, 2, 1)))
    assert np.isnan(solved[0]).all()
    assert solved[1].tolist() == [[0.5], [0.25]]
    perturbed = run("TridiagonalSolve", diagonals, np.ones((2, 2, 1)), perturb_singular=True)
    assert np.isfinite(perturbed).all()


def test_no_pivot_is_perturbed_for_ever():
    diagonals, y = np.zeros((3, 3)), np.array([[np.inf], [np.nan], [1e308]])
    assert run("TridiagonalSolve", diagonals, y, perturb_singular=True).shape == (3, 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_banded_solutions_solve_and_read_no_unused_elements(dtype, lower, turned):
    triangle = np.tril(np.triu(random(6, 6, dtype=dtype), -2)) + 3 * np.eye(6, dtype=dtype)
    bands = np.stack([np.append(np.full(k, np.nan), np.diag(triangle, -k)) for k in range(3)]).astype(dtype)
    if not lower:
        triangle, bands = triangle[::-1, ::-1], bands[::-1, ::-1]
    y = random(2, 6, 2, dtype=dtype)
    solved = run("BandedTriangularSolve", bands, y, lower=lower, adjoint=turned)
    close((adjoint(triangle) if turned else triangle) @ solved, y)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_least_squares_are_those_of_numpy(dtype, fast, shape):
    x, y = random(2, *shape, dtype=dtype), random(2, shape[0], 2, dtype=dtype)
    want = np.stack([np.linalg.lstsq(a, b)[0] for a, b in zip(x, y, strict=True)])
    close(run("MatrixSolveLs", x, y, np.float64(0), fast=fast), want)


def test_the_gradient_of_cholesky_is_the_limit_of_differences():
    half, change = random(4, 4, dtype=np.float64), random(4, 4, dtype=np.float64)
    x, change = half @ half.T + np.eye(4), change + change.T
    grad = random(4, 4, dtype=np.float64)
    difference = np.linalg.cholesky(x + 1e-6 * change) - np.linalg.cholesky(x - 1e-6 * change)
    want = (np.tril(grad) * difference).sum() / 2e-6
    np.testing.assert_allclose((run("CholeskyGrad", np.linalg.cholesky(x), grad) * change).sum(), want, rtol=1e-6)


def test_the_gradient_of_a_large_factor_goes_by_blocks():
    lower = np.tril(random(2, 70, 70, dtype=np.float64)) / 9 + 4 * np.eye(70)
    grad, inverse = random(2, 70, 70, dtype=np.float64), np.linalg.inv(lower)
    middle = np.tril(adjoint(lower) @ np.tril(grad))
    middle -= np.eye(70) * middle / 2
    want = adjoint(inverse) @ middle @ inverse
    np.testing.assert_allclose(run("CholeskyGrad", lower, grad), (want + adjoint(want)) / 2, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("lower", "grad", "want"), [  # of TensorFlow
    ([[INF, 0], [0.5, 2]], [[1, 0], [0.25, 0.5]], [[0, 0], [0, 0.125]]),
    ([[2, 0, 0], [1, INF, 0], [4, 5, 2]], [[1, 0, 0], [0.25, 0.5, 0], [1, 2, 4]],
     [[3.71875, 0.0625, -1.75], [0.0625, 0, 0], [-1.75, 0, 1]]),
    ([[2, 0, 0], [1, 4, 0], [4, 5, 2]], [[1, 0, 0], [INF, 0.5, 0], [1, 2, 4]],
     [[-INF, INF, -1.25], [INF, 1.3125, -1], [-1.25, -1, 1]]),
])
def test_infinity_stays_in_the_gradients_of_its_rows_and_columns(lower, grad, want):
    np.testing.assert_array_equal(run("CholeskyGrad", np.array(lower, float), np.array(grad, float)), want)


@pytest.mark.parametrize("op", ["BatchSvd", "Svd"])
@pytest.mark.parametrize("number", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_singular_values_of_no_numbers_are_nan_and_leave_the_others(op, number, dtype):
    x = random(3, 4, 2, dtype=dtype)
    x[1, 3, 0] = number
    for full in (False, True):
        for out in run(op, x, full_matrices=full):
            assert np.isnan(out[1]).all()
            assert np.isfinite(out[[0, 2]]).all()
    values = run(op, x, compute_uv=False)[0]
    assert np.isnan(values[1]).all()
    close(values[::2], run(op, x[::2])[0])


@pytest.mark.parametrize("op", ["BatchSelfAdjointEig", "BatchSelfAdjointEigV2", "SelfAdjointEig", "SelfAdjointEigV2"])
def test_self_adjoint_matrices_are_read_below_the_diagonal_alone(op):
    x = random(3, 3)
    above = np.where(np.tri(3, dtype=bool), x, np.float32(NAN))
    for got, want in zip(run_op(op, [above], {"T": dtypes.float32}), run_op(op, [x], {"T": dtypes.float32}),
                         strict=True):
        np.testing.assert_array_equal(got, want)
    for number in (NAN, INF):
        for place in ((0, 0), (2, 2), (2, 0), (2, 1)):
            changed = x.copy()
            changed[place] = number
            with pytest.raises(InvalidArgument, match="not successful"):
                run_op(op, [np.stack([x, changed])], {"T": dtypes.float32})


def test_a_single_number_is_its_own_eigenvalue():
    for number in (NAN, INF, 2.0):
        np.testing.assert_array_equal(run("SelfAdjointEig", np.array([[number]])), [[number], [1]])


@pytest.mark.parametrize(("x", "factors", "rows"), [  # of TensorFlow
    ([[1, 2], [3, NAN]], [[3, NAN], [1 / 3, NAN]], [1, 0]), ([[2, NAN], [4, 3]], [[4, 3], [0.5, NAN]], [1, 0]),
    ([[1, 2], [NAN, 3]], [[1, 2], [NAN, NAN]], [0, 1]),
    ([[1, 2, 3], [NAN, 4, 5], [2, 6, 7]], [[2, 6, 7], [NAN, NAN, NAN], [0.5, NAN, NAN]], [2, 1, 0]),
])
def test_nan_is_the_pivot_of_a_matrix_last(x, factors, rows):
    x = np.array(x)
    got = run("Lu", x)
    np.testing.assert_allclose(got[0], factors)
    assert got[1].tolist() == rows
    for solution in (run("MatrixInverse", x), run("BatchMatrixInverse", x[None]), run("MatrixSolve", x, x[:, :1])):
        assert np.isnan(solution).all()


def test_nan_in_bands_is_refused_in_the_first_place_alone():
    right = np.ones((3, 1))
    for lower, want in ((True, [1, NAN, NAN]), (False, [NAN, NAN, 0.5])):
        bands = np.array([[1, NAN, 2], [1, 1, 1]] if lower else [[1, 1, 1], [1, NAN, 2]])
        np.testing.assert_array_equal(run("BandedTriangularSolve", bands, right, lower=lower)[:, 0], want)
        bands[np.isnan(bands)] = 1
        bands[0 if lower else 1, 0] = NAN
        with pytest.raises(InvalidArgument, match="not invertible"):
            run("BandedTriangularSolve", bands, right, lower=lower)


@pytest.mark.parametrize("fast", [False, True])
def test_no_matrices_need_no_regulariser(fast):
    assert run("MatrixSolveLs", np.ones((0, 4, 4)), np.ones((0, 4, 2)), np.float64(-1), fast=fast).shape == (0, 4, 2)
    for shape, number in (((2, 0, 4), -1), ((2, 4, 0), -1), ((2, 3, 3), -1), ((2, 3, 3), NAN)):
        with pytest.raises(InvalidArgument, match="l2_regularizer"):
            run("MatrixSolveLs", np.ones(shape), np.ones((*shape[:2], 2)), np.float64(number), fast=fast)


@pytest.mark.parametrize("dtype", TYPES)
def test_functions_of_matrices_are_inverse_to_each_other(dtype):
    pytest.importorskip("scipy")
    x = random(2, 4, 4, dtype=dtype) / 4 + 2 * np.eye(4, dtype=dtype)
    root = run("MatrixSquareRoot", x)
    close(root @ root, x)
    if np.dtype(dtype).kind == "c":
        close(run("MatrixExponential", run("MatrixLogarithm", x)), x)


@pytest.mark.parametrize(("op", "matrix"), [
    ("MatrixSquareRoot", [[-1.0, 2], [0, 4]]), ("MatrixSquareRoot", [[1, np.inf], [0, 1.0]]),
    ("MatrixLogarithm", [[0j, 1], [0, 1]]), ("MatrixLogarithm", [[np.nan, 1], [0, 1j]]),
    ("MatrixExponential", [[np.inf, 1], [0, 1]]),
])
def test_a_matrix_without_a_function_is_nan_and_leaves_the_others(op, matrix):
    pytest.importorskip("scipy")
    got = run(op, np.stack([np.array(matrix), np.eye(2) * 4]))
    assert np.isnan(got[0]).all()
    assert np.isfinite(got[1]).all()


def test_the_old_names_of_ops_give_the_same():
    x, y = random(2, 3, 3) + 4 * np.eye(3, dtype=np.float32), random(2, 3, 2)
    definite = x @ adjoint(x)
    for op, inputs in {
        "Cholesky": [definite], "CholeskyGrad": [definite, x], "MatrixDeterminant": [x], "MatrixInverse": [x],
        "MatrixSolve": [x, y], "MatrixSolveLs": [x, y, np.float64(1)], "MatrixTriangularSolve": [x, y], "Svd": [x],
        "SelfAdjointEigV2": [definite], "MatrixBandPart": [x, np.int64(1), np.int64(0)], "MatrixDiag": [y],
        "MatrixDiagPart": [x], "MatrixSetDiag": [x, x[:, 0]],
    }.items():
        for old, new in zip(run_op(f"Batch{op}", inputs, {"T": dtypes.float32}),
                            run_op(op, inputs, {"T": dtypes.float32, "Tindex": dtypes.int64}), strict=True):
            np.testing.assert_array_equal(old, new)


def test_the_determinant_of_an_empty_matrix_is_one():
    assert run("MatrixDeterminant", random(2, 0, 0)).tolist() == [1, 1]
    assert run("MatrixSolve", random(0, 0), random(0, 2)).shape == (0, 2)
    assert run("MatrixSolve", np.zeros((2, 2), np.float32), random(2, 0)).shape == (2, 0)
    assert run("MatrixSolveLs", random(0, 3), random(0, 2), np.float64(0)).tolist() == [[0, 0]] * 3
    assert run("Lu", random(0, 0))[1].shape == (0,)


def test_vectors_that_nobody_asked_for_are_empty():
    assert [x.shape for x in run("Svd", random(3, 2), compute_uv=False)] == [(2,), (0,), (0,)]
    assert [x.shape for x in run("SelfAdjointEigV2", np.eye(3), compute_v=False)] == [(3,), (0,)]


@pytest.mark.parametrize(("op", "inputs"), [
    ("MatrixInverse", [np.zeros((2, 2))]), ("MatrixInverse", [np.full((2, 2), np.nan)]),
    ("MatrixInverse", [random(2, 3)]), ("Cholesky", [random(3)]), ("MatrixDeterminant", [random(2, 3)]),
    ("MatrixSolve", [np.zeros((2, 2)), np.ones((2, 1))]), ("MatrixSolve", [random(2, 2), random(3, 1)]),
    ("MatrixSolve", [random(1, 2, 2), random(3, 2, 1)]), ("MatrixSolve", [random(2, 2), random(2)]),
    ("MatrixTriangularSolve", [random(2, 2, 2), random(3, 2, 1)]), ("SelfAdjointEigV2", [np.full((2, 2), np.nan)]),
    ("SelfAdjointEig", [np.full((2, 2), np.nan)]), ("Lu", [np.zeros((2, 2))]), ("Lu", [np.full((2, 2), np.nan)]),
    ("CholeskyGrad", [random(2, 2), random(3, 3)]),
    ("MatrixSolveLs", [np.zeros((2, 2)), np.ones((2, 1)), np.float64(0)]),
    ("MatrixSolveLs", [np.eye(2), np.ones((2, 1)), np.float64(-1)]), ("MatrixSquareRoot", [random(2, 3)]),
    ("TridiagonalSolve", [random(2, 2), random(2, 1)]), ("TridiagonalSolve", [random(1, 3, 2), random(2, 2, 1)]),
    ("TridiagonalMatMul", [random(2, 2), random(1, 2), random(1, 2), random(2, 1)]),
    ("BandedTriangularSolve", [np.zeros((1, 2)), np.ones((2, 1))]),
    ("BandedTriangularSolve", [random(3, 2), random(2, 1)]), ("BandedTriangularSolve", [random(2, 0), random(0, 1)]),
])
def test_a_matrix_without_a_solution_or_of_another_shape_is_refused(op, inputs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs)


@pytest.mark.parametrize("x", [random(2, 3), np.full((2, 2), np.nan), np.full((2, 2), np.inf), random(3)])
def test_matrices_without_eigenvalues_are_refused(x):
    with pytest.raises(InvalidArgument):
        run("Eig", x, Tout=dtypes.of_numpy(np.result_type(x.dtype, np.complex64)))


def test_eigenvalues_have_the_width_of_the_matrix():
    with pytest.raises(InvalidArgument, match="complex64"):
        run("Eig", random(2, 2), Tout=dtypes.complex128)


def test_only_pivots_are_perturbed():
    with pytest.raises(InvalidArgument, match="partial_pivoting"):
        run("TridiagonalSolve", random(3, 2), random(2, 1), perturb_singular=True, partial_pivoting=False)


def test_unknown_lengths_are_inferred():
    def shapes(op, attrs, *inputs):
        got = RULES[op].function(attrs, *(info(dtypes.float32, shape) for shape in inputs))
        return [x.shape for x in got] if isinstance(got, tuple) else got.shape

    assert shapes("Cholesky", {}, (None, None, 3)) == (None, 3, 3)
    assert shapes("Qr", {"full_matrices": False}, (7, None, 3)) == [(7, None, None), (7, None, 3)]
    assert shapes("MatrixTriangularSolve", {}, (1, 3, 3), (5, None, 2)) == (5, 3, 2)
    assert shapes("MatrixSolve", {}, None, (5, 3, 2)) is None
    assert shapes("MatrixSolveLs", {}, (None, 3, 4), (5, None, 2), ()) == (5, 4, 2)
    assert shapes("Lu", {"output_idx_type": dtypes.int32}, (None, None, 3)) == [(None, 3, 3), (None, 3)]
    assert shapes("SelfAdjointEig", {}, (7, None, None)) == (7, None, None)
    assert shapes("TridiagonalSolve", {}, (None, 3, 6), (2, None, 1)) == (2, 6, 1)
    assert shapes("TridiagonalMatMul", {}, None, (4, 1, 6), None, (None, None, 2)) == (4, 6, 2)
    assert shapes("BandedTriangularSolve", {}, (1, 3, None), (5, 4, 2)) == (5, 4, 2)
