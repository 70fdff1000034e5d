"""The kernels of TFRT's residual network: flatten and max pooling."""

from __future__ import annotations

import numpy as np
import pytest
from heald.errors import InvalidArgument
from hypothesis import given
from hypothesis import strategies as st
from plugins_for_tests.tfrt_test.resnet import flatten, max_pooling_2d


def test_flatten_keeps_the_first_dimension():
    source, result = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.empty((2, 12), np.float32)
    flatten(source, result, None)
    assert (result == source.reshape(2, 12)).all()
    with pytest.raises(InvalidArgument, match=r"Flatten output shape \[3, 8\] does not match .* \[2, 12\]"):
        flatten(source, np.empty((3, 8), np.float32), None)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_pooling_of_all_windows_is_the_largest_element_of_each(pool, stride, seed):
    source = np.random.default_rng(seed).random((2, 5, 7, 3), np.float32) + 1
    windows = np.lib.stride_tricks.sliding_window_view(source, (pool, pool), (1, 2))[:, ::stride, ::stride]
    expected = windows.max((-1, -2))
    result = np.empty(expected.shape, np.float32)
    max_pooling_2d(source, result, None, padding="valid", pool_size=(pool, pool), strides=(stride, stride))
    assert (result == expected).all()


def test_pooling_with_padding_has_windows_at_the_edges():
    """The figures are results of tf.nn.max_pool2d(..., ksize=2, strides=2, padding="SAME")."""
    source, result = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3, 1), np.empty((1, 2, 2, 1), np.float32)
    max_pooling_2d(source, result, None, padding="same", pool_size=(2, 2), strides=(2, 2))
    assert result.reshape(-1).tolist() == [5, 6, 8, 9]


@pytest.mark.parametrize(("padding", "shape", "message"), [
    ("odd", (1, 2, 2, 1), "MaxPool2D padding 'odd' is not recognized"),
    ("same", (1, 3, 2, 1), r"MaxPool2D output shape \[1, 3, 2, 1\] does not match the expected output shape "
                           r"\[1, 2, 2, 1\]"),
])
def test_pooling_refuses_other_paddings_and_shapes(padding, shape, message):
    with pytest.raises(InvalidArgument, match=message):
        max_pooling_2d(np.ones((1, 3, 3, 1), np.float32), np.empty(shape, np.float32), None, padding=padding,
                       pool_size=(2, 2), strides=(2, 2))
