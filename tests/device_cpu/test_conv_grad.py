"""Gradients of convolutions, and fused ones: checked against the convolutions themselves."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import REGISTRIES, run_op
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.contract.kernel import Bind
from heald.runtime.contract.op import infer
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_cpu.device import Cpu
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=40)
pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
FORWARD = {"Conv2D": "", "DepthwiseConv2dNative": "", "Conv3D": "V2"}


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def run(op, *inputs, **attrs):
    declared = REGISTRIES.ops.get(op)
    types = {arg.type_attr: dtypes.of_numpy(x.dtype) for arg, x in zip(declared.inputs, inputs, strict=True)}
    return run_op(op, list(inputs), {a: t for a, t in types.items() if a is not None} | attrs)[0]


def is_adjoint(op, x, w, **attrs):
    """<dy, conv(x, w)> is linear in x and in w: both gradients have the same product with their operand."""
    y = run(op, x, w, **attrs)
    dy = random(*y.shape, seed=1)
    version = FORWARD[op]
    dx = run(f"{op}BackpropInput{version}", np.array(x.shape, np.int32), w, dy, **attrs)
    dw = run(f"{op}BackpropFilter{version}", x, np.array(w.shape, np.int32), dy, **attrs)
    assert dx.shape == x.shape
    assert dw.shape == w.shape
    assert (dy * y).sum() == (dx * x).sum() == (dw * w).sum()


@fast
@given(st.integers(0, 2), pair, pair, pair, st.integers(1, 2), st.integers(1, 2), st.integers(1, 2),
       st.sampled_from(["SAME", "VALID", "EXPLICIT"]), st.sampled_from(["NHWC", "NCHW"]))
def test_gradients_of_a_convolution_are_its_adjoint(
    batch, taps, strides, dilations, groups, depth, multiplier, padding, data_format
):
    first = data_format == "NCHW"
    in_layout = (lambda hw: (1, 1, *hw)) if first else (lambda hw: (1, *hw, 1))
    pads = ((0, 0) if first else ()) + (0, 0, 1, 0, 2, 1) + (() if first else (0, 0))
    x = random(batch, groups * depth, 7, 8) if first else random(batch, 7, 8, groups * depth)
    is_adjoint("Conv2D", x, random(*taps, depth, groups * multiplier), strides=in_layout(strides),
               dilations=in_layout(dilations),
               padding=padding, data_format=data_format, explicit_paddings=pads if padding == "EXPLICIT" else ())


@fast
@given(pair, st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.sampled_from(["SAME", "VALID"]))
def test_gradients_of_a_depthwise_convolution_are_its_adjoint(taps, stride, channels, multiplier, padding):
    is_adjoint("DepthwiseConv2dNative", random(2, 6, 7, channels), random(*taps, channels, multiplier),
               strides=(1, stride, stride, 1), padding=padding)


@fast
@given(st.tuples(pair, pair), st.tuples(pair, pair), st.sampled_from(["SAME", "VALID"]),
       st.sampled_from(["NDHWC", "NCDHW"]))
def test_gradients_of_a_3d_convolution_are_its_adjoint(taps, strides, padding, data_format):
    first = data_format == "NCDHW"
    steps = (*strides[0], strides[1][0])
    is_adjoint("Conv3D", random(2, 2, 6, 7, 8) if first else random(2, 6, 7, 8, 2),
               random(*taps[0], taps[1][0], 2, 3), strides=(1, 1, *steps) if first else (1, *steps, 1),
               padding=padding, data_format=data_format)


def test_a_3d_convolution_of_one_slice_is_a_2d_convolution():
    x, w = random(2, 6, 7, 2), random(3, 2, 2, 4)
    want = run("Conv2D", x, w, strides=(1, 2, 1, 1), padding="SAME")
    got = run("Conv3D", x[:, None], w[None], strides=(1, 1, 2, 1, 1), padding="SAME")
    np.testing.assert_array_equal(got[:, 0], want)


def test_large_gradients_are_added_up_block_by_block():
    is_adjoint("Conv2D", random(2, 60, 60, 40), random(3, 3, 40, 2), strides=(1, 1, 1, 1), padding="SAME")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_gradients_are_summed_in_float32(dtype):
    dy = np.full((1, 64, 1, 1), 1, dtype)
    dy[0, 0] = 2048
    sizes, attrs = np.array([1, 1, 1, 1], np.int32), {"strides": (1, 1, 1, 1), "padding": "VALID"}
    got = run("Conv2DBackpropFilter", np.ones((1, 64, 1, 1), dtype), sizes, dy, **attrs)
    assert got.item() == dtype(2048 + 63)


def test_an_attached_gradient_starts_anew_at_each_call():
    op, attrs = "Conv2DBackpropInput", {"T": dtypes.float32, "strides": (1, 1, 1, 1), "padding": "SAME"}
    inputs = [np.array([1, 5, 5, 2], np.int32), random(3, 3, 2, 2, dtype=np.float32),
              random(1, 5, 5, 2, dtype=np.float32)]
    attrs = {n: a.default for n, a in REGISTRIES.ops.get(op).attrs.items()} | attrs
    infos = (constant_info(inputs[0]), *(info(dtypes.float32, x.shape) for x in inputs[1:]))
    (meta,) = (o.meta for o in infer(REGISTRIES.ops.get(op), RULES[op], attrs, infos))
    out = np.empty(meta.dims, np.float32)
    kernel = REGISTRIES.kernels.candidates(op, "CPU")[0]
    call = kernel.bind(Bind("node", op, attrs, infos, (meta,), Cpu(0), None, {})).attach(tuple(inputs), (out,))
    for factor in (1, 2):
        inputs[2] *= factor
        call()
        np.testing.assert_array_equal(out, run(op, *inputs, strides=(1, 1, 1, 1), padding="SAME"))


def test_input_sizes_may_leave_the_batch_or_all_but_height_and_width_to_the_other_inputs():
    w, dy, attrs = random(3, 3, 2, 4), random(2, 5, 5, 4), {"strides": (1, 1, 1, 1), "padding": "SAME"}
    want = run("Conv2DBackpropInput", np.array([2, 5, 5, 2], np.int32), w, dy, **attrs)
    for sizes in ([-1, 5, 5, 2], [5, 5]):
        got = run("Conv2DBackpropInput", np.array(sizes, np.int32), w, dy, **attrs)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("sizes", [[2, 6, 5, 2], [1, 5, 5, 2], [2, 5, 5, 3], [2, -5, 5, 2], [2, 5, 5]])
def test_a_gradient_that_does_not_fit_its_convolution_is_refused(sizes):
    with pytest.raises(InvalidArgument):
        run("Conv2DBackpropInput", np.array(sizes, np.int32), random(3, 3, 2, 4), random(2, 5, 5, 4),
            strides=(1, 1, 1, 1), padding="SAME")


def test_sizes_that_are_not_known_leave_the_gradient_open_but_for_the_batch():
    attrs = {n: a.default for n, a in REGISTRIES.ops.get("Conv2DBackpropInput").attrs.items()}
    attrs |= {"strides": (1, 1, 1, 1), "padding": "SAME"}
    inputs = [info(dtypes.int32, (4,)), info(dtypes.float32, (3, 3, 2, 4)), info(dtypes.float32, (7, 5, None, 4))]
    assert RULES["Conv2DBackpropInput"].function(attrs, *inputs).shape == (7, None, None, None)


def fused_conv(x, w, args, ops, **attrs):
    types = {"T": dtypes.float32, "TArgs": (dtypes.float32,) * len(args), "num_args": len(args), "fused_ops": ops}
    return run_op("_FusedConv2D", [x, w, *args], types | {"strides": (1, 1, 1, 1), "padding": "SAME"} | attrs)[0]


ACTIVATIONS = {
    (): lambda y: y, ("Relu",): lambda y: np.maximum(y, 0), ("Relu6",): lambda y: np.clip(y, 0, 6),
    ("LeakyRelu",): lambda y: np.where(y < 0, np.float32(0.3) * y, y),
    ("Elu",): lambda y: np.where(y < 0, np.expm1(np.minimum(y, 0)), y),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_a_fused_convolution_is_its_ops_one_after_the_other(activation, data_format):
    x, w = random(2, 5, 6, 3, dtype=np.float32), random(3, 2, 3, 4, dtype=np.float32)
    bias, scale, variance = np.arange(4, dtype=np.float32), np.arange(1, 5, dtype=np.float32), np.full(4, 3, np.float32)
    y, act = run("Conv2D", x, w, strides=(1, 1, 1, 1), padding="SAME"), ACTIVATIONS[activation]
    images = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if data_format == "NCHW" else x
    last = (lambda y: y.transpose(0, 2, 3, 1)) if data_format == "NCHW" else (lambda y: y)
    attrs = {"leakyrelu_alpha": 0.3, "epsilon": 1.0, "data_format": data_format}
    got = fused_conv(images, w, [bias], ("BiasAdd", *activation), **attrs)
    np.testing.assert_allclose(last(got), act(y + bias), atol=1e-5)
    got = fused_conv(images, w, [scale, bias, bias, variance], ("FusedBatchNorm", *activation), **attrs)
    np.testing.assert_allclose(last(got), act((y - bias) * scale / 2 + bias), atol=1e-4)


def test_fusions_that_are_not_defined_are_refused():
    x, w, bias = (random(*s, dtype=np.float32) for s in ((1, 4, 4, 2), (1, 1, 2, 3), (3,)))
    for ops in ((), ("Relu",), ("BiasAdd", "Tanh"), ("BiasAdd", "Relu", "Relu")):
        with pytest.raises(Unimplemented):
            fused_conv(x, w, [bias], ops)
    for args in ([], [bias, bias], [bias[:2]]):
        with pytest.raises(InvalidArgument):
            fused_conv(x, w, args, ("BiasAdd",))


def fused_depthwise(x, w, *args, ops, **attrs):
    types = {"T": dtypes.of_numpy(x.dtype), "num_args": len(args), "fused_ops": ops, "padding": "VALID"}
    return run_op("_FusedDepthwiseConv2dNative", [x, w, *args], types | {"strides": (1, 1, 1, 1)} | attrs)[0]


DEPTHWISE = {  # computed by TensorFlow 2.21 with oneDNN, without which it has no kernel for it
    (): [4.25, -4, -3, -.25, 1, -2.5, 3.5, 2.5, -2.75, -2.25, 0, -.25, 5, -3.5, -1.75, 8],
    ("Relu",): [4.25, 0, 0, 0, 1, 0, 3.5, 2.5, 0, 0, 0, 0, 5, 0, 0, 8],
    ("Relu6",): [4.25, 0, 0, 0, 1, 0, 3.5, 2.5, 0, 0, 0, 0, 5, 0, 0, 6],
    ("Elu",): [4.25, -.981684, -.950213, -.221199, 1, -.917915, 3.5, 2.5, -.936072, -.894601, 0, -.221199, 5, -.969803,
               -.826226, 8],
    ("_FusedHardSwish",): [4.25, 0, 0, -.114583, .666667, -.208333, 3.5, 2.291667, -.114583, -.28125, 0, -.114583, 5, 0,
                           -.364583, 8],
}


@pytest.mark.parametrize("activation", DEPTHWISE)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_a_fused_depthwise_convolution_gives_what_tensorflow_gives(activation, data_format):
    x = (np.arange(18, dtype=np.float32) * 7 % 11 - 5).reshape(1, 3, 3, 2) / 4
    w = (np.arange(16, dtype=np.float32) * 5 % 7 - 3).reshape(2, 2, 2, 2)
    order, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if data_format == "NCHW" else ((0, 1, 2, 3),) * 2
    got = fused_depthwise(np.ascontiguousarray(x.transpose(order)), w, np.float32([1, -2, .5, 3]),
                          ops=("BiasAdd", *activation), data_format=data_format)
    np.testing.assert_allclose(got.transpose(back).reshape(-1), DEPTHWISE[activation], atol=1e-6)


def test_a_depthwise_convolution_may_end_with_batch_normalisation_and_a_leaky_activation():
    x, w = random(1, 4, 4, 2, dtype=np.float16), random(3, 3, 2, 1, dtype=np.float16)
    y = run("DepthwiseConv2dNative", x, w, strides=(1, 1, 1, 1), padding="VALID").astype(np.float32)
    scale, offset, mean, variance = np.float16([[1, 2], [3, -1], [0, 5], [1, 3]])
    got = fused_depthwise(x, w, scale, offset, mean, variance, ops=("FusedBatchNorm", "LeakyRelu"), epsilon=1.0,
                          leakyrelu_alpha=0.5)
    want = (y - mean) * scale / np.sqrt(variance.astype(np.float32) + 1) + offset
    np.testing.assert_allclose(got, np.where(want < 0, want / 2, want), rtol=1e-3)


def test_fused_depthwise_convolutions_that_are_not_defined_are_refused():
    x, w, bias = (random(*s, dtype=np.float32) for s in ((1, 4, 4, 2), (1, 1, 2, 2), (4,)))
    for ops in ((), ("Relu",), ("BiasAdd", "Tanh")):
        with pytest.raises(Unimplemented, match="Fusion is not implemented"):
            fused_depthwise(x, w, bias, ops=ops)
    for args in ((), (bias, bias), (bias[:2],)):
        with pytest.raises(InvalidArgument):
            fused_depthwise(x, w, *args, ops=("BiasAdd",))


def test_a_fused_depthwise_convolution_of_no_taps_is_its_bias():
    x, w, bias = (random(*s, dtype=np.float32) for s in ((1, 4, 4, 2), (0, 1, 2, 2), (4,)))
    np.testing.assert_array_equal(fused_depthwise(x, w, bias, ops=("BiasAdd",)), np.broadcast_to(bias, (1, 5, 4, 4)))
