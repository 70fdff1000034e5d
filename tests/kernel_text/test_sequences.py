"""Recurrent layers over a whole sequence, by each form of their text, against the CPU's kernels."""

from __future__ import annotations

import numpy as np
import pytest
from fake_cuda.host_compiler import is_there
from harness import kernel_text_nodes
from harness.cuda_plans import run_on_host
from harness.kernel_text_nodes import assert_near, node
from harness.nvrtc import check_compiled, library
from harness.run_op import run_op
from heald.errors import Unimplemented
from heald.runtime.contract.kernel import Bind
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_kernel_text import CUDA_GPU, NODES, OPENCL_CPU, OPENCL_GPU
from heald_kernel_text.recurrent_cells import ACTIVATIONS


def both(test):
    """OpenCL C for CPUs and for GPUs, run by a driver."""
    targets = pytest.mark.parametrize("target", [OPENCL_CPU, OPENCL_GPU], ids=["cpu", "gpu"])
    return targets(pytest.mark.usefixtures("driver")(test))


GATES = {"_GRUSequence": 3, "_LSTMSequence": 4, "_RNNSequence": 1}
STEPS, ROWS, INPUTS, CELLS = 4, 2, 3, 5
LARGE, MANY_ROWS = 130, 17  # cells and rows with launches for each step


def weights(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(np.float32) / np.float32(shape[0] ** 0.5)


def layer(op, *, length=STEPS, steps=STEPS, rows=ROWS, cells=CELLS, inputs=INPUTS, masks=0, peepholes=0):
    """The inputs of a sequence."""
    columns = GATES[op] * cells
    states = [weights(rows, cells, seed=seed) for seed in range(2 if op == "_LSTMSequence" else 1)]
    vectors = [weights(cells, seed=seed) for seed in range(peepholes or op == "_GRUSequence")]
    mask = np.arange(steps * rows).reshape(steps, rows) % 3 != 1
    return [np.int32(length), weights(steps, rows, inputs), *states, weights(inputs, columns), weights(cells, columns),
            weights(columns), *vectors, *[mask] * masks]


def block(*, length=STEPS, cells=CELLS):
    vectors = [weights(cells, seed=seed) for seed in range(3)]
    return [np.int64(length), weights(STEPS, ROWS, INPUTS), weights(ROWS, cells), weights(ROWS, cells, seed=1),
            weights(INPUTS + cells, 4 * cells), *vectors, weights(4 * cells)]


def check(target, op, inputs, **attrs):
    kernel_text_nodes.check(target, op, inputs, **{"T": dtypes.float32} | attrs)


def form_of(target, op, inputs, attrs):
    """The names of the launches behind the product of x."""
    names = {text.name for text in NODES[op].make(target, node(op, inputs, attrs)).launches}
    return {name.rpartition("_")[2] for name in names if name.startswith(op.lstrip("_"))}


@both
@pytest.mark.parametrize("masks", [0, 1])
@pytest.mark.parametrize("op", GATES)
def test_a_small_layer_is_one_launch_behind_its_product(target, op, masks):
    inputs = layer(op, masks=masks)
    attrs = {"T": dtypes.float32, "N": masks}
    assert form_of(target, op, inputs, attrs) == {"row" if target.cpu else "whole"}
    check(target, op, inputs, **attrs)


@both
@pytest.mark.parametrize(("rows", "form"), [(ROWS, "sliced"), (MANY_ROWS, "gates")])
@pytest.mark.parametrize("masks", [0, 1])
@pytest.mark.parametrize("op", GATES)
def test_a_large_layer_has_launches_for_each_step(target, op, masks, rows, form):
    inputs = layer(op, rows=rows, cells=LARGE, masks=masks)
    attrs = {"T": dtypes.float32, "N": masks}
    assert form_of(target, op, inputs, attrs) == {"row" if target.cpu and rows == ROWS else form}
    check(target, op, inputs, **attrs)


@both
@pytest.mark.parametrize("attrs", [
    {"P": 3}, {"cell_clip": 0.05, "proj_clip": 0.02}, {"N": 1, "P": 3, "masked": "zeros", "cell_clip": 0.1},
    {"activation": "relu", "recurrent_activation": "hard_sigmoid"}])
@pytest.mark.parametrize(("cells", "rows"), [(CELLS, ROWS), (LARGE, ROWS), (LARGE, MANY_ROWS)])
def test_the_parts_of_an_lstm(target, cells, attrs, rows):
    inputs = layer("_LSTMSequence", rows=rows, cells=cells, masks=attrs.get("N", 0), peepholes=attrs.get("P", 0))
    check(target, "_LSTMSequence", inputs, **attrs)


@both
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_activation(target, activation):
    """All that the attribute of the ops permits, for states and for gates."""
    check(target, "_GRUSequence", layer("_GRUSequence"), activation=activation, recurrent_activation="sigmoid")
    check(target, "_GRUSequence", layer("_GRUSequence"), activation="tanh", recurrent_activation=activation)


@both
@pytest.mark.parametrize("masks", [0, 1])
def test_a_gru_with_the_reset_in_front_of_the_product(target, masks):
    check(target, "_GRUSequence", layer("_GRUSequence", masks=masks), N=masks, reset_after=False)


@both
@pytest.mark.parametrize("cells", [CELLS, LARGE])
@pytest.mark.parametrize("op", GATES)
def test_a_sequence_that_ends_early_has_zeros_behind(target, op, cells):
    check(target, op, layer(op, length=STEPS - 1, cells=cells))
    check(target, op, layer(op, length=1, cells=cells))


@both
@pytest.mark.parametrize("cells", [CELLS, LARGE])
@pytest.mark.parametrize(("op", "attrs"), [
    ("BlockLSTM", {"forget_bias": 0.5}), ("BlockLSTM", {"use_peephole": True}), ("BlockLSTMV2", {}),
    ("BlockLSTMV2", {"use_peephole": True, "cell_clip": 0.1})])
def test_blocks_give_all_values_of_all_steps(target, op, attrs, cells):
    check(target, op, block(cells=cells), **attrs)
    check(target, op, block(length=STEPS - 2, cells=cells), **attrs)


CUDA_CASES = {  # op, cells, rows, attributes
    **{f"{op} {form}": (op, cells, rows, {"N": 1}) for op in GATES
       for form, cells, rows in (("whole", CELLS, ROWS), ("sliced", LARGE, ROWS), ("gates", LARGE, MANY_ROWS))},
    "peepholes": ("_LSTMSequence", LARGE, ROWS, {"P": 3, "activation": "selu", "recurrent_activation": "softplus"}),
    "reset in front": ("_GRUSequence", CELLS, ROWS, {"reset_after": False, "N": 1, "masked": "zeros"}),
}


def cuda_node(case):
    op, cells, rows, attrs = CUDA_CASES[case]
    inputs = layer(op, rows=rows, cells=cells, masks=attrs.get("N", 0), peepholes=attrs.get("P", 0))
    return node(op, inputs, {"T": dtypes.float32} | attrs), inputs


@pytest.mark.skipif(is_there() is not None, reason=str(is_there()))
@pytest.mark.parametrize("case", CUDA_CASES)
def test_cuda_texts_run_on_the_host(case):
    b, inputs = cuda_node(case)
    got = run_on_host(NODES[b.op].make(CUDA_GPU, b), inputs, [(o.dtype.numpy, o.dims) for o in b.outputs])
    for one, other in zip(got, run_op(b.op, inputs, b.attrs), strict=True):
        assert_near(one, other)


@pytest.mark.skipif(library() is None, reason="needs pip install nvidia-cuda-nvrtc")
@pytest.mark.parametrize("case", CUDA_CASES)
def test_cuda_texts_compile_without_spills(case):
    b, _ = cuda_node(case)
    text = NODES[b.op].make(CUDA_GPU, b).launches[-1]
    assert text.name.startswith(b.op.lstrip("_"))
    check_compiled([text], "sm_90")


@pytest.mark.parametrize(("op", "inputs", "attrs", "reason"), [
    ("_LSTMSequence", [*layer("_LSTMSequence"), weights(CELLS, CELLS)], {"R": 1}, "projection"),
    ("_LSTMSequence", layer("_LSTMSequence", length=STEPS + 1), {}, f"{STEPS + 1} of {STEPS} steps"),
    ("_GRUSequence", layer("_GRUSequence", length=0), {}, "0 of 4 steps"),
    ("_RNNSequence", layer("_RNNSequence", rows=0), {}, "0 rows"),
    ("_GRUSequence", layer("_GRUSequence", cells=LARGE), {"reset_after": False}, "reset in front"),
    ("_RNNSequence", layer("_RNNSequence", steps=2049, length=2049, rows=1, inputs=1, cells=LARGE), {}, "at most 2048"),
    ("BlockLSTM", block(length=STEPS + 1), {}, "steps"),
])
def test_other_layers_are_left_to_the_cpu(op, inputs, attrs, reason):
    with pytest.raises(Unimplemented, match=reason):
        NODES[op].make(CUDA_GPU, node(op, inputs, {"T": dtypes.float32} | attrs))


def test_an_unknown_activation_is_left_to_the_cpu():
    b = node("_GRUSequence", layer("_GRUSequence"), {"T": dtypes.float32})
    b.attrs["activation"] = "swish"
    with pytest.raises(Unimplemented, match="'swish'"):
        NODES[b.op].make(CUDA_GPU, b)


def test_a_length_that_the_run_decides_is_left_to_the_cpu():
    b = node("_GRUSequence", layer("_GRUSequence"), {"T": dtypes.float32})
    late = Bind(b.node, b.op, b.attrs, (info(dtypes.int32, ()), *b.inputs[1:]), b.outputs, b.device, None, {})
    with pytest.raises(Unimplemented, match="not known before the run"):
        NODES[b.op].make(CUDA_GPU, late)


def test_constant_weights_of_a_block_are_packed_once():
    plan = NODES["BlockLSTM"].make(CUDA_GPU, node("BlockLSTM", block(), {"T": dtypes.float32}))
    assert [text.name for text in plan.once(lambda number: number == 4)] == ["copy"]
