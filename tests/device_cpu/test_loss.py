"""Cross entropies: against their definition and finite differences."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES

LOGITS = np.random.default_rng(0).normal(0, 3, (3, 4))


def soft(logits, labels, dtype=dtypes.float64):
    return run_op("SoftmaxCrossEntropyWithLogits", [logits, labels], {"T": dtype})


def sparse(logits, labels):
    types = {"T": dtypes.of_numpy(logits.dtype), "Tlabels": dtypes.of_numpy(labels.dtype)}
    return run_op("SparseSoftmaxCrossEntropyWithLogits", [logits, labels], types)


def test_a_loss_is_the_cross_entropy_of_labels_and_softmax():
    labels = np.random.default_rng(1).random((3, 4))
    loss, _ = soft(LOGITS, labels)
    log_softmax = LOGITS - np.log(np.exp(LOGITS).sum(1, keepdims=True))
    np.testing.assert_allclose(loss, -(labels * log_softmax).sum(1))


def test_the_gradient_is_that_of_the_loss():
    labels = np.eye(4)[[1, 3, 0]]
    _, gradient = soft(LOGITS, labels)
    for row, column in np.ndindex(3, 4):
        up, down = LOGITS.copy(), LOGITS.copy()
        up[row, column] += 1e-4
        down[row, column] -= 1e-4
        slope = (soft(up, labels)[0] - soft(down, labels)[0]).sum() / 2e-4
        np.testing.assert_allclose(gradient[row, column], slope, atol=1e-6)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_labels_are_one_hot(index):
    labels = np.array([1, 3, 0], index)
    for got, want in zip(sparse(LOGITS, labels), soft(LOGITS, np.eye(4)[labels]), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (4,), (1,)])
def test_logits_and_labels_are_broadcast(shape):
    logits = np.random.default_rng(2).normal(size=shape)
    for got, want in zip(soft(logits, LOGITS), soft(np.broadcast_to(logits, (3, 4)), LOGITS), strict=True):
        np.testing.assert_array_equal(got, want)


def test_large_logits_do_not_overflow():
    loss, _ = sparse(np.array([[1e4, 0]], np.float32), np.array([1], np.int32))
    assert loss.tolist() == [1e4]


def test_a_loss_without_classes_is_empty_and_refuses_sparse_labels():
    assert soft(np.empty((2, 0)), np.empty((2, 0)))[0].tolist() == [0, 0]
    with pytest.raises(InvalidArgument, match="at least one class"):
        sparse(np.empty((2, 0)), np.zeros(2, np.int32))


def test_labels_that_do_not_fit_are_refused():
    for labels in ([0, 4, 1], [0, -1, 1], [0, 1]):
        with pytest.raises(InvalidArgument):
            sparse(LOGITS, np.array(labels, np.int32))
    for logits, labels in ((LOGITS, LOGITS[:2]), (LOGITS[0], LOGITS[0]), (LOGITS[None], LOGITS)):
        with pytest.raises(InvalidArgument):
            soft(logits, labels)


def test_one_input_tells_the_lengths_that_the_other_leaves_open():
    loss, gradient = RULES["SparseSoftmaxCrossEntropyWithLogits"].function(
        {}, info(dtypes.float32, (None, 4)), info(dtypes.int32, (3,)))
    assert (loss.shape, gradient.shape) == ((3,), (3, 4))
