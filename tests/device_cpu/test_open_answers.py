"""Two right answers of an op that leaves something open agree, and a wrong one is found."""

import numpy as np
import pytest
from workers.open_answers import is_as_exact, is_same_decomposition, without_noise

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 3))
SYMMETRIC = X + X.swapaxes(-2, -1)


def eigh(x):
    return list(np.linalg.eigh(x))


def eig(x):
    return [out.astype(np.complex128) for out in np.linalg.eig(x)]


def svd(x):
    u, s, v = np.linalg.svd(x)
    return [s, u, v.swapaxes(-2, -1).conj()]


def first_version(x):
    values, vectors = np.linalg.eigh(x)
    return [np.concatenate([values[..., None, :], vectors], -2)]


def negate(columns, index, outputs):
    """The outputs with another sign of some columns of the output at `index`; the first version's values stay."""
    changed = [out.copy() for out in outputs]
    changed[index][..., -3:, columns] *= -1
    return changed


@pytest.mark.parametrize(("op", "decompose", "x", "index"), [
    ("SelfAdjointEigV2", eigh, SYMMETRIC, 1), ("BatchSelfAdjointEigV2", eigh, SYMMETRIC, 1),
    ("SelfAdjointEig", first_version, SYMMETRIC, 0), ("Eig", eig, X, 1), ("Eig", eig, X + 1j * SYMMETRIC, 1),
])
def test_eigenvectors_are_right_up_to_their_sign(op, decompose, x, index):
    answer, attrs = decompose(x), {} if op == "SelfAdjointEig" else {"compute_v": True}
    assert is_same_decomposition(op, attrs, x, negate([0, 2], index, answer), answer)
    wrong = [out.copy() for out in answer]
    wrong[index][0, -1, 0] += 0.01
    assert not is_same_decomposition(op, attrs, x, wrong, answer)
    values = [out.copy() for out in answer]
    values[0][(1, 0, 1) if index == 0 else (1, 1)] += 0.01
    assert not is_same_decomposition(op, attrs, x, values, answer)


def test_phases_and_bases_of_equal_eigenvalues_are_free():
    (values, vectors), phases = eig(X), np.exp([1j, 2j, 3j])
    assert is_same_decomposition("Eig", {"compute_v": True}, X, [values, vectors * phases], [values, vectors])
    ones, basis = np.ones((1, 3)), np.linalg.qr(X[:1])[0]
    identity = np.eye(3)[None]
    assert is_same_decomposition("SelfAdjointEigV2", {"compute_v": True}, identity, [ones, basis], [ones, identity])
    same_twice = [ones.astype(complex), identity[..., [0, 0, 1]].astype(complex)]
    assert not is_same_decomposition("Eig", {"compute_v": True}, identity, same_twice,
                                     [ones.astype(complex), identity.astype(complex)])


def test_only_real_matrices_have_their_eigenvalues_in_any_order():
    for x, is_same in ((X, True), (X + 1j * SYMMETRIC, False)):
        values, vectors = eig(x)
        reversed_answer = [values[..., ::-1], vectors[..., ::-1]]
        assert is_same_decomposition("Eig", {"compute_v": True}, x, reversed_answer, [values, vectors]) is is_same


def test_singular_vectors_change_their_sign_together():
    answer = svd(X)
    both = negate([1], 2, negate([1], 1, answer))
    assert is_same_decomposition("Svd", {"compute_uv": True}, X, both, answer)
    assert not is_same_decomposition("Svd", {"compute_uv": True}, X, negate([1], 1, answer), answer)


def test_vectors_that_nobody_asked_for_are_not_compared():
    values = eigh(SYMMETRIC)[0]
    unset = np.float64(7)
    assert is_same_decomposition("SelfAdjointEigV2", {"compute_v": False}, SYMMETRIC, [values, np.zeros(0)],
                                 [values, unset])
    assert not is_same_decomposition("SelfAdjointEigV2", {"compute_v": False}, SYMMETRIC, [values + 1, np.zeros(0)],
                                     [values, unset])


def test_a_matrix_with_nan_has_equal_answers_beside_one_with_free_signs():
    x, answer = X.copy(), svd(X)
    x[1, 0, 0] = np.nan
    for out in answer:
        out[1] = np.nan
    assert is_same_decomposition("Svd", {"compute_uv": True}, x, negate([0], 2, negate([0], 1, answer)), answer)
    wrong = [out.copy() for out in answer]
    wrong[1][1] = 0
    assert not is_same_decomposition("Svd", {"compute_uv": True}, x, wrong, answer)


def test_other_ops_have_one_answer():
    assert not is_same_decomposition("Qr", {}, X, [-X], [X])


def test_an_element_that_differs_in_one_answer_is_noise():
    ours, others = [np.array([1.0, 5, 9, 8])], [[np.array([1.0, 2, 4, 4])], [np.array([1.0, 2, 3, 5])]]
    assert without_noise([np.array([1.0, 2, 3, 4])], others, ours)[0].tolist() == [1, 2, 9, 8]


def test_an_error_of_the_size_of_the_other_is_rounding():
    exact = [np.array([1.0, 100])]
    assert is_as_exact([np.array([1.003, 100])], [np.array([1, 100.1])], exact)
    assert not is_as_exact([np.array([1.1, 100])], [np.array([1, 100.1])], exact)
    assert not is_as_exact([np.array([np.nan, 100])], [np.array([1, 100.1])], exact)
