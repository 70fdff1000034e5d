"""CUDA texts of products and convolutions, run on the host: every tile, split or not, with and without tensor cores.

PTX instructions are the only lines that do not run: tests/fake_cuda/cuda_host.h defines their names in C++.
"""

import os
from dataclasses import replace
from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
from fake_cuda.host_compiler import is_there
from harness.cuda_plans import run_on_host
from harness.kernel_text_nodes import assert_near, node, numbers
from harness.network_problems import problems
from harness.run_op import run_op
from heald.runtime.values import dtypes
from heald_kernel_text import (
    CHANNEL,
    CUDA_GPU,
    FULL,
    Epilogue,
    Literal,
    Step,
    Window,
    bias,
    conv2d,
    gemm_gpu,
    matmul,
)
from heald_kernel_text.dialect import PRODUCTS
from heald_kernel_text.gemm_problem import GemmProblem
from heald_kernel_text.tiles import FMA, FMA_OF_EIGHT_BYTES, MMA, choose_tile
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.skipif(is_there() is not None, reason=str(is_there()))

F = dtypes.float32
IS_SLOW = "HEALDTEST_ARCHITECTURES" in os.environ
LARGEST_WORK = 1 << 62 if IS_SLOW else 12 << 20  # multiplications of a network's problem
CORES = [(products, tile) for products in PRODUCTS for tile in (FMA if products == "float32" else MMA)]
fast = settings(max_examples=12 if IS_SLOW else 2, deadline=None)
seeds = st.integers(0, 1000).map(np.random.default_rng)
each_core = pytest.mark.parametrize(
    ("products", "tile"), CORES, ids=[f"{products}-{tile.rows}x{tile.columns}" for products, tile in CORES])


def force_tile(tile, parts):
    return patch.object(gemm_gpu, "choose_tile", lambda *_: (tile, parts))


def target(products):
    return replace(CUDA_GPU, products=products)


@each_core
@fast
@given(rng=seeds, lengths=st.tuples(st.integers(1, 150), st.integers(0, 90), st.integers(1, 150)),
       turns=st.tuples(st.booleans(), st.booleans()), parts=st.sampled_from([1, 3]))
def test_every_tile_multiplies_matrices_of_any_size(products, tile, rng, lengths, turns, parts):
    m, k, n = lengths
    a, b = numbers(rng, (m, k), np.float32), numbers(rng, (k, n), np.float32)  # exact in every type
    stored = [x.T if turn else x for x, turn in zip((a, b), turns, strict=True)]
    with force_tile(tile, parts):
        plan = matmul(target(products), F, stored[0].shape, stored[1].shape, transpose_x=turns[0], transpose_y=turns[1])
    assert len(plan.launches) == (2 if parts > 1 else 1)
    (got,) = run_on_host(plan, stored, [(np.float32, (m, n))])
    np.testing.assert_array_equal(got, a @ b)


@pytest.mark.parametrize("products", ["float32", "tf32"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_product_ends_with_bias_residual_and_activation(products, parts):
    rng = np.random.default_rng(0)
    a, b, add, residual = (numbers(rng, s, np.float32) for s in ((3, 10, 40), (40, 70), (70,), (3, 10, 70)))
    steps = (Step("AddV2", (0, 1)), Step("AddV2", (3, 2)), Step("Relu6", (4,)), Step("Mul", (5, Literal(0.5))))
    with force_tile((FMA if products == "float32" else MMA)[2], parts):
        plan = matmul(target(products), F, a.shape, b.shape, epilogue=Epilogue(steps, ((F, CHANNEL), (F, FULL))))
    (got,) = run_on_host(plan, [a, b, add, residual], [(np.float32, residual.shape)])
    assert_near(got, np.clip(a @ b + add + residual, 0, 6) * np.float32(0.5))


@each_core
def test_every_tile_convolves(products, tile):
    rng = np.random.default_rng(0)
    for (h, w, c), (kernel, stride, before, filters, groups), parts in (
            ((9, 11, 5), (3, 2, 1, 33, 1), 1), ((7, 7, 6), (3, 1, 1, 20, 2), 2), ((5, 6, 17), (1, 1, 0, 40, 1), 2)):
        x = numbers(rng, (2, h, w, c), np.float32)
        f = numbers(rng, (kernel, kernel, c // groups, filters), np.float32)
        attrs = {"T": F, "strides": (1, stride, stride, 1), "padding": "EXPLICIT" if before else "VALID",
                 "explicit_paddings": (0, 0, before, before, before, before, 0, 0) if before else ()}
        want = run_op("Conv2D", [x, f], attrs)[0]
        window = Window(x.shape, (kernel, kernel), (stride, stride), (1, 1), want.shape[1:3], (before, before))
        with force_tile(tile, parts):
            plan = conv2d(target(products), F, f.shape, window, bias(F, Step("Relu", (2,))))
        add = numbers(rng, (filters,), np.float32)
        (got,) = run_on_host(plan, [x, f, add], [(np.float32, want.shape)])
        assert_near(got, np.maximum(want + add, 0))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.int64], ids=str)
def test_products_of_other_types(dtype):
    rng = np.random.default_rng(0)
    tiles = FMA_OF_EIGHT_BYTES if np.dtype(dtype).itemsize == 8 else FMA if dtype == np.int32 else MMA
    a, b = numbers(rng, (2, 70, 33), dtype), numbers(rng, (2, 33, 65), dtype)
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    for tile in tiles:
        for parts in (1, 2):
            with force_tile(tile, parts):
                plan = matmul(CUDA_GPU, dtypes.of_numpy(np.dtype(dtype)), a.shape, b.shape)
            (got,) = run_on_host(plan, [a, b], [(dtype, want.shape)])
            assert_near(got, want)


@pytest.mark.parametrize(("products", "digits"), [("tf32", 10), ("float16", 10), ("bfloat16", 7)])
def test_tensor_cores_round_operands_and_not_sums(products, digits):
    a, b = np.float32([[1 + 2.0**-digits, 1 + 2.0 ** -(digits + 2)]]), np.float32([[1, 0], [0, 1]])
    (got,) = run_on_host(matmul(target(products), F, a.shape, b.shape), [a, b], [(np.float32, (1, 2))])
    np.testing.assert_array_equal(got, np.float32([[1 + 2.0**-digits, 1]]))
    a, b = np.float32([[1, 1]]), np.float32([[1], [2.0**-20]])
    (got,) = run_on_host(matmul(target(products), F, a.shape, b.shape), [a, b], [(np.float32, (1, 1))])
    assert got.item() == 1 + 2.0**-20


def test_a_device_without_tensor_cores_multiplies_all_types_without_them():
    for dtype in (F, dtypes.float16, dtypes.bfloat16):
        old = replace(CUDA_GPU, tensor_cores=False, products="tf32")
        assert all("heald_mma" not in text.source for text in matmul(old, dtype, (64, 64), (64, 64)).launches)


# The choice of a tile


def problem(rows, inner, columns, batch=1):
    return GemmProblem(F, batch, rows, inner, columns, columns, 1, 0, columns, rows * columns)


def test_large_products_have_large_tiles_and_long_narrow_ones_are_cut_into_parts():
    gpu = replace(CUDA_GPU, processors=128)
    assert choose_tile(gpu, problem(8192, 1024, 8192), FMA) == (FMA[0], 1)
    tile, parts = choose_tile(gpu, problem(49, 4608, 512), FMA)
    assert parts > 1
    assert tile.rows <= 64
    assert choose_tile(gpu, problem(1, 1280, 1000), FMA)[0].rows == 16


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 64), st.integers(1, 200))
def test_parts_are_long_and_their_sums_fit_into_scratch_memory(rows, inner, columns, batch, processors):
    _, parts = choose_tile(replace(CUDA_GPU, processors=processors), problem(rows, inner, columns, batch), FMA)
    assert parts == 1 or (inner // parts >= 64 and parts * batch * rows * columns * 4 <= 32 << 20)


# The problems of the networks


def work(bind):
    """Multiplications of a product; 0 for other nodes."""
    for op_node in (bind, *bind.fused):
        if op_node.op == "Conv2D" and op_node.outputs:
            kernel = _shape(bind, op_node, 1)
            return int(np.prod(op_node.outputs[0].dims)) * int(np.prod(kernel[:3]))
    return 0


def _shape(bind, op_node, index):
    return bind.inputs[op_node.args[index] if op_node is not bind else index].meta.dims


def smallest():
    """For each distinct list of texts of a convolution the problem with the least work."""
    problem_of_texts = {}
    for problem in problems():
        texts = tuple(text.source for text in problem.plan(CUDA_GPU).launches)
        smaller = texts not in problem_of_texts or work(problem.bind) < work(problem_of_texts[texts].bind)
        if work(problem.bind) and smaller:
            problem_of_texts[texts] = problem
    small_problems = [problem for problem in problem_of_texts.values() if work(problem.bind) <= LARGEST_WORK]
    return sorted(small_problems, key=lambda problem: work(problem.bind))


@pytest.mark.parametrize("products", ["float32", *(["tf32"] * IS_SLOW)])
def test_convolutions_of_the_networks(products):
    rng = np.random.default_rng(0)
    cases = smallest()
    assert len(cases) >= 5
    for problem in cases:
        inputs = [(rng.standard_normal(x.meta.dims) / 4).astype(np.float32) if x.value is None else x.value
                  for x in problem.bind.inputs]
        want = reference(problem.bind, inputs)
        (got,) = run_on_host(problem.plan(target(products)), inputs, [(np.float32, want.shape)])
        scale = max(float(want.std()), 1e-3)
        assert np.abs(got - want).max() < (2e-5 if products == "float32" else 2e-2) * scale, problem.bind.op


def reference(bind, inputs):
    if not bind.fused:
        return run_op(bind.op, inputs, dict(bind.attrs))[0]
    values = dict(enumerate(inputs))
    for op_node in bind.fused:
        results = run_op(op_node.op, [values[a] for a in op_node.args], dict(op_node.attrs))
        values |= dict(zip(op_node.results, results, strict=False))
    return values[bind.fused[-1].results[0]]


def test_the_node_of_a_harness_is_that_of_a_network():
    """The recorded problems have all attributes that plans read."""
    x, f = np.zeros((1, 4, 4, 3), np.float32), np.zeros((3, 3, 3, 8), np.float32)
    conv_node = node("Conv2D", [x, f], {"T": F, "strides": (1, 1, 1, 1), "padding": "SAME"})
    for problem in problems():
        if problem.bind.op == "Conv2D":
            assert set(conv_node.attrs) - {"explicit_paddings"} <= set(problem.bind.attrs)
