"""Operators and indexing of handles follow TensorFlow's rules, which come with the op set."""

from __future__ import annotations

import operator

import heald
import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import HostContext
from heald_eager.core_runtime import CoreRuntime

A, B = np.float32([[1, 2], [3, 4]]), np.float32([[2, 2], [5, 3]])


@pytest.mark.parametrize("function", [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_an_operator_is_numpys_on_equal_types_also_when_it_is_repeated(function):
    x, y = heald.TensorHandle(A), heald.TensorHandle(B)
    for _ in range(2):
        assert np.allclose(function(x, y).numpy(), function(A, B))
        assert np.allclose(function(x, B).numpy(), function(A, B))
        assert np.allclose(function(A.tolist(), y).numpy(), function(A, B))


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
@pytest.mark.parametrize("dtype", [bool, np.int32])
def test_bits_and_truth_values_have_the_same_operators(function, dtype):
    x, y = np.array([0, 1, 0, 1], dtype), np.array([0, 0, 1, 1], dtype)
    assert np.array_equal(function(heald.TensorHandle(x), y).numpy(), function(x, y))
    assert np.array_equal((~heald.TensorHandle(x)).numpy(), ~x)


def test_numbers_take_the_tensors_type_on_both_sides():
    x = heald.TensorHandle(A)
    assert (2 * x - 1 + (3 - x) / 2).dtype.name == "float32"
    assert (x + np.ones((2, 2))).dtype.name == "float32"
    assert np.array_equal((2**x).numpy(), 2**A)
    assert np.array_equal(abs(-x).numpy(), A)
    with pytest.raises(errors.InvalidArgument, match="cannot hold"):
        heald.TensorHandle([1]) + 1.5


def test_integers_divide_as_float64_and_small_ones_as_float32():
    assert (heald.TensorHandle([1, 2]) / 2).dtype.name == "float64"
    assert (heald.TensorHandle([1, 2]) / heald.TensorHandle([2, 3])).numpy().tolist() == [0.5, 2 / 3]
    assert (heald.TensorHandle(np.int8([1, 2])) / 2).dtype.name == "float32"
    with pytest.raises(errors.InvalidArgument, match=r"2\.5"):
        heald.TensorHandle([1, 2]) / 2.5


def test_tensors_of_different_types_are_an_error_at_the_users_line():
    with pytest.raises(errors.InvalidArgument, match="must be float32, but it is float64") as raised:
        heald.TensorHandle(A) + heald.TensorHandle(A, "float64")
    assert raised.value.location.file == __file__


def test_strings_are_joined_and_shapes_that_do_not_broadcast_are_unequal():
    assert (heald.TensorHandle(["a", "b"]) + "c").numpy().tolist() == [b"ac", b"bc"]
    assert heald.TensorHandle([1, 2]) != heald.TensorHandle([1, 2, 3])
    assert heald.TensorHandle([1]) != None  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(heald.TensorHandle([1]))


@pytest.mark.parametrize("key", [
    0, -1, slice(1, None), (0, 1), (slice(None), 0), (slice(None, None, -1), slice(0, 1)), Ellipsis, (Ellipsis, 1),
    None, (0, None, slice(None)), (slice(None), None)], ids=repr)
def test_indexing_is_numpys(key):
    assert np.array_equal(heald.TensorHandle(A)[key].numpy(), A[key])


def test_handles_index_handles():
    x = heald.TensorHandle(A)
    assert np.array_equal(x[x > 2].numpy(), A[A > 2])
    assert np.array_equal(x[heald.TensorHandle(1)].numpy(), A[1])
    assert [row.numpy().tolist() for row in x] == A.tolist()
    with pytest.raises(errors.InvalidArgument, match="slice index 5 of dimension 0 out of bounds"):
        x[5]
    with pytest.raises(errors.InvalidArgument, match="no index of a tensor"):
        x["a"]


def test_operators_of_errors_are_errors_and_those_of_devices_run_there():
    bad = heald.execute("GatherV2", A, [9], 0)
    assert (bad + 1).error is bad.error
    assert (1 / bad).error is bad.error
    cpu = core()
    x = cpu.handle(A).to("SIM:0")
    assert (x + 1).device == "SIM:0"
    assert np.array_equal((x + 1).numpy(), A + 1)


def test_an_operator_names_the_command_that_installs_a_missing_op_set():
    host = HostContext(config=load_config({"plugins": {"allow": ["cpu"]}}))
    x = CoreRuntime(host).handle(A)
    for use in (lambda: x + 1, lambda: x[0], lambda: x == x):
        with pytest.raises(errors.NotFound, match="pip install .*tf_ops|plugin tf_ops is"):
            use()
