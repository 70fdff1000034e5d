"""Ops that look at a tensor, copy it, or show its bytes as another type."""

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import const, graph, node
from harness.run_op import run_op
from heald.errors import Aborted, InvalidArgument
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INF, NAN = np.inf, np.nan
fast = settings(max_examples=60)


def run(op, *inputs, **attrs):
    arrays = [np.asarray(x) for x in inputs]
    return run_op(op, arrays, {"T": dtypes.of_numpy(arrays[0].dtype)} | attrs)[0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(("x", "count"), [([1, NAN], "NaN"), ([INF, -INF], "Inf"), ([NAN, -INF], "Inf and NaN")])
def test_numbers_that_are_none_are_told_with_the_message(dtype, x, count):
    with pytest.raises(InvalidArgument, match=f"^late : Tensor had {count} values"):
        run("CheckNumerics", np.array(x, dtype), message="late")


def test_an_expected_shape_adds_to_what_is_known():
    def expect(shape, x):
        return RULES["EnsureShape"].function({"shape": shape}, info(dtypes.float32, x)).shape

    assert expect((None, 3), (2, None)) == (2, 3)
    assert expect(None, (2, None)) == (2, None)
    assert expect((2,), None) == (2,)
    with pytest.raises(InvalidArgument, match="expected shape"):
        expect((None, 3), (2,))


@fast
@given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)),
       st.sampled_from(["uint8", "int16", "float32", "complex64", "float64", "complex128"]))
def test_bytes_shown_as_another_type_and_back_are_the_same(x, name):
    other = dtypes.named(name)
    if other.itemsize > 8:
        x = np.stack([x, x], -1)
    there = run("Bitcast", x, type=other)
    assert there.tobytes() == x.tobytes()
    np.testing.assert_array_equal(run("Bitcast", there, type=dtypes.int64), x)


def test_only_a_last_dimension_that_fits_becomes_one_element():
    with pytest.raises(InvalidArgument, match="last dimension must be 4"):
        run("Bitcast", np.zeros((2, 3), np.uint8), type=dtypes.uint32)
    with pytest.raises(InvalidArgument, match="last dimension"):
        run("Bitcast", np.int32(1), type=dtypes.int64)
    assert RULES["Bitcast"].function({"type": dtypes.int64}, info(dtypes.int32, (5, None))).shape == (5,)
    assert RULES["Bitcast"].function({"type": dtypes.int64}, info(dtypes.int32, None)).shape is None


def test_a_deep_copy_is_another_array():
    x = np.array([b"a", b"b"], object)
    got = run("DeepCopy", x)
    assert got is not x
    assert got.tolist() == [b"a", b"b"]


def test_an_abort_ends_the_run_and_not_the_process():
    session = heald.Session(graph(
        Node("first", "ControlTrigger"), const("x", 1), Node("stop", "Abort", controls=["first"]),
        Node("told", "Abort", attrs={"error_msg": b"no more"}),
        Node("y", "Identity", ["x"], controls=["stop"], attrs={"T": dtypes.float32}), node("z", "Neg", "y")))
    for fetch in ("y", "z"):  # before the run, and yet the ops before them have run
        with pytest.raises(Aborted, match="called by op 'stop'") as caught:
            session.run(fetch)
        assert caught.value.node == "stop"
    with pytest.raises(Aborted, match="no more"):
        session.run([], targets=["told"])
    session.run([], targets=["first"])
