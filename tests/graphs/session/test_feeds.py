"""Feeds: the rule by which values become a tensor's element type."""

from __future__ import annotations

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import InvalidArgument
from heald.runtime.service.feeds import convert_feed
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays


def fed(value, dtype, shape=None):
    return convert_feed(value, TensorMetadata(dtype, shape), "x")


@pytest.mark.parametrize(("value", "dtype", "expected"), [
    (3, dtypes.float32, np.float32(3)), (3, dtypes.int8, np.int8(3)), (2.5, dtypes.float16, np.float16(2.5)),
    ([1, 2], dtypes.int64, np.int64([1, 2])), ([[1.5]], dtypes.bfloat16, np.array([[1.5]], ml_dtypes.bfloat16)),
    (True, dtypes.bool_, np.bool_(True)), ([], dtypes.float32, np.zeros(0, np.float32)),
    (np.int32([1, 2]), dtypes.float64, np.float64([1, 2])), (np.float64([0.1]), dtypes.float32, np.float32([0.1])),
    (np.int64([5]), dtypes.uint8, np.uint8([5])), (np.float64(0.5), dtypes.bfloat16, np.array(0.5, ml_dtypes.bfloat16)),
    (np.array([1, 2], ">f4"), dtypes.float32, np.float32([1, 2])), (1, dtypes.complex64, np.complex64(1)),
    (np.array(["a", "é"]), dtypes.string, np.array([b"a", "é".encode()], object)),
    (np.array(["a", "é"], object), dtypes.string, np.array([b"a", "é".encode()], object)),
    (b"a\0\xff", dtypes.string, np.array(b"a\0\xff", object)),
])
def test_values_that_survive_are_cast(value, dtype, expected):
    result = fed(value, dtype)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert np.array_equal(result, expected)


@pytest.mark.parametrize(("value", "dtype"), [
    (300, dtypes.uint8), (1.5, dtypes.int32), (1e300, dtypes.float32), (np.float32([1]), dtypes.int32),
    (np.int64([300]), dtypes.uint8), (np.int64([1]), dtypes.float32), ("a", dtypes.float32),
    ([[1], [2, 3]], dtypes.float32),
    (np.array(["a"]), dtypes.int32), (1 + 2j, dtypes.float32), (np.bool_(True), dtypes.string), (1, dtypes.bool_),
    (object(), dtypes.float32), (np.array([object()]), dtypes.float32), (np.datetime64("2020-01-01"), dtypes.int64),
    ([1, None], dtypes.float32), ([b"a", 3], dtypes.string), (10**400, dtypes.float32),
    (np.array([b"a", None], object), dtypes.string),
])
def test_values_that_would_be_lost_are_errors_that_name_the_feed(value, dtype):
    with pytest.raises(InvalidArgument, match="'x'"):
        fed(value, dtype)


def test_a_refused_array_is_told_the_cast_to_write():
    with pytest.raises(InvalidArgument, match=r"float32, the tensor is int32.*x.astype\('int32'\)"):
        fed(np.float32([1]), dtypes.int32)


INTEGERS = arrays.arrays(st.sampled_from([np.int8, np.int32, np.int64, np.uint16]),
                         arrays.array_shapes(min_dims=0, max_dims=2))


@given(INTEGERS,
       st.sampled_from([dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint64]))
def test_integers_are_cast_exactly_or_refused(array, dtype):
    info = np.iinfo(dtype.numpy)
    fits = all(info.min <= int(v) <= info.max for v in array.reshape(-1))
    if fits:
        assert np.array_equal(fed(array, dtype), array)
    else:
        with pytest.raises(InvalidArgument):
            fed(array, dtype)


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 1), ()])
def test_a_wrong_shape_is_an_error_with_both_shapes(shape):
    session = heald.Session(graph(placeholder("x", (2, 3)), node("y", "Neg", "x")))
    with pytest.raises(InvalidArgument, match=r"\[2,3\]"):
        session.run("y", {"x": np.zeros(shape, np.float32)})
    assert session.run("y", {"x": np.zeros((2, 3), np.float32)}).shape == (2, 3)


@pytest.mark.parametrize("make", [
    np.asfortranarray, lambda x: np.concatenate([x, x], 1)[:, ::2][:, : x.shape[1]],
    lambda x: x.astype(">f4"),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
    lambda x: x.view(type("Sub", (np.ndarray,), {})), lambda x: x.tolist(),
])
def test_the_layout_of_a_feed_does_not_matter(make):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    odd = make(x)
    session = heald.Session(graph(placeholder("x", (None, 4)), node("y", "Neg", "x")))
    assert np.array_equal(session.run("y", {"x": odd}), -np.asarray(odd, np.float32))


def test_a_feed_is_never_written():
    nodes = [placeholder("x", (4,)), *(node(f"r{i}", "Relu", f"r{i - 1}" if i else "x") for i in range(5))]
    session = heald.Session(graph(*nodes))
    x = np.float32([-1, 2, -3, 4])
    x.flags.writeable = False
    assert session.run("r4", {"x": x}).tolist() == [0, 2, 0, 4]
    assert x.tolist() == [-1, 2, -3, 4]


ROUND_TRIPS = [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_,
               np.complex64]


@pytest.mark.parametrize("dtype", ROUND_TRIPS)
@pytest.mark.parametrize("shape", [(3, 4, 5), (37,), (2, 0, 6), (0, 0, 0), ()])
def test_a_fed_array_is_fetched_bit_for_bit(dtype, shape):
    rng = np.random.default_rng(0)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = rng.integers(0, 2 if dtype is np.bool_ else 256, size, np.uint8)  # NaNs with payloads among them
    x = raw.view(dtype).reshape(shape)
    session = heald.Session(graph(placeholder("x", dtype=dtypes.of_numpy(x.dtype)),
                                  node("y", "Identity", "x", T=dtypes.of_numpy(x.dtype))))
    y = session.run("y", {"x": x})
    assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, x.shape, x.tobytes())


def test_strings_keep_nul_bytes_and_bytes_that_are_no_text():
    x = np.array([[b"a\0b", b"\xff\xfe"], [b"", "é".encode()]], object)
    session = heald.Session(graph(placeholder("x", dtype=dtypes.string), node("y", "Identity", "x", T=dtypes.string)))
    assert session.run("y", {"x": x}).tolist() == x.tolist()
