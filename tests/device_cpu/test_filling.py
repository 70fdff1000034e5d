"""Tensors made from a few numbers, and fingerprints."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes

TEXT = bytes(range(256)) * 2


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0]


def test_one_hot_has_nothing_where_an_index_is_out_of_range():
    got = run("OneHot", np.int64([[1, -1], [5, 0]]), np.int32(2), np.int32(7), np.int32(3))
    assert got.tolist() == [[[3, 7], [3, 3]], [[3, 3], [7, 3]]]
    rows = run("OneHot", np.uint8([255]), np.int32(256), np.array(b"x", object), np.array(b"", object), axis=0)
    assert rows.shape == (256, 1)
    assert rows[255, 0] == b"x"
    assert run("OneHot", np.int32(1), np.int32(0), np.float32(1), np.float32(0)).shape == (0,)


def test_the_ends_of_a_linear_space_are_as_given():
    got = run("LinSpace", np.float32(0.1), np.float32(0.7), np.int32(7))
    assert (got[0], got[-1]) == (np.float32(0.1), np.float32(0.7))
    np.testing.assert_allclose(got, np.linspace(0.1, 0.7, 7), rtol=1e-6)
    assert run("LinSpace", np.float64(3), np.float64(9), np.int64(1)).tolist() == [3]
    assert run("LinSpace", np.float64(1), np.float64(np.inf), np.int64(3)).tolist() == [1, np.inf, np.inf]


def test_the_op_empty_gives_zeros():
    assert run("Empty", np.int32([2]), dtype=dtypes.string).tolist() == [b"", b""]
    assert run("Empty", np.int32([2]), dtype=dtypes.bool_).tolist() == [False, False]


@pytest.mark.parametrize(("length", "want"), [  # by TensorFlow 2.21
    (0, "4f40902f3b6ae19a"), (1, "544be9f5ed5660be"), (3, "9aa4ebe9223da194"), (4, "40e5588989fdbf82"),
    (7, "a1a6b00df2bfe0a2"), (8, "983be9e8e1135aad"), (16, "d45641a3a025fd0e"), (17, "1c1f0df2f8a6b6bb"),
    (32, "49df2c9799819d1a"), (33, "4e5275cbc16e75e8"), (64, "4bccde53bb0485f5"), (65, "be3d793e2c28a3c6"),
    (128, "d35deaf0954c481c"), (129, "3e08211174a38bce"), (300, "23da213e5fce66aa"),
])
def test_fingerprints_of_every_length_are_farmhash64(length, want):
    rows = np.frombuffer(TEXT[:length] * 2, np.uint8).reshape(2, length)
    texts = np.array([TEXT[:length], b"another", TEXT[:length]], object)
    method = np.array(b"farmhash64", object)
    assert run("Fingerprint", rows, method).tobytes().hex() == want * 2
    assert run("Fingerprint", texts, method)[[0, 2]].tobytes().hex() == want * 2


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("OneHot", [np.int32([0]), np.int32(-1), np.float32(1), np.float32(0)], {}),
    ("OneHot", [np.int32([0]), np.int32(1), np.float32([1]), np.float32(0)], {}),
    ("OneHot", [np.int32([0]), np.int32(1), np.float32(1), np.float32(0)], {"axis": 2}),
    ("LinSpace", [np.float32(0), np.float32(1), np.int32(0)], {}), ("Empty", [np.int32([-1])], {"dtype": dtypes.int8}),
    ("Fingerprint", [np.int32([1]), np.array(b"md5", object)], {}),
    ("Fingerprint", [np.int32(1), np.array(b"farmhash64", object)], {}),
])
def test_dims_that_do_not_fit_are_refused(op, inputs, attrs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs, **attrs)
