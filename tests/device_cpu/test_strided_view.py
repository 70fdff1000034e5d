"""Views by strides show elements of their array alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from heald.api import errors
from heald_cpu.kernels.strided_view import strided_view
from hypothesis import given
from hypothesis import strategies as st

lengths = st.lists(st.integers(0, 4), min_size=1, max_size=3)


@given(array=lengths, turned=st.booleans(), shape=lengths, steps=st.lists(st.integers(-6, 6), min_size=3, max_size=3))
def test_a_view_shows_elements_of_its_array_or_is_refused(
    array: list[int], turned: bool, shape: list[int], steps: list[int]
) -> None:
    base: Any = np.arange(1, 1 + int(np.prod(array)), dtype=np.int32).reshape(array)
    x = base.T if turned else base
    strides = [4 * step for step in steps[: len(shape)]]
    offsets = [sum(i * step for i, step in zip(index, steps, strict=False)) for index in np.ndindex(*shape)]
    if offsets and not (offsets and x.size and min(offsets) >= 0 and max(offsets) < x.size):
        with pytest.raises(errors.InvalidArgument, match="leaves its array"):
            strided_view(x, shape, strides)
        return
    view = strided_view(x, shape, strides)
    assert view.reshape(-1).tolist() == [base.reshape(-1)[offset] for offset in offsets]
    assert not view.flags.writeable


def test_windows_over_an_array_that_is_smaller_than_bound_are_refused() -> None:
    from heald_cpu.kernels.conv import Sliding

    slide = Sliding((1, 8, 8, 3), (3, 3), (1, 1), (1, 1), (6, 6), ((0, 0), (0, 0)))
    assert slide.windows(np.zeros((1, 8, 8, 3), np.float32)).shape == (1, 6, 6, 3, 3, 3)
    with pytest.raises(errors.InvalidArgument, match="leaves its array"):
        slide.windows(np.zeros((1, 7, 8, 3), np.float32))
