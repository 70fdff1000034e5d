"""Crops by boxes, and projections: TensorFlow's semantics."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument, OutOfRange
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
RAMP = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)


def crop(image, boxes, which, size, **attrs):
    inputs = [image, np.array(boxes, np.float32), np.array(which, np.int32), np.array(size, np.int32)]
    return run_op("CropAndResize", inputs, {"T": dtypes.of_numpy(image.dtype)} | attrs)[0]


def project(images, transforms, size, fill=0.0, interpolation="BILINEAR", **attrs):
    inputs = [images, np.array(transforms, np.float32), np.array(size, np.int32), np.array(fill, np.float32)]
    types = {"dtype": dtypes.of_numpy(images.dtype), "interpolation": interpolation}
    return run_op("ImageProjectiveTransformV3", inputs, types | attrs)[0]


def translation(down, across):
    return [[1, 0, across, 0, 1, down, 0, 0]]


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_the_whole_image_as_a_crop_is_the_image_and_boxes_may_be_turned_round(method):
    np.testing.assert_array_equal(crop(RAMP, [[0, 0, 1, 1]], [0], (3, 4), method=method), RAMP)
    np.testing.assert_array_equal(crop(RAMP, [[1, 1, 0, 0]], [0], (3, 4), method=method), RAMP[:, ::-1, ::-1])


def test_a_single_output_lies_in_the_middle_and_what_lies_outside_is_extrapolated():
    assert crop(RAMP, [[0, 0, 1, 1]], [0], (1, 1)).item() == 5.5
    got = crop(RAMP, [[0, 0, 2, 1]], [0], (3, 1), extrapolation_value=-1)
    assert got.reshape(-1).tolist() == [1.5, 9.5, -1]


def test_crops_of_no_boxes_and_of_no_images():
    assert crop(RAMP, np.zeros((0, 4)), [], (2, 2)).shape == (0, 2, 2, 1)
    assert crop(RAMP[:0], np.zeros((0, 4)), [], (2, 2)).shape == (0, 2, 2, 1)


def test_crops_that_are_not_defined_are_refused():
    with pytest.raises(OutOfRange):
        crop(RAMP, [[0, 0, 1, 1]], [1], (2, 2))
    for boxes, which, size in (([[0, 0, np.nan, 1]], [0], (2, 2)), ([[0, 0, 1]], [0], (2, 2)),
                               ([[0, 0, 1, 1]], [0, 0], (2, 2)), ([[0, 0, 1, 1]], [0], (0, 2))):
        with pytest.raises(InvalidArgument):
            crop(RAMP, boxes, which, size)


@fast
@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from(["BILINEAR", "NEAREST"]))
def test_a_translation_by_whole_pixels_takes_them_as_a_padded_image_has_them(down, across, interpolation):
    for fill_mode, mode in (("CONSTANT", "constant"), ("NEAREST", "edge"), ("REFLECT", "symmetric")):
        want = np.pad(RAMP[0, :, :, 0], 9, mode)[9 + down : 12 + down, 9 + across : 13 + across]
        got = project(RAMP, translation(down, across), (3, 4), 0, interpolation, fill_mode=fill_mode)[0, :, :, 0]
        np.testing.assert_array_equal(got, want)


def test_wrapped_images_begin_anew():
    assert project(RAMP, translation(0, 2), (1, 4), fill_mode="WRAP").reshape(-1).tolist() == [2, 3, 0, 1]


def test_each_image_has_its_transform_and_integers_are_cut_off():
    images = np.concatenate([RAMP, RAMP]).astype(np.uint8)
    got = project(images, translation(0, 0) + translation(0, 0.5), (3, 4), 200)
    np.testing.assert_array_equal(got[0], images[0])
    assert got[1, 0, :, 0].tolist() == [0, 1, 2, 101]


def test_infinitely_far_is_outside():
    assert project(RAMP, [[1, 0, 0, 0, 1, 0, -1, 0]], (1, 2), 7).reshape(-1).tolist() == [0, 7]


def test_indices_of_boxes_are_looked_at_before_the_boxes():
    inputs = [np.zeros((1, 2, 2, 1), np.float32), np.full((1, 4), np.nan, np.float32), np.int32([4]), np.int32([2, 2])]
    with pytest.raises(OutOfRange):
        run_op("CropAndResize", inputs, {"T": dtypes.float32})


def test_projections_that_are_not_defined_are_refused():
    for transforms, size, attrs in ((translation(0, 0) * 2, (2, 2), {}), ([[1, 0]], (2, 2), {}),
                                    (translation(0, 0), (0, 2), {}),
                                    (translation(0, 0), (2, 2), {"fill_mode": "MIRROR"}),
                                    (translation(0, 0), (2, 2), {"interpolation": "CUBIC"})):
        with pytest.raises(InvalidArgument):
            project(RAMP, transforms, size, **attrs)
