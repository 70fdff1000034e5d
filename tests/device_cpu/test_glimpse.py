"""Glimpses: windows of images, and the noise around them."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument

VERSIONS = ["ExtractGlimpse", "ExtractGlimpseV2"]


def glimpse(op, x, size, offsets, noise="zero", **attrs):
    return outputs(op, np.float32(x), np.int32(size), np.float32(offsets), noise=noise, uniform_noise=False, **attrs)[0]


def image(*shape):
    return np.random.default_rng(0).normal(3, 2, shape).astype(np.float32)


@pytest.mark.parametrize("op", VERSIONS)
def test_the_middle_of_an_image_is_at_offset_0(op):
    x = image(1, 6, 8, 2)
    np.testing.assert_array_equal(glimpse(op, x, [2, 4], [[0, 0]]), x[:, 2:4, 2:6])


def test_the_second_version_counts_pixels_from_the_corner():
    x = image(2, 6, 8, 1)
    got = glimpse("ExtractGlimpseV2", x, [2, 3], [[1, 2], [4, 5]], centered=False, normalized=False)
    np.testing.assert_array_equal(got, np.stack([x[0, 1:3, 2:5], x[1, 4:6, 5:8]]))


@pytest.mark.parametrize("op", VERSIONS)
@pytest.mark.parametrize("noise", ["uniform", "gaussian", ""])
def test_noise_has_the_range_of_its_channel(op, noise):
    x = image(1, 9, 9, 2) * [1, 100]
    got = glimpse(op, x, [60, 60], [[0, 0]], noise, centered=False)[0]
    rows = got[40:] if op[-1] == "e" else got[9:]
    for channel in range(2):
        drawn, own = rows[..., channel], x[..., channel]
        assert drawn.min() >= own.min() - 1e-4
        assert drawn.max() <= own.max() + 1e-4
        assert drawn.std() > own.std() / 3


@pytest.mark.parametrize("op", VERSIONS)
@pytest.mark.parametrize("offset", [np.nan, np.inf, -np.inf, 1e30, 9, -9])
def test_windows_outside_of_the_image_are_noise_alone(op, offset):
    assert not glimpse(op, np.ones((1, 4, 4, 1)), [2, 2], [[offset, 0]]).any()


@pytest.mark.parametrize("op", VERSIONS)
@pytest.mark.parametrize("noise", ["zero", "uniform", "gaussian"])
def test_images_and_windows_may_be_empty(op, noise):
    for shape, size in (((1, 0, 4, 2), [2, 2]), ((1, 4, 4, 0), [2, 2]), ((0, 4, 4, 1), [2, 2]), ((1, 4, 4, 1), [0, 3])):
        got = glimpse(op, np.ones(shape), size, np.zeros((shape[0], 2)), noise)
        assert got.shape == (shape[0], *size, shape[3])
        assert not got.any()


@pytest.mark.parametrize(("shape", "size", "offsets", "noise"), [
    ((4, 4, 1), [2, 2], [[0, 0]], "zero"), ((1, 4, 4, 1), [2], [[0, 0]], "zero"), ((1, 4, 4, 1), 2, [[0, 0]], "zero"),
    ((1, 4, 4, 1), [2, -1], [[0, 0]], "zero"), ((1, 4, 4, 1), [2, 2], [0, 0], "zero"),
    ((1, 4, 4, 1), [2, 2], [[0, 0]] * 2, "zero"), ((1, 4, 4, 1), [2, 2], [[0, 0]], "other"),
])
def test_arguments_that_do_not_fit_are_refused(shape, size, offsets, noise):
    for op in VERSIONS:
        with pytest.raises(InvalidArgument):
            glimpse(op, np.ones(shape), size, offsets, noise)


def test_uniform_noise_is_no_other_noise():
    with pytest.raises(InvalidArgument, match="uniform_noise"):
        outputs("ExtractGlimpse", image(1, 4, 4, 1), np.int32([2, 2]), np.zeros((1, 2), np.float32), noise="zero")
