"""Non-maximum suppression and drawn boxes: TensorFlow's semantics."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
INF, NAN = np.inf, np.nan
F32 = np.float32


def suppress(op, boxes, scores, largest_count, *thresholds, **attrs):
    boxes, scores = np.asarray(boxes, F32).reshape(-1, 4), np.asarray(scores, F32)
    types = {"T": dtypes.float32, "T_threshold": dtypes.float32}
    inputs = [boxes, scores, np.array(largest_count, np.int32), *(np.array(t, F32) for t in thresholds)]
    return run_op(op, inputs, types | attrs)


def naive(boxes, scores, largest_count, threshold, least):
    def iou(a, b):
        low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
        common = np.prod(np.maximum(high - low, 0))
        return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)

    selected = []
    for i in sorted(np.flatnonzero(scores > least), key=lambda i: -scores[i]):
        if len(selected) < largest_count and all(iou(boxes[i], boxes[j]) <= threshold for j in selected):
            selected.append(i)
    return selected


def random_boxes(seed, count):
    rng = np.random.default_rng(seed)
    first = rng.random((count, 2))
    return np.concatenate([first, first + 0.05 + 0.4 * rng.random((count, 2))], 1).astype(F32), rng.random(count, F32)


@fast
@given(st.integers(0, 99), st.sampled_from([1, 5, 20]), st.sampled_from([0, 3, 500]),
       st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.5]))
def test_suppression_keeps_the_best_of_those_that_overlap(seed, count, largest_count, threshold, least):
    boxes, scores = random_boxes(seed, count)
    want = naive(boxes, scores, largest_count, threshold, least)
    assert suppress("NonMaxSuppressionV3", boxes, scores, largest_count, threshold, least)[0].tolist() == want
    turned = boxes[:, [2, 1, 0, 3]]
    assert suppress("NonMaxSuppressionV3", turned, scores, largest_count, threshold, least)[0].tolist() == want


def test_many_candidates_are_compared_together():
    boxes, scores = random_boxes(0, 600)
    boxes[:, 2:] -= 0.05  # most are small
    want = naive(boxes, scores, 300, 0.1, 0.2)
    assert suppress("NonMaxSuppressionV3", boxes, scores, 300, 0.1, 0.2)[0].tolist() == want


def test_padding_gives_zeros_and_the_number_of_valid_ones():
    boxes, scores = random_boxes(0, 3)
    indices, count = suppress("NonMaxSuppressionV4", boxes, scores, 5, 1, -1, pad_to_max_output_size=True)
    assert (indices.shape, count) == ((5,), 3)
    indices, selected_scores, count = suppress(
        "NonMaxSuppressionV5", boxes, scores, 5, 1, -1, 0, pad_to_max_output_size=True)
    np.testing.assert_array_equal(selected_scores, [*scores[indices[:3]], 0, 0])


def test_soft_suppression_lowers_scores():
    same = [[0, 0, 1, 1]] * 2
    indices, selected_scores, _ = suppress("NonMaxSuppressionV5", same, [0.9, 0.8], 2, 0.5, 0, 0.5)
    assert indices.tolist() == [0, 1]
    np.testing.assert_allclose(selected_scores, [0.9, 0.8 * np.exp(-1)], rtol=1e-6)


def test_nan_scores_are_no_candidates_and_equal_ones_keep_their_order():
    apart = [[i, 0, i + 1, 1] for i in range(4)]
    assert suppress("NonMaxSuppressionV2", apart, [1, NAN, 2, 2], 9, 0.5)[0].tolist() == [2, 3, 0]
    assert suppress("NonMaxSuppressionV3", apart, [1, INF, -INF, 2], 9, 0.5, -INF)[0].tolist() == [1, 3, 0]


def test_boxes_without_area_overlap_nothing():
    assert suppress("NonMaxSuppressionV2", [[0, 0, 0, 0]] * 2, [1, 2], 9, 0)[0].tolist() == [1, 0]


def test_overlaps_may_be_given():
    overlaps = np.array([[1, 0.6, 0], [0.6, 1, 0.2], [0, 0.2, 1]], F32)
    inputs = [overlaps, np.array([3, 2, 1], F32), np.array(9, np.int32), F32(0.5), F32(0)]
    assert run_op("NonMaxSuppressionWithOverlaps", inputs, {})[0].tolist() == [0, 2]
    inputs[3] = F32(np.nan)  # recorded: with this nothing is alike enough not to be
    assert run_op("NonMaxSuppressionWithOverlaps", inputs, {})[0].tolist() == [0]


@pytest.mark.parametrize("pad_per_class", [False, True])
def test_combined_suppression_is_that_of_each_class_best_first(pad_per_class):
    boxes, _ = random_boxes(1, 30)
    scores = np.random.default_rng(2).random((1, 30, 3), F32)
    inputs = [boxes[None, :, None] * 2, scores, np.int32(4), np.int32(20), F32(0.3), F32(0.4)]
    attrs = {"pad_per_class": pad_per_class, "clip_boxes": True}
    selected_boxes, best, classes, count = run_op("CombinedNonMaxSuppression", [np.asarray(x) for x in inputs], attrs)
    want = sorted(((scores[0, i, c], c, i) for c in range(3) for i in naive(boxes, scores[0, :, c], 4, 0.3, 0.4)),
                  reverse=True)
    n = len(want)
    assert (count.item(), best.shape[1]) == (n, 12 if pad_per_class else 20)
    np.testing.assert_array_equal(best[0, :n], [w[0] for w in want])
    np.testing.assert_array_equal(classes[0, :n], [w[1] for w in want])
    np.testing.assert_array_equal(selected_boxes[0, :n], np.clip(boxes[[w[2] for w in want]] * 2, 0, 1))
    assert not selected_boxes[0, n:].any()


def test_suppression_that_is_not_defined_is_refused():
    boxes, scores = random_boxes(0, 3)
    for case in ((boxes, scores, -1, 0.5, 0), (boxes, scores, 1, 1.5, 0), (boxes, scores, 1, NAN, 0),
                 (boxes, scores[:2], 1, 0.5, 0), (boxes, scores, [1], 0.5, 0), (boxes, scores, 1, [0.5], 0)):
        with pytest.raises(InvalidArgument):
            suppress("NonMaxSuppressionV3", *case)
    with pytest.raises(InvalidArgument, match="sigma"):
        suppress("NonMaxSuppressionV5", boxes, scores, 1, 0.5, 0, -1)


def draw(images, boxes, *colors):
    inputs = [images, np.array(boxes, F32), *(np.array(c, F32) for c in colors)]
    return run_op(f"DrawBoundingBoxes{'V2' if colors else ''}", inputs, {"T": dtypes.of_numpy(images.dtype)})[0]


def test_boxes_are_outlined_where_they_lie_in_the_image():
    got = draw(np.zeros((1, 5, 5, 1), np.float16), [[[0.25, 0.25, 0.75, 2], [NAN] * 4, [2, 2, 3, 3]]])
    want = np.zeros((5, 5))
    want[1, 1:] = want[3, 1:] = want[1:4, 1] = 1
    np.testing.assert_array_equal(got[0, :, :, 0], want)


def test_colors_take_turns():
    got = draw(np.zeros((1, 1, 3, 3), F32), [[[0, i / 2, 0, i / 2] for i in range(3)]], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(got[0, 0], [[1, 2, 3], [4, 5, 6], [1, 2, 3]])
    np.testing.assert_array_equal(draw(np.zeros((1, 1, 1, 3), F32), [[[0, 0, 0, 0]]])[0, 0, 0], [1, 1, 0])


def test_drawings_that_are_not_defined_are_refused():
    for images, boxes, *colors in (((1, 2, 2, 2), (1, 1, 4)), ((1, 2, 2, 3), (2, 1, 4)), ((1, 2, 2, 3), (1, 1, 5)),
                                   ((1, 2, 2, 3), (1, 1, 4), (1, 2))):
        with pytest.raises(InvalidArgument):
            draw(np.zeros(images, F32), np.zeros(boxes), *(np.zeros(c) for c in colors))
