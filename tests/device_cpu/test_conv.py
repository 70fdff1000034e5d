"""Convolutions: TensorFlow's semantics."""

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.run_op import REGISTRIES, run_op
from heald.api import geometry
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.contract.kernel import Bind
from heald.runtime.contract.op import infer
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_cpu.device import Cpu
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)


def attributes(op, inputs, **attrs):
    types = {"T": dtypes.of_numpy(inputs[0].dtype)}
    if "U" in REGISTRIES.ops.get(op).attrs:
        types["U"] = dtypes.float32
    return types | attrs


def run(op, *inputs, **attrs):
    return run_op(op, list(inputs), attributes(op, inputs, **attrs))[0]


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def conv(x, w, strides=(1, 1), padding="VALID", dilations=(1, 1), pads=(), op="Conv2D", data_format="NHWC"):
    in_layout = (lambda hw: (1, *hw, 1)) if data_format == "NHWC" else (lambda hw: (1, 1, *hw))
    return run(op, x, w, strides=in_layout(strides), padding=padding, dilations=in_layout(dilations),
               explicit_paddings=pads, data_format=data_format)


def naive_conv(x, w, strides, dilations, pads):
    """Straight from the definition; groups by the filter's depth."""
    x = np.pad(x, ((0, 0), *pads, (0, 0))).astype(np.float64)
    kh, kw, depth, filters = w.shape
    rows, columns = ((n - (k - 1) * d - 1) // s + 1
                     for n, k, d, s in zip(x.shape[1:3], (kh, kw), dilations, strides, strict=True))
    out = np.zeros((x.shape[0], rows, columns, filters))
    multiplier = filters // (x.shape[3] // depth)
    for r, c, f in np.ndindex(rows, columns, filters):
        first = f // multiplier * depth
        window = x[:, r * strides[0] :, c * strides[1] :, first : first + depth]
        window = window[:, : (kh - 1) * dilations[0] + 1 : dilations[0], : (kw - 1) * dilations[1] + 1 : dilations[1]]
        out[:, r, c, f] = (window * w[..., f].astype(np.float64)).sum((1, 2, 3))
    return out


pair = st.tuples(st.integers(1, 3), st.integers(1, 3))


@fast
@given(st.integers(0, 2), pair, pair, pair, st.integers(1, 2), st.integers(1, 2), st.integers(1, 2),
       st.sampled_from(["SAME", "VALID", "EXPLICIT"]), st.sampled_from([np.float32, np.float64, np.int32]))
def test_convolution_is_the_sum_over_its_windows(
    batch, taps, strides, dilations, groups, depth, multiplier, padding, dtype
):
    x, w = random(batch, 7, 8, groups * depth, dtype=dtype), random(*taps, depth, groups * multiplier, dtype=dtype)
    explicit = (0, 0, 1, 0, 2, 1, 0, 0) if padding == "EXPLICIT" else ()
    slides = [geometry.window(n, k, s, d, padding, tuple(explicit[2 * i + 2 : 2 * i + 4]))
              for i, (n, k, s, d) in enumerate(zip((7, 8), taps, strides, dilations, strict=True))]
    want = naive_conv(x, w, strides, dilations, [(s.before, s.after) for s in slides])
    got = conv(x, w, strides, padding, dilations, explicit)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, atol=1e-4)


@fast
@given(st.integers(0, 2), pair, st.integers(1, 3), pair, st.integers(1, 3), st.integers(1, 2),
       st.sampled_from(["SAME", "VALID"]), st.sampled_from(["NHWC", "NCHW"]))
def test_depthwise_convolution_is_a_convolution_with_a_group_for_each_channel(
    batch, taps, stride, dilations, channels, multiplier, padding, data_format
):
    x, w = random(batch, 7, 8, channels), random(*taps, channels, multiplier)
    want = conv(x, w.reshape(*taps, 1, channels * multiplier), (stride, stride), padding, dilations)
    if data_format == "NCHW":
        x, want = np.ascontiguousarray(x.transpose(0, 3, 1, 2)), want.transpose(0, 3, 1, 2)
    got = conv(x, w, (stride, stride), padding, dilations, op="DepthwiseConv2dNative", data_format=data_format)
    np.testing.assert_allclose(got, want, atol=1e-4)


def test_channels_first_gives_the_same_convolution():
    x, w = random(2, 5, 6, 3), random(3, 2, 3, 4)
    want = conv(x, w, (2, 1), "SAME").transpose(0, 3, 1, 2)
    got = conv(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), w, (2, 1), "SAME", data_format="NCHW")
    np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_half_precision_is_summed_in_float32(op, dtype):
    x = np.full((1, 64, 1, 1), 1, dtype)
    x[0, 0] = 2048
    got = conv(x, np.ones((64, 1, 1, 1), dtype), op=op)
    assert got.dtype == dtype
    assert got.item() == dtype(2048 + 63)


def test_large_images_are_convolved_block_by_block():
    x, w = random(2, 60, 60, 40), random(3, 3, 40, 2)
    want = naive_conv(x, w, (1, 1), (1, 1), [(1, 1), (1, 1)])
    np.testing.assert_allclose(conv(x, w, padding="SAME"), want, atol=1e-2)


@pytest.mark.parametrize(("op", "pads"), [("Conv2D", "SAME"), ("DepthwiseConv2dNative", "SAME"), ("Conv2D", "VALID")])
def test_an_attached_convolution_reads_what_its_buffers_hold_at_each_call(op, pads):
    inputs = [random(1, 5, 5, 2), random(3, 3, 2, 2)]
    attrs = attributes(op, inputs, strides=(1, 1, 1, 1), padding=pads)
    attrs = {n: a.default for n, a in REGISTRIES.ops.get(op).attrs.items()} | attrs
    infos = tuple(info(dtypes.float32, x.shape) for x in inputs)
    (meta,) = (o.meta for o in infer(REGISTRIES.ops.get(op), RULES[op], attrs, infos))
    kernel = REGISTRIES.kernels.candidates(op, "CPU")[0]
    out = np.empty(meta.dims, np.float32)
    call = kernel.bind(Bind("node", op, attrs, infos, (meta,), Cpu(0), None, {})).attach(tuple(inputs), (out,))
    for factor in (1, 2):
        inputs[0] *= factor
        inputs[1] *= factor
        call()
        np.testing.assert_allclose(out, conv(*inputs, padding=pads, op=op), atol=1e-4)


def test_constant_depthwise_filters_serve_images_of_several_widths():
    w = random(3, 3, 4, 2)
    filtered = node("y", "DepthwiseConv2dNative", "x", "w", strides=(1, 1, 1, 1), padding=b"SAME")
    graph_ = graph(placeholder("x", (1, None, None, 4)), const("w", w), filtered)
    with heald.Session(graph_, {"plugins": {"block": ["onednn"]}}) as session:
        for width in (8, 16, 5):
            x = random(1, 6, width, 4)
            want = conv(x, w, padding="SAME", op="DepthwiseConv2dNative")
            np.testing.assert_allclose(session.run("y:0", {"x:0": x}), want, atol=1e-5)


def test_convolutions_that_are_not_defined_are_refused():
    x, w = random(1, 5, 5, 4), random(3, 3, 4, 2)
    for bad in ((x[0], w), (x, random(3, 3, 3, 2)), (x, random(7, 1, 4, 2)), (x, random(1, 1, 2, 3))):
        with pytest.raises(InvalidArgument):
            conv(*bad)
    with pytest.raises(InvalidArgument):
        conv(x, w, padding="EXPLICIT", pads=(0, 0, -1, 0, 0, 0, 0, 0))
    with pytest.raises(InvalidArgument):
        conv(x, w, pads=(0, 0, 1, 0, 0, 0, 0, 0))
    with pytest.raises(Unimplemented):
        run("Conv2D", x, w, strides=(2, 1, 1, 1), padding="VALID")
    for empty in (random(0, 5, 5, 4), random(1, 2, 2, 4)):  # no images; no place for the filter
        for name in ("strides", "dilations"):
            with pytest.raises(Unimplemented, match=f"{name} in the batch and depth dimensions"):
                run("Conv2D", empty, w, **{"strides": (1, 1, 1, 1), "padding": "VALID", name: (2, 1, 1, 1)})
    for strides in ((1, 1, 2, 1), (2, 1, 1, 1), (1, 1, 1, 2)):
        with pytest.raises(InvalidArgument, match="equal strides"):
            run("DepthwiseConv2dNative", x, random(3, 3, 4, 1), strides=strides, padding="VALID")


@pytest.mark.parametrize(("op", "filters"), [("Conv2D", 4), ("DepthwiseConv2dNative", 2)])
def test_unknown_lengths_stay_unknown_and_the_others_are_computed(op, filters):
    attrs = {n: a.default for n, a in REGISTRIES.ops.get(op).attrs.items()}
    attrs |= {"strides": (1, 2, 2, 1), "padding": "SAME"}
    kernel = info(dtypes.float32, (3, 3, 2, filters))
    assert RULES[op].function(attrs, info(dtypes.float32, (None, None, 8, 2)), kernel).shape == (None, None, 4, 4)
    assert RULES[op].function(attrs, info(dtypes.float32, None), kernel).rank == 4


@pytest.mark.parametrize(("op", "inputs"), [
    ("DepthwiseConv2dNativeBackpropInput", (np.int32([1, 7, 7, 2]), random(3, 3, 2, 1), random(1, 3, 3, 2))),
    ("DepthwiseConv2dNativeBackpropFilter", (random(1, 7, 7, 2), np.int32([3, 3, 2, 1]), random(1, 3, 3, 2)))])
def test_gradients_of_a_dilated_depthwise_convolution_are_unimplemented(op, inputs):
    with pytest.raises(Unimplemented, match=r"gradients of depthwise convolution with dilations \(2, 2\)"):
        run_op(op, list(inputs), {"T": dtypes.float32, "strides": (1, 1, 1, 1), "padding": "VALID",
                                  "dilations": (1, 2, 2, 1)})


def test_a_depthwise_filter_without_taps_gives_zeros():
    x = random(1, 4, 5, 3)
    for taps, size in (((0, 0), (5, 6)), ((0, 2), (5, 4)), ((2, 0), (3, 6))):
        result = conv(x, np.zeros((*taps, 3, 2), np.float32), op="DepthwiseConv2dNative")
        assert result.shape == (1, *size, 6)
        assert not result.any()
