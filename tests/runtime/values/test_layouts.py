"""Laws of layouts: a conversion and its inverse keep all elements, of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from heald.runtime.values import dtypes, layouts
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def dense(tensor: Any) -> Any:
    out = np.full(tensor.shape, 1, tensor.dtype.numpy)
    layouts.fill_dense(tensor, out)
    return out


@given(SHAPES, st.sampled_from(["bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64"]), st.data())
def test_a_tensor_is_its_sparse_form_made_dense(shape: tuple[int, ...], name: str, data: Any) -> None:
    small = data.draw(arrays.arrays(np.int8, shape, elements=st.integers(0, 2)))
    array = small.astype(dtypes.named(name).numpy)
    sparse = layouts.coo_of(array)
    assert layouts.layout_of(sparse) == "coo"
    assert sparse.dtype is dtypes.named(name)
    assert np.array_equal(dense(sparse), array)
    assert (sparse.values != 0).all()
    order = data.draw(st.permutations(range(len(sparse.values))))
    again = layouts.coo_tensor(sparse.indices[order], sparse.values[order], shape)
    assert np.array_equal(again.indices, sparse.indices)
    assert np.array_equal(again.values, sparse.values)


@given(SHAPES, st.integers(-3, 3))
def test_the_dense_form_of_a_scalar_tensor_is_its_broadcast_value(shape: tuple[int, ...], value: int) -> None:
    tensor = layouts.scalar_tensor(shape, np.array(value, np.int16))
    assert layouts.layout_of(tensor) == "scalar"
    assert np.array_equal(dense(tensor), np.full(shape, value, np.int16))
    assert np.array_equal(layouts.broadcast(tensor), dense(tensor))
    assert np.array_equal(dense(layouts.coo_of(tensor)), dense(tensor))
    with pytest.raises(ValueError, match="read-only"):
        tensor.value[...] = 1


def test_nan_is_an_element_and_a_negative_zero_is_none() -> None:
    sparse = layouts.coo_of(np.float32([0.0, -0.0, np.nan]))
    assert sparse.indices.tolist() == [[2]]
    assert np.isnan(sparse.values).all()
