"""Connectionist temporal classification against the sum over all paths, and the distance between sequences."""

from itertools import groupby, product

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import FailedPrecondition, InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=30)
TIME, CLASSES = 4, 3
LOGITS = np.random.default_rng(0).normal(0, 2, (TIME, 1, CLASSES))


def loss(logits, labels, length=TIME, **attrs):
    indices = np.array([[0, i] for i in range(len(labels))], np.int64).reshape(-1, 2)
    inputs = [logits, indices, np.array(labels, np.int32), np.array([length], np.int32)]
    return run_op("CTCLoss", inputs, {"T": dtypes.float64} | attrs)


def probabilities(logits, length, *, merge=True):
    """The probability of each sequence of labels: the sum over all paths to it."""
    y = np.exp(logits[:length, 0])
    y /= y.sum(1, keepdims=True)
    probability_of = {}
    for path in product(range(CLASSES), repeat=length):
        merged_path = [c for c, _ in groupby(path)] if merge else path
        labels = tuple(c for c in merged_path if c != CLASSES - 1)
        probability_of[labels] = probability_of.get(labels, 0) + np.prod(y[range(length), path])
    return probability_of


@pytest.mark.parametrize("merge", [True, False])
@fast
@given(st.lists(st.integers(0, CLASSES - 2), min_size=1, max_size=3), st.integers(3, TIME))
def test_a_loss_sums_over_all_paths(merge, labels, length):
    (got,) = loss(LOGITS, labels, length, ctc_merge_repeated=merge)[0]
    want = probabilities(LOGITS, length, merge=merge).get(tuple(labels), 0)
    np.testing.assert_allclose(np.exp(-got), want)


def test_the_gradient_is_that_of_the_loss_and_zero_after_the_end():
    gradient = loss(LOGITS, [0, 1], 3)[1]
    for index in np.ndindex(LOGITS.shape):
        step = np.zeros_like(LOGITS)
        step[index] = 1e-4
        slope = (loss(LOGITS + step, [0, 1], 3)[0] - loss(LOGITS - step, [0, 1], 3)[0]) / 2e-4
        np.testing.assert_allclose(gradient[index], slope[0], atol=1e-6)


def test_labels_without_a_path_cost_infinitely_and_longer_ones_may_be_skipped():
    value, gradient = loss(LOGITS, [0, 0, 1], 3)
    assert value.tolist() == [np.inf]
    np.testing.assert_allclose(gradient[:3].sum(2), 1)
    value, gradient = loss(LOGITS, [0, 1, 0], 2, ignore_longer_outputs_than_inputs=True)
    assert not value.any()
    assert not gradient.any()


def test_labels_may_be_collapsed_and_end_in_null_labels():
    want = loss(LOGITS, [0, 1])[0]
    assert loss(LOGITS, [0, 0, 1], preprocess_collapse_repeated=True)[0] == want
    assert loss(LOGITS, [0, 1, CLASSES - 1])[0] == want


@pytest.mark.parametrize(("labels", "length"), [([], 4), ([0], 5), ([0], -1), ([0, 1], 1), ([-1], 4), ([2, 1], 4)])
def test_labels_that_cannot_be_are_refused(labels, length):
    with pytest.raises(InvalidArgument):
        loss(LOGITS, labels, length)


def test_label_indices_are_in_order_and_within_the_batch():
    for indices in ([[0, 1], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [1, 0]], [[0, -1], [0, 0]]):
        inputs = [LOGITS, np.array(indices, np.int64), np.array([0, 1], np.int32), np.array([4], np.int32)]
        with pytest.raises(InvalidArgument):
            run_op("CTCLoss", inputs, {"T": dtypes.float64})


def beam_search(logits, lengths, width, paths, **attrs):
    outputs = run_op("CTCBeamSearchDecoder", [logits, np.array(lengths, np.int32)],
                     {"T": dtypes.float64, "beam_width": width, "top_paths": paths} | attrs)
    return [tuple(v.tolist()) for v in outputs[paths : 2 * paths]], outputs[-1]


def test_a_beam_that_holds_everything_finds_the_most_likely_sequences():
    decoded, log_probability = beam_search(LOGITS, [TIME], 100, 5, merge_repeated=False)
    all_found = sorted(probabilities(LOGITS, TIME).items(), key=lambda item: -item[1])[:5]
    assert decoded == [labels for labels, _ in all_found]
    np.testing.assert_allclose(np.exp(log_probability), [[p for _, p in all_found]])


def test_a_beam_search_finds_no_more_paths_than_there_are():
    for logits, length, width, paths in ((LOGITS, 4, 1, 2), (LOGITS[:1], 1, 10, 5), (LOGITS[:0], 0, 1, 1)):
        with pytest.raises(InvalidArgument):
            beam_search(logits, [length], width, paths)
    with pytest.raises(FailedPrecondition):
        beam_search(LOGITS, [5], 1, 1)
    assert beam_search(LOGITS, [0], 1, 1)[0] == [()]


def test_a_greedy_decoder_takes_the_best_class_at_each_time():
    best = np.array([[0, 0], [0, 1], [2, 0], [0, 2], [1, 2]])  # time, example; class 2 is blank
    logits = np.eye(3)[best]
    lengths = np.array([5, 3], np.int32)
    for merge, rows in ((False, [[0, 0, 0, 1], [0, 1, 0]]), (True, [[0, 0, 1], [0, 1, 0]])):
        indices, values, shape, score = run_op("CTCGreedyDecoder", [logits, lengths],
                                               {"T": dtypes.float64, "merge_repeated": merge})
        assert values.tolist() == [label for row in rows for label in row]
        assert indices.tolist() == [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
        assert shape.tolist() == [2, max(map(len, rows))]
        assert score.tolist() == [[-5], [-3]]


def sparse(rows):
    indices = np.array([[i, j] for i, row in enumerate(rows) for j in range(len(row))], np.int64).reshape(-1, 2)
    values = np.array([ord(letter) for row in rows for letter in row], np.int32)
    return [indices, values, np.array([len(rows), 10], np.int64)]


def distances(hypotheses, truths, **attrs):
    return run_op("EditDistance", [*sparse(hypotheses), *sparse(truths)], {"T": dtypes.int32} | attrs)[0].tolist()


def test_a_distance_counts_insertions_deletions_and_substitutions():
    assert distances(["kitten", "abc", "", "ab"], ["sitting", "abc", "xyz", ""], normalize=False) == [3, 0, 3, 2]
    assert distances(["abxd", "", "a"], ["abcd", "", ""]) == [0.25, 0, np.inf]


def levenshtein(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(levenshtein(a[1:], b) + 1, levenshtein(a, b[1:]) + 1, levenshtein(a[1:], b[1:]) + (a[0] != b[0]))


@fast
@given(st.text("abc", max_size=5), st.text("abc", max_size=5))
def test_a_distance_is_levenshteins(hypothesis, truth):
    assert distances([hypothesis], [truth], normalize=False) == [levenshtein(hypothesis, truth)]


@fast
@given(st.text("abc", max_size=5), st.text("abc", max_size=5))
def test_a_common_end_however_long_adds_no_distance(hypothesis, truth):
    assert distances([hypothesis + "z" * 70], [truth + "z" * 70], normalize=False) == distances(
        [hypothesis], [truth], normalize=False)


def test_sequences_of_which_one_tensor_has_more_are_compared_with_nothing():
    assert distances(["a", "b"], ["a"], normalize=False) == [0, 1]
    assert distances(["a"], ["a", "bc"], normalize=False) == [0, 2]


def test_sequences_that_do_not_fit_are_refused():
    good = sparse(["ab"])
    for number, bad in ((0, good[0][:1]), (2, np.array([1], np.int64)), (2, np.array([0, 9], np.int64)),
                        (0, good[0] + 7), (2, np.array([-1, 9], np.int64))):
        inputs = [*good, *sparse([""])]
        inputs[number] = bad
        if number == 2 and bad[0] == 0:
            inputs[5] = bad
        with pytest.raises(InvalidArgument):
            run_op("EditDistance", inputs, {"T": dtypes.int32})
