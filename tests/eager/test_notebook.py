"""A TensorHandle in a notebook: its text, and a picture where the value is one."""

from __future__ import annotations

from operator import methodcaller

import heald
import numpy as np
import pytest
from heald_eager import TensorHandle

show = methodcaller("_repr_html_")  # as notebooks do


@pytest.mark.parametrize("array", [np.zeros((8, 8, 3), np.uint8), np.ones((1, 9, 5), np.float32)])
def test_a_tensor_of_pixels_is_a_picture_with_its_text(array):
    html = show(TensorHandle(array))
    assert html.startswith("<img ")
    assert "data:image/png;base64,iVBOR" in html
    assert "<pre>&lt;TensorHandle value" in html


@pytest.mark.parametrize("value", [3, [1, 2], [[b"<script>x</script>"] * 9] * 9, np.zeros((0, 9))])
def test_other_tensors_are_their_text(value):
    html = show(TensorHandle(value))
    assert html.startswith("<pre>&lt;TensorHandle value")
    assert "<script" not in html
    assert "<img" not in html


def test_a_failed_tensor_shows_its_error_and_raises_nothing():
    failed = heald.ops.log(heald.ops.gather_v2(TensorHandle(np.ones((9, 9), np.float32)), [99], 0))
    assert "error" in show(failed)
    assert "<img" not in show(failed)
