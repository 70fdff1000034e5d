"""Factorisations and solutions: their equations, and the refused inputs."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES

TYPES = [np.float32, np.float64, np.complex64, np.complex128]


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


def test_the_determinant_of_an_empty_matrix_is_one():
    assert run("MatrixDeterminant", random(2, 0, 0)).tolist() == [1, 1]
    assert run("MatrixSolve", random(0, 0), random(0, 2)).shape == (0, 2)
    assert run("MatrixSolve", np.zeros((2, 2), np.float32), random(2, 0)).shape == (2, 0)


def test_vectors_that_nobody_asked_for_are_empty():
    assert [x.shape for x in run("Svd", random(3, 2), compute_uv=False)] == [(2,), (0,), (0,)]
    assert [x.shape for x in run("SelfAdjointEigV2", np.eye(3), compute_v=False)] == [(3,), (0,)]


@pytest.mark.parametrize(("op", "inputs"), [
    ("MatrixInverse", [np.zeros((2, 2))]), ("MatrixInverse", [np.full((2, 2), np.nan)]),
    ("MatrixInverse", [random(2, 3)]), ("Cholesky", [random(3)]), ("MatrixDeterminant", [random(2, 3)]),
    ("MatrixSolve", [np.zeros((2, 2)), np.ones((2, 1))]), ("MatrixSolve", [random(2, 2), random(3, 1)]),
    ("MatrixSolve", [random(1, 2, 2), random(3, 2, 1)]), ("MatrixSolve", [random(2, 2), random(2)]),
    ("MatrixTriangularSolve", [random(2, 2, 2), random(3, 2, 1)]), ("SelfAdjointEigV2", [np.full((2, 2), np.nan)]),
])
def test_a_matrix_without_a_solution_or_of_another_shape_is_refused(op, inputs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs)


def test_unknown_lengths_are_inferred():
    def shapes(op, attrs, *inputs):
        got = RULES[op].function(attrs, *(info(dtypes.float32, shape) for shape in inputs))
        return [x.shape for x in got] if isinstance(got, tuple) else got.shape

    assert shapes("Cholesky", {}, (None, None, 3)) == (None, 3, 3)
    assert shapes("Qr", {"full_matrices": False}, (7, None, 3)) == [(7, None, None), (7, None, 3)]
    assert shapes("MatrixTriangularSolve", {}, (1, 3, 3), (5, None, 2)) == (5, 3, 2)
    assert shapes("MatrixSolve", {}, None, (5, 3, 2)) is None
