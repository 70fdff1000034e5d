"""Resizes and their gradients: TensorFlow's semantics."""

import heald
import ml_dtypes
import numpy as np
import pytest
from harness.call_op import same
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
INF, NAN = np.inf, np.nan
WEIGHTED = ["ResizeArea", "ResizeBicubic", "ResizeBilinear"]
side = st.integers(1, 9)
centers = st.sampled_from([{}, {"align_corners": True}, {"half_pixel_centers": True}])


def resize(op, x, size, **attrs):
    return run_op(op, [x, np.array(size, np.int32)], {"T": dtypes.of_numpy(x.dtype)} | attrs)[0]


def grad(op, g, other, **attrs):
    return run_op(op, [g, other], {"T": dtypes.of_numpy(g.dtype)} | attrs)[0]


def scale(x, size, by, move, op="ScaleAndTranslate", **attrs):
    second = np.array(size, np.int32) if op == "ScaleAndTranslate" else np.zeros(size, np.float32)
    inputs = [x, second, np.array(by, np.float32), np.array(move, np.float32)]
    return run_op(op, inputs, {"T": dtypes.of_numpy(x.dtype)} | attrs)[0]


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def without(attrs, op):
    return {k: v for k, v in attrs.items() if op != "ResizeArea" or k == "align_corners"}


@fast
@given(st.sampled_from([*WEIGHTED, "ResizeNearestNeighbor"]), side, side, side, side, centers)
def test_an_even_image_stays_even(op, height, width, rows, columns, attrs):
    got = resize(op, np.full((1, height, width, 2), 3, np.float32), (rows, columns), **without(attrs, op))
    np.testing.assert_allclose(got, np.full((1, rows, columns, 2), 3), rtol=1e-5)


@fast
@given(st.sampled_from([*WEIGHTED, "ResizeNearestNeighbor"]), side, side, centers, st.sampled_from([1, 20]))
def test_an_image_of_the_wanted_size_stays_as_it_is(op, height, width, attrs, channels):
    x = random(2, height, width, channels)
    np.testing.assert_allclose(resize(op, x, (height, width), **without(attrs, op)), x, atol=1e-6)


def test_bilinear_corners_and_centers():
    x = np.array([0, 10], np.uint8).reshape(1, 1, 2, 1)
    for attrs, want in (({}, [0, 5, 10, 10]), ({"align_corners": True}, [0, 10 / 3, 20 / 3, 10]),
                        ({"half_pixel_centers": True}, [0, 2.5, 7.5, 10])):
        got = resize("ResizeBilinear", x, (1, 4), **attrs)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got.reshape(-1), want, rtol=1e-6)


def test_nearest_rounds_halves_up_between_corners():
    x = np.arange(4, dtype=np.int16).reshape(1, 1, 4, 1)
    np.testing.assert_array_equal(resize("ResizeNearestNeighbor", x, (1, 3), align_corners=True).reshape(-1), [0, 2, 3])


@pytest.mark.parametrize("op", WEIGHTED)
def test_large_images_are_summed_block_by_block(op):
    x = np.random.default_rng(0).random((2, 90, 80, 20), np.float32)
    got = resize(op, x, (130, 120))
    for n, channels in ((0, slice(0, 3)), (1, slice(17, 20))):
        np.testing.assert_allclose(got[n : n + 1, :, :, channels], resize(op, x[n : n + 1, :, :, channels], (130, 120)),
                                   rtol=1e-5, atol=1e-6)


def test_a_pixel_outside_an_area_does_not_count_even_where_it_is_infinite():
    x = np.array([1, 2, INF, 4, 5], np.float32).reshape(1, 1, 5, 1)
    assert resize("ResizeArea", x, (1, 5)).reshape(-1).tolist() == [1, 2, INF, 4, 5]


def test_equal_sizes_copy_what_interpolation_would_make_nan():
    x = np.full((1, 2, 2, 1), INF, np.float32)
    np.testing.assert_array_equal(resize("ResizeBilinear", x, (2, 2)), x)
    assert np.isnan(resize("ResizeBilinear", x, (3, 3))).all()


@fast
@given(st.sampled_from(["ResizeBicubic", "ResizeBilinear"]), side, side, side, side, centers)
def test_a_gradient_is_the_transposed_resize(op, height, width, rows, columns, attrs):
    """<resize(x), g> == <x, grad(g)>."""
    rng = np.random.default_rng(1)
    x, g = rng.random((1, height, width, 2), np.float32), rng.random((1, rows, columns, 2), np.float32)
    left = (resize(op, x, (rows, columns), **attrs) * g).sum()
    np.testing.assert_allclose((x * grad(f"{op}Grad", g, x, **attrs)).sum(), left, rtol=1e-4)


@fast
@given(side, side, side, side, centers)
def test_the_gradient_of_nearest_neighbor_is_transposed_too(height, width, rows, columns, attrs):
    x, g = random(1, height, width, 3), random(1, rows, columns, 3)
    left = (resize("ResizeNearestNeighbor", x, (rows, columns), **attrs) * g).sum()
    got = grad("ResizeNearestNeighborGrad", g, np.array((height, width), np.int32), **attrs)
    assert (x * got).sum() == left


def test_gradients_wrap_around_in_small_integers_and_sum_half_precision_in_float32():
    size = np.array([1, 1], np.int32)
    assert grad("ResizeNearestNeighborGrad", np.full((1, 20, 20, 1), 1, np.uint8), size).item() == 400 % 256
    for dtype in (np.float16, ml_dtypes.bfloat16):
        assert grad("ResizeNearestNeighborGrad", np.ones((1, 64, 64, 1), dtype), size).item() == 4096


@pytest.mark.parametrize("kernel", ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic",
                                    "mitchellcubic"])
def test_every_sampling_kernel_weighs_to_one_and_has_a_gradient(kernel):
    x, g = random(1, 6, 7, 1), random(1, 4, 9, 1)
    placed = {"by": (0.7, 1.3), "move": (0.5, -0.25), "kernel_type": kernel}
    got = scale(x, (4, 9), **placed)
    np.testing.assert_allclose(scale(np.ones_like(x), (4, 9), (0.7, 1.3), (0, 0), kernel_type=kernel)[:, :4, :9], 1,
                               rtol=1e-5)
    back = scale(g, x.shape, op="ScaleAndTranslateGrad", **placed)
    np.testing.assert_allclose((back * x).sum(), (got * g).sum(), rtol=1e-3, atol=1e-3)


def test_pixels_outside_a_translated_image_are_zero():
    got = scale(np.ones((1, 2, 2, 1), np.float32), (2, 4), (1, 1), (0, 2), kernel_type="box")
    np.testing.assert_array_equal(got[0, :, :, 0], [[0, 0, 1, 1]] * 2)


def test_resizes_that_are_not_defined_are_refused():
    x = random(1, 2, 2, 1)
    for op in (*WEIGHTED, "ResizeNearestNeighbor"):
        for image, size in ((x[0], (2, 2)), (x[:, :0], (2, 2)), (x[..., :0], (2, 2)), (x, (0, 2)), (x, (2, 2, 2)),
                            (x, 2)):
            with pytest.raises(InvalidArgument):
                resize(op, image, size)
    with pytest.raises(InvalidArgument, match="align_corners"):
        resize("ResizeBilinear", x, (2, 2), align_corners=True, half_pixel_centers=True)
    with pytest.raises(InvalidArgument, match="greater than zero"):
        scale(x, (2, 2), (0, 1), (0, 0))
    with pytest.raises(InvalidArgument, match="kernel_type"):
        scale(x, (2, 2), (1, 1), (0, 0), kernel_type="sinc")


def test_unknown_lengths_stay_unknown():
    attrs = {"align_corners": False, "half_pixel_centers": False}
    images, size = info(dtypes.uint8, (None, None, 5, 3)), info(dtypes.int32, None)
    got = RULES["ResizeBilinear"].function(attrs, images, size)
    assert (got.dtype, got.shape) == (dtypes.float32, (None, None, None, 3))
    assert RULES["ResizeNearestNeighbor"].function(attrs, info(dtypes.uint8, None), size).shape == (None,) * 4


@pytest.mark.parametrize("op", ["ResizeBilinearGrad", "ResizeBicubicGrad"])
def test_there_is_no_gradient_for_images_without_pixels_but_for_no_images(op):
    def gradient(grads, original):
        inputs = [np.ones(grads, np.float32), np.ones(original, np.float32)]
        return run_op(op, inputs, {"T": dtypes.float32})[0]

    for original in ((1, 0, 0, 2), (1, 3, 0, 2)):
        with pytest.raises(InvalidArgument, match="original dimensions must be positive"):
            gradient((1, 2, 2, 2), original)
    assert gradient((0, 2, 2, 2), (0, 3, 3, 2)).shape == (0, 3, 3, 2)


def test_each_run_obeys_the_scale_that_it_is_given():
    x = random(1, 4, 4, 1)
    graph = Graph([Node("x", "Const", attrs={"dtype": dtypes.float32, "value": x}),
                   Node("size", "Const", attrs={"dtype": dtypes.int32, "value": np.int32([4, 4])}),
                   *(Node(n, "Placeholder", attrs={"dtype": dtypes.float32, "shape": None}) for n in ("by", "move")),
                   Node("y", "ScaleAndTranslate", ["x", "size", "by", "move"], attrs={"T": dtypes.float32})])
    with heald.Session(graph) as session:
        for by, move in (([1, 1], [0, 0]), ([2, 1], [0, 0]), ([2, 1], [1, 0]), ([1, 1], [0, 0])):
            got = session.run("y", {"by": np.float32(by), "move": np.float32(move)})
            same(got, scale(x, (4, 4), by, move))
