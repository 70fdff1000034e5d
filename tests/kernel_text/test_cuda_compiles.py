"""CUDA texts compile without a GPU, need no spilled registers in float32, and have the parameters that launches pass.

The gate compiles for sm_90. HEALDTEST_ARCHITECTURES names others, as `make slow` does.
"""

import os
from dataclasses import replace

import pytest
from harness.network_problems import problems
from harness.nvrtc import CompileError, compile_texts, library
from harness.nvrtc import check_compiled as check
from heald.runtime.values import dtypes
from heald_kernel_text import CUDA_GPU, Step, elementwise, has, matmul
from heald_kernel_text.dialect import PRODUCTS
from heald_kernel_text.element_types import ELEMENTS
from heald_kernel_text.elementwise_ops import OPS

pytestmark = pytest.mark.skipif(library() is None, reason="needs pip install nvidia-cuda-nvrtc")

IS_SLOW = "HEALDTEST_ARCHITECTURES" in os.environ
ARCHITECTURES = os.environ.get("HEALDTEST_ARCHITECTURES", "sm_90").split()
on_all = pytest.mark.parametrize("architecture", ARCHITECTURES)
F = dtypes.float32


def network_texts(target):
    texts = {text.source: text for problem in problems() for text in problem.plan(target).launches}
    return list(texts.values())


@on_all
@pytest.mark.parametrize("part", range(8))
def test_every_text_of_the_networks_compiles_without_spills(architecture, part):
    check(network_texts(CUDA_GPU)[part::8], architecture)


@on_all
@pytest.mark.parametrize("products", PRODUCTS[1:] if IS_SLOW else ["tf32"])
def test_every_product_of_the_networks_compiles_for_tensor_cores(architecture, products):
    """In the gate only TF32, and without the texts that differ in their epilogue only."""
    texts = [text for text in network_texts(replace(CUDA_GPU, products=products)) if "heald_mma" in text.source]
    check([text for text in texts if IS_SLOW or "_" not in text.name.removesuffix("_parts")], architecture)


@on_all
@pytest.mark.parametrize("dtype", ELEMENTS, ids=lambda dtype: dtype.name)
def test_every_elementwise_op_compiles_without_spills(architecture, dtype):
    texts = []
    for op, row in OPS.items():
        if has(op, dtype):
            operands = [(dtypes.bool_, (3,))] * row.typed_by + [(dtype, (3,))] * (row.arity - row.typed_by)
            texts += elementwise(CUDA_GPU, (Step(op, tuple(range(row.arity))),), operands).launches
    check(texts, architecture)


@on_all
def test_casts_compile_between_all_types(architecture):
    steps = [Step("Cast", (0,), target) for target in ELEMENTS]
    check([text for source in ELEMENTS
           for text in elementwise(CUDA_GPU, steps, [(source, (3,))], range(1, 1 + len(steps))).launches], architecture)


@on_all
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64, dtypes.int32, dtypes.int64])
def test_products_of_other_types_compile(architecture, dtype):
    texts = [text for m, k, n in ((512, 64, 512), (16, 2048, 64)) for turned in (False, True)
             for text in matmul(CUDA_GPU, dtype, (m, k), (n, k) if turned else (k, n), transpose_y=turned).launches]
    check(texts, architecture)


def test_a_launch_with_another_number_of_arguments_is_found():
    (text,) = elementwise(CUDA_GPU, (Step("Neg", (0,)),), [(F, (3,))]).launches
    with pytest.raises(AssertionError, match="Neg"):
        check([replace(text, arguments=text.arguments[:-1])], "sm_90")
    with pytest.raises(AssertionError, match="Neg"):
        check([replace(text, local_size=(64,))], "sm_90")


def test_a_text_that_does_not_compile_is_an_error():
    (text,) = elementwise(CUDA_GPU, (Step("Neg", (0,)),), [(F, (3,))]).launches
    with pytest.raises(CompileError, match="undefined"):
        compile_texts(text.source.replace("-v0", "-nonsense"), "sm_90")
