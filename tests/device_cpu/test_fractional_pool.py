"""Pooling into random regions: the laws of sequences, and gradients that give back each region's own."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st


def pool(kind, x, ratio=(1.0, 1.5, 1.5, 1.0), **attrs):
    return outputs(f"Fractional{kind}Pool", x, pooling_ratio=ratio, **attrs)


def image(*shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-99, 99, shape).astype(dtype)


@settings(max_examples=50)
@given(st.integers(2, 60), st.floats(1, 3), st.booleans(), st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1))
def test_a_sequence_covers_all_rows_with_regions_of_two_sizes(length, ratio, pseudo_random, seed, seed2):
    ratio = min(ratio, length)
    _, rows, columns = pool("Max", image(1, length, length, 1), (1.0, ratio, ratio, 1.0), pseudo_random=pseudo_random,
                            deterministic=True, seed=seed, seed2=seed2)
    for sequence in (rows, columns):
        sizes = np.diff(sequence)
        assert (sequence[0], sequence[-1]) == (0, length)
        assert set(sizes) <= {length // len(sizes), length // len(sizes) + 1}


@pytest.mark.parametrize("pseudo_random", [False, True])
def test_deterministic_ops_draw_the_same_in_each_run_and_others_do_not(pseudo_random):
    x = image(1, 70, 70, 1)
    drawn = [[pool("Avg", x, pseudo_random=pseudo_random, **attrs)[1].tolist() for _ in range(4)]
             for attrs in ({"deterministic": True, "seed": 3}, {})]
    assert len({tuple(sequence) for sequence in drawn[0]}) == 1
    assert len({tuple(sequence) for sequence in drawn[1]}) > 1


@pytest.mark.parametrize(("pseudo_random", "ratios", "lengths", "columns"), [  # recorded from TensorFlow
    (False, (1.44, 1.73), (2, 31), [0, 2, 4, 5, 7, 9, 11, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 31]),
    (False, (1.5, 1.3), (4, 9), [0, 2, 4, 5, 7, 8, 9]),
    (True, (1.44, 1.73), (2, 31), [0, 2, 4, 5, 7, 9, 11, 13, 15, 16, 18, 20, 22, 24, 26, 27, 29, 31]),
    (True, (1.5, 1.3), (4, 9), [0, 2, 3, 5, 6, 8, 9]),
    (True, (2, 2), (4, 4), [0, 2, 4]),
])
@pytest.mark.parametrize("kind", ["Max", "Avg"])
def test_rows_of_one_size_take_random_numbers_too(kind, pseudo_random, ratios, lengths, columns):
    _, rows, drawn = pool(kind, image(1, *lengths, 1), (1, *ratios, 1), pseudo_random=pseudo_random, deterministic=True,
                          seed=3, seed2=5)
    assert rows.tolist() == [*range(0, lengths[0] + 1, 2)]
    assert drawn.tolist() == columns


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_pools_are_the_largest_and_the_mean_of_their_regions(overlapping, dtype):
    x = image(2, 7, 9, 2, dtype=dtype)
    for kind, reduce in (("Max", np.max), ("Avg", np.mean)):
        y, rows, columns = pool(kind, x, overlapping=overlapping, deterministic=True, seed=1)
        for i, j in np.ndindex(y.shape[1:3]):
            region = x[:, rows[i] : rows[i + 1] + overlapping, columns[j] : columns[j + 1] + overlapping]
            np.testing.assert_allclose(y[:, i, j], np.asarray(reduce(region, (1, 2))).astype(dtype), rtol=1e-5)


@pytest.mark.parametrize("overlapping", [False, True])
def test_gradients_are_the_limits_of_differences(overlapping):
    x, change = image(2, 7, 9, 2, dtype=np.float64), image(2, 7, 9, 2, dtype=np.float64) / 1e6
    x += np.arange(x.size).reshape(x.shape) / 1e3  # no two elements are equal
    attrs = {"overlapping": overlapping, "deterministic": True, "seed": 5}
    for kind in ("Max", "Avg"):
        (low, rows, columns), (high, *_) = pool(kind, x - change, **attrs), pool(kind, x + change, **attrs)
        y, weights = pool(kind, x, **attrs)[0], image(*low.shape, dtype=np.float64)
        before = (x, y) if kind == "Max" else (np.int64(x.shape),)
        grad = outputs(f"Fractional{kind}PoolGrad", *before, weights, rows, columns, overlapping=overlapping,
                       T=dtypes.float64)[0]
        np.testing.assert_allclose((grad * change).sum(), (weights * (high - low)).sum() / 2, rtol=1e-6)


def test_sums_of_integers_wrap_around_as_in_tensorflow():
    for dtype in (np.int32, np.int64):
        x = np.full((1, 2, 2, 1), np.iinfo(dtype).max, dtype)
        assert pool("Avg", x, (1.0, 2.0, 2.0, 1.0))[0].item() == -1


@pytest.mark.parametrize("rows", [[-1, 2, 4], [0, 4], [[0, 2, 4]], []])
@pytest.mark.parametrize("kind", ["Max", "Avg"])
def test_short_sequences_and_negative_elements_are_refused(kind, rows):
    x, y, columns = np.zeros((1, 4, 4, 1)), np.zeros((1, 2, 2, 1)), np.int64([0, 2, 4])
    before = (x, y) if kind == "Max" else (np.int64(x.shape),)
    with pytest.raises(InvalidArgument):
        outputs(f"Fractional{kind}PoolGrad", *before, y, np.int64(rows), columns, T=dtypes.float64)


def average_gradient(rows, columns, gradient, *, overlapping=False, sizes=(1, 2, 4, 1)):
    inputs = [np.int64(sizes), np.array(gradient, float)[None, ..., None], np.int64(rows), np.int64(columns)]
    return outputs("FractionalAvgPoolGrad", *inputs, overlapping=overlapping, T=dtypes.float64)[0][0, ..., 0].tolist()


def test_a_longer_sequence_has_elements_without_a_use():
    assert average_gradient([0, 2], [0, 1, 2, 4], [[1, 2]]) == [[0.5, 1, 0, 0]] * 2
    assert average_gradient([0, 2], [0, 1, 2, 4], [[1, 2]], overlapping=True) == [[0.25, 0.75, 0.5, 0]] * 2


def test_a_region_outside_of_the_image_gets_nothing():
    assert average_gradient([0, 2, 4], [0, 1], [[1], [2]], sizes=(1, 1, 4, 1)) == [[1, 0, 0, 0]]
    assert average_gradient([1, 2], [3, 9], [[1]]) == [[0] * 4, [0, 0, 0, 1]]
    assert average_gradient([0, 2], [0, 2, 1, 4], [[1, 2, 3]]) == [[0.25, 0.75, 0.5, 0.5]] * 2


def test_the_largest_element_of_each_region_gets_its_gradient():
    x, gradient = np.arange(1, 9.0).reshape(1, 2, 4, 1), np.arange(1, 4.0).reshape(1, 1, 3, 1)

    def of_columns(*columns, largest=(5, 6, 8)):
        y = np.array(largest, float).reshape(1, 1, -1, 1)
        inputs = [x, y, gradient[:, :, : len(largest)], np.int64([0, 2]), np.int64(columns)]
        return outputs("FractionalMaxPoolGrad", *inputs)[0][0, 1, :, 0].tolist()

    assert of_columns(0, 1, 2, 4) == of_columns(0, 1, 2, 9) == [1, 2, 0, 3]
    assert of_columns(0, 1, 2, 4, largest=(5, 6)) == [1, 2, 0, 0]
    for columns, largest in (((0, 1, 2, 4), (5, 6, 7)), ((0, 1, 1, 4), (5, 6, 8)), ((0, 1, 9, 9), (5, 8, 8))):
        with pytest.raises(InvalidArgument):
            of_columns(*columns, largest=largest)


@pytest.mark.parametrize(("shape", "ratio", "attrs", "error"), [
    ((1, 4, 4, 1), (1, 0.5, 1, 1), {}, InvalidArgument), ((1, 4, 4, 1), (1, np.nan, 1, 1), {}, InvalidArgument),
    ((1, 4, 4, 1), (1, 5, 1, 1), {}, InvalidArgument), ((1, 4, 4, 1), (1, 1, 1, 1, 1), {}, InvalidArgument),
    ((1, 4, 4, 1), (2, 1, 1, 1), {}, Unimplemented), ((1, 4, 4, 1), (1, 1, 1, 1), {"seed": 1}, InvalidArgument),
    ((4, 4, 1), (1, 1, 1, 1), {}, InvalidArgument), ((0, 4, 4, 1), (1, 1, 1, 1), {}, InvalidArgument),
])
def test_ratios_and_images_that_do_not_fit_are_refused(shape, ratio, attrs, error):
    with pytest.raises(error):
        pool("Max", np.zeros(shape, np.float32), tuple(map(float, ratio)), **attrs)


def test_an_output_that_is_not_the_largest_is_refused():
    x, columns = image(1, 4, 4, 1), np.int64([0, 2, 4])
    with pytest.raises(InvalidArgument, match="largest element"):
        outputs("FractionalMaxPoolGrad", x, np.full((1, 2, 2, 1), 1e9, np.float32), np.zeros((1, 2, 2, 1), np.float32),
                columns, columns)
