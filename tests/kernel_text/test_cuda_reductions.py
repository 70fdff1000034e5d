"""CUDA texts that combine values across a group's threads, run on the host: reductions and softmax."""

import ml_dtypes
import numpy as np
import pytest
from fake_cuda.host_compiler import is_there
from harness.cuda_plans import run_on_host
from harness.kernel_text_nodes import assert_near, node, numbers
from harness.run_op import run_op
from heald.runtime.values import dtypes
from heald_kernel_text import CUDA_GPU, NODES

pytestmark = pytest.mark.skipif(is_there() is not None, reason=str(is_there()))
TYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int32, np.int64, np.uint8)


def check(op, inputs, **attrs):
    b = node(op, inputs, attrs)
    got = run_on_host(NODES[op].make(CUDA_GPU, b), inputs, [(o.dtype.numpy, o.dims) for o in b.outputs])
    for one, other in zip(got, run_op(op, inputs, attrs), strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_reductions_along_the_last_axis(dtype):
    rng, kind = np.random.default_rng(0), dtypes.of_numpy(np.dtype(dtype))
    for columns in (1, 31, 33, 256, 700):
        x = numbers(rng, (3, columns), dtype)
        for op in ("Max", "Min", *(["Sum", "Mean"] if columns < 300 else [])):
            signs = np.where(x > 0, 1, 0).astype(dtype) if op in ("Sum", "Mean") else x
            check(op, [signs, np.int32([1])], T=kind, keep_dims=False)


@pytest.mark.parametrize(("shape", "axes", "launches"), [
    ((1 << 14,), [0], 2), ((2, 3, 5 << 11), [2], 2), ((4, 8, 1024), [0, 1, 2], 2), ((1 << 12,), [0], 2),
    ((2047,), [0], 1), ((4099,), [0], 1), ((200, 1 << 12), [1], 1), ((2, 4, 3, 1 << 12), [1, 3], 1)], ids=str)
def test_long_rows_are_reduced_in_pieces(shape, axes, launches):
    """Rows are cut where they are few, where they are long, and where their length has divisors."""
    rng = np.random.default_rng(1)
    x = numbers(rng, shape, np.float32)
    inputs = [x, np.int32(axes)]
    b = node("Max", inputs, {"T": dtypes.float32, "keep_dims": False})
    assert len(NODES["Max"].make(CUDA_GPU, b).launches) == launches
    for op in ("Max", "Min"):
        check(op, inputs, T=dtypes.float32, keep_dims=False)
    small = rng.integers(-3, 4, shape).astype(np.float32)  # sums of such numbers are exact in any order
    for op in ("Sum", "Mean"):
        check(op, [small, np.int32(axes)], T=dtypes.float32, keep_dims=False)
    check("Mean", [rng.integers(0, 50, shape, np.int32), np.int32(axes)], T=dtypes.int32, keep_dims=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64], ids=str)
def test_softmax(dtype):
    rng = np.random.default_rng(0)
    for columns in (1, 33, 600):
        for op in ("Softmax", "LogSoftmax"):
            check(op, [numbers(rng, (3, columns), dtype)], T=dtypes.of_numpy(np.dtype(dtype)))


def test_nan_wins_a_maximum_in_every_lane():
    for column in (0, 31, 32, 255, 256, 299):
        x = np.zeros((1, 300), np.float32)
        x[0, column] = np.nan
        check("Max", [x, np.int32([1])], T=dtypes.float32)
