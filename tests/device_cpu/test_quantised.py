"""Quantised numbers: arrays of them, rounding to them and back, and networks of integers beside float ones."""

import heald
import numpy as np
import pytest
from harness.run_op import outputs, run_op
from heald import graphdef
from heald.errors import InvalidArgument, Unimplemented
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from heald.runtime.values.tensor_proto import TensorValue
from hypothesis import given, settings
from hypothesis import strategies as st

QUANTISED = [dtypes.named(name) for name in ("qint8", "quint8", "qint16", "quint16", "qint32")]
QUINT8, QINT32 = dtypes.named("quint8"), dtypes.named("qint32")
LIMITS = np.float32(-1), np.float32(2)


def quint8(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8).view(QUINT8.numpy)


def integers(x):
    return x.view(x.dtype[0])


def floats(x, low, high, mode="MIN_FIRST"):
    return outputs("Dequantize", x, low, high, mode=mode)[0]


@pytest.mark.parametrize("dtype", QUANTISED, ids=repr)
def test_a_quantised_type_and_its_arrays_name_each_other(dtype):
    assert dtypes.of_numpy(dtype.numpy) is dtype
    assert dtype.numpy.itemsize == dtype.itemsize
    array = np.arange(3, dtype=dtype.numpy[0]).view(dtype.numpy)
    value = TensorValue(array)
    read_again = TensorValue.read(value.raw, 0, len(value.raw))
    assert (read_again.dtype, read_again.array().tolist()) == (dtype, array.tolist())


@pytest.mark.parametrize("fields", [
    [("qint8", "u1")], [("qint8", "i1"), ("qint8b", "i1")], [("int8", "i1")], [("", "i1")],
])
def test_other_arrays_of_fields_have_no_type(fields):
    with pytest.raises(InvalidArgument, match="has no data type"):
        dtypes.of_numpy(np.dtype(fields))


def session_of_moves():
    """Transposes, joins and slices a fed tensor and a constant of quint8."""
    attrs = {"T": QUINT8}
    nodes = [
        Node("x", "Placeholder", attrs={"dtype": QUINT8, "shape": None}),
        Node("w", "Const", attrs={"dtype": QUINT8, "value": quint8(3, 2)}),
        Node("order", "Const", attrs={"dtype": dtypes.int32, "value": np.int32([1, 0])}),
        Node("axis", "Const", attrs={"dtype": dtypes.int32, "value": np.array(0, np.int32)}),
        Node("turned", "Transpose", ["x", "order"], attrs={**attrs, "Tperm": dtypes.int32}),
        Node("joined", "ConcatV2", ["turned", "w", "axis"], attrs={**attrs, "N": 2, "Tidx": dtypes.int32}),
        Node("bits", "Bitcast", ["joined"], attrs={**attrs, "type": dtypes.uint8}),
    ]
    return heald.Session(graphdef.loads(graphdef.dumps(Graph(nodes))), device="CPU:0")


FED = np.uint8([[0, 7, 255], [1, 2, 3]])


@pytest.mark.parametrize("feed", [FED, FED.tolist(), FED.astype(np.int64), FED.view(QUINT8.numpy)])
def test_feeds_are_plain_integers_or_quantised_ones(feed):
    with session_of_moves() as session:
        joined, bits = session.run(["joined", "bits"], {"x": feed})
    assert joined.dtype == np.uint8
    np.testing.assert_array_equal(joined, np.concatenate([FED.T, integers(quint8(3, 2))]))
    np.testing.assert_array_equal(bits, joined)


def test_results_are_plain_integers_however_they_are_fetched(tmp_path):
    for dtype in QUANTISED:
        attrs, value = {"dtype": dtype}, np.arange(3).astype(dtype.numpy[0])
        nodes = [Node("x", "Placeholder", attrs={**attrs, "shape": None}),
                 Node("y", "Identity", ["x"], attrs={"T": dtype}),
                 Node("c", "Const", attrs={**attrs, "value": value.view(dtype.numpy)})]
        with heald.Session(Graph(nodes), device="CPU:0") as session:
            results = [*session.run(["x", "y", "c", "y"], {"x": value}), session.make_callable("y", ["x"])(value)]
            handle = session.partial_run_setup(["y", "c"], ["x"])
            results += [session.partial_run(handle, "c"), session.partial_run(handle, "y", {"x": value})]
        graphdef.dump(Graph(nodes), tmp_path / "model.pb")
        results.append(heald.load(tmp_path / "model.pb", outputs=["y"])(value))
        for result in results:
            assert result.dtype == value.dtype
            np.testing.assert_array_equal(result, value)


@pytest.mark.parametrize("feed", [[[256]], [[-1]], [[1.5]], np.float32([[1]]), np.int8([[1]]) - 2, [["a"]],
                                  np.zeros((1, 1), dtypes.named("qint8").numpy)])
def test_feeds_that_are_no_integers_of_the_type_are_refused(feed):
    with session_of_moves() as session, pytest.raises(InvalidArgument, match="feed 'x'"):
        session.run("joined", {"x": feed})


@settings(max_examples=60)
@given(st.sampled_from(QUANTISED), st.sampled_from(["MIN_COMBINED", "MIN_FIRST", "SCALED"]),
       st.floats(-100, 0, width=32), st.floats(0, 100, width=32))
def test_floats_come_back_within_a_step(dtype, mode, low, high):
    x = np.linspace(low, high, 50, dtype=np.float32)
    quantised, low_out, high_out = outputs("QuantizeV2", x, np.float32(low), np.float32(high), T=dtype, mode=mode)
    if dtype is QINT32:
        quantised, x = quantised[1:-1], x[1:-1]  # the last one is beyond int32, as in TensorFlow
    step = (float(high_out) - float(low_out)) / 2 ** (8 * dtype.itemsize) + 1e-6 * max(-low_out, high_out)
    expected = np.maximum(x, low_out)  # SCALED cuts the negative numbers of an unsigned type
    assert np.abs(floats(quantised, low_out, high_out, mode) - expected).max() <= 1.01 * step


def test_a_layer_of_integers_is_a_layer_of_floats_within_its_steps():
    """Convolution, bias, smaller range and activation, as the eightbit graphs chain them."""
    x, kernel, bias = quint8(1, 6, 6, 3), quint8(3, 3, 3, 4, seed=1), quint8(4, seed=2)
    total, low, high = outputs("QuantizedConv2D", x, kernel, *LIMITS, *LIMITS, strides=(1, 1, 1, 1), padding="SAME")
    small, small_low, small_high = outputs("QuantizeDownAndShrinkRange", total, low, high, out_type=QUINT8)
    biased, low, high = outputs("QuantizedBiasAdd", small, bias, small_low, small_high, *LIMITS, out_type=QINT32)
    small, low, high = outputs("QuantizeDownAndShrinkRange", biased, low, high, out_type=QUINT8)
    active, low, high = outputs("QuantizedRelu", small, low, high)
    exact = outputs("Conv2D", floats(x, *LIMITS), floats(kernel, *LIMITS), strides=(1, 1, 1, 1), padding="SAME")[0]
    exact = np.maximum(exact + floats(bias, *LIMITS), 0)
    assert np.abs(floats(active, low, high) - exact).max() < (high - low) / 100


def test_a_sum_broadcasts_as_other_ops_do():
    x, y = quint8(2, 1), quint8(2, 3, seed=1)
    total, low, high = outputs("QuantizedAdd", x, y, *LIMITS, *LIMITS)
    np.testing.assert_allclose(floats(total, low, high), floats(x, *LIMITS) + floats(y, *LIMITS), atol=2e-2)
    product, low, high = outputs("QuantizedMul", x, y, *LIMITS, *LIMITS)
    np.testing.assert_allclose(floats(product, low, high), floats(x, *LIMITS) * floats(y, *LIMITS), atol=2e-2)


def test_empty_tensors_are_joined_without_their_range():
    joined, low, high = run_op("QuantizedConcat", [np.int32(0), quint8(0), quint8(2), *map(np.float32, (-1, -2, 1, 3))],
                               {"T": QUINT8, "N": 2})
    assert (joined.tolist(), low, high) == (quint8(2).tolist(), -2, 3)


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("QuantizeV2", [np.float32([1]), np.float32(0), np.float32(1)], {"T": QUINT8, "axis": 0}),
    ("Dequantize", [quint8(2), np.float32([0, 1]), np.float32([1, 2])], {}),
    ("QuantizedRelu", [quint8(2), np.float32([0, 1]), np.float32(1)], {}),
    ("QuantizedMatMul", [quint8(2, 3), quint8(2, 3), *LIMITS, *LIMITS], {}),
    ("QuantizedMatMul", [quint8(2, 3), quint8(3, 2), np.float32(np.nan), *LIMITS, np.float32(1)], {}),
    ("QuantizedConv2D", [quint8(1, 3, 3, 2), quint8(1, 1, 1, 2), *LIMITS, *LIMITS],
     {"strides": (1, 1, 1, 1), "padding": "SAME"}),
    ("QuantizedConv2D", [quint8(0, 3, 3, 2), quint8(1, 1, 2, 1), *LIMITS, *LIMITS],
     {"strides": (1, 1, 1, 1), "padding": "SAME"}),
    ("QuantizedBiasAdd", [quint8(2, 0), quint8(0), *LIMITS, *LIMITS], {"out_type": QINT32}),
    ("QuantizedAdd", [quint8(2, 0), quint8(3, 2, 0), *LIMITS, *LIMITS], {}),
    ("QuantizedMul", [quint8(3), quint8(0, 3), *LIMITS, *LIMITS], {}),
    ("QuantizedBiasAdd", [quint8(2, 3), quint8(2), *LIMITS, *LIMITS], {"out_type": QINT32}),
    ("QuantizedAdd", [quint8(2, 3), quint8(2), *LIMITS, *LIMITS], {}),
    ("Requantize", [np.zeros(2, QINT32.numpy), *LIMITS, np.float32(1), np.float32(2)], {"out_type": QUINT8}),
    ("Requantize", [np.zeros(2, QINT32.numpy), *LIMITS, np.float32(np.nan), np.float32(1)], {"out_type": QUINT8}),
])
def test_limits_and_shapes_that_do_not_fit_are_refused(op, inputs, attrs):
    with pytest.raises((InvalidArgument, Unimplemented)) as caught:
        outputs(op, *inputs, **attrs)
    assert "report it" not in str(caught.value)


@pytest.mark.parametrize("limits", [(np.nan, 1), (0, np.nan), (-np.inf, 1), (0, np.inf), (0, 1e-45), (1, 1.0000001)])
@pytest.mark.parametrize(("op", "dtype", "attrs"), [
    ("QuantizedRelu", QUINT8, {}), ("QuantizedRelu6", QUINT8, {}), ("QuantizedRelu6", QINT32, {"out_type": QINT32}),
    ("QuantizeDownAndShrinkRange", QINT32, {"out_type": QUINT8}), ("RequantizationRange", QINT32, {}),
])
def test_limits_of_no_range_give_results(op, dtype, attrs, limits):
    x = np.arange(4).astype(dtype.numpy[0]).view(dtype.numpy)
    assert outputs(op, x, *np.float32(limits), **attrs)


def test_products_beyond_float64_are_right_in_their_last_bits():
    x, y = quint8(3, 5), quint8(5, 2, seed=1)
    limits = np.float32(1), np.nextafter(np.float32(1), np.float32(2))  # 0.0 is about 2**31 steps below
    zero = round(-255 / (float(limits[1]) - 1))
    exact = (integers(x).astype(object) - zero) @ (integers(y).astype(object) - zero)
    wrapped = [[(int(n) + 2**31) % 2**32 - 2**31 for n in row] for row in exact]
    assert outputs("QuantizedMatMul", x, y, *limits, *limits)[0].view(np.int32).tolist() == wrapped


def test_an_empty_tensor_goes_with_its_own_shape_and_with_a_single_element():
    for other in (quint8(2, 0), quint8(1, 2, 0), quint8(1), quint8(1, 1)):
        for op in ("QuantizedAdd", "QuantizedMul"):
            assert outputs(op, quint8(2, 0), other, *LIMITS, *LIMITS)[0].size == 0


def test_mixed_ranges_of_slices_have_no_mode_min_first():
    with pytest.raises(Unimplemented, match="MIN_FIRST"):
        outputs("QuantizeV2", np.float32([[1, 2]]), *np.float32([[0, 0], [1, 1]]), T=QUINT8, axis=1, mode="MIN_FIRST")
