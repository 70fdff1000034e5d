"""Plans state the bytes that their kernels touch, and are refused for operands of other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.kernel_text_nodes import node
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.contract.kernel import Bind, FusedOp
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, info
from heald_cpu.device import Cpu
from heald_kernel_text import (
    CUDA_GPU,
    FUSIONS,
    INPUT,
    NODES,
    OPENCL_CPU,
    OPENCL_GPU,
    Argument,
    Plan,
    check_plan,
    check_sizes,
)

F = dtypes.float32
X, IMAGES = np.ones((4, 6), np.float32), np.ones((2, 7, 8, 5), np.float32)
i32 = np.int32
CONV = {"strides": (1, 2, 1, 1), "padding": "SAME"}
POOL = {"ksize": (1, 2, 3, 1), "strides": (1, 2, 2, 1), "padding": "VALID", "data_format": "NHWC"}
CELL = [np.ones(shape, np.float32) for shape in ((3, 5), (3, 20), (3, 20), (25, 80), (20,), (20,), (20,), (80,))]
LAYER = [np.ones(shape, np.float32) for shape in ((4, 3, 5), (3, 6), (3, 6), (5, 24), (6, 24), (24,))]
CASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "unary": ("Exp", [X], {}),
    "broadcast": ("AddV2", [X, X[0]], {}),
    "two-byte floats": ("Mul", [X.astype(np.float16), X.astype(np.float16)], {"T": dtypes.float16}),
    "sum of many": ("AddN", [X, X, X], {"N": 3}),
    "selection": ("SelectV2", [X > 0, X, X], {}),
    "cast": ("Cast", [X], {"SrcT": F, "DstT": dtypes.int64}),
    "columns reduced": ("Sum", [X, i32([0])], {}),
    "rows reduced": ("Mean", [X, i32([1])], {}),
    "all reduced": ("Max", [X, i32([0, 1])], {}),
    "place": ("ArgMax", [X, i32(1)], {"output_type": dtypes.int32}),
    "softmax": ("Softmax", [X], {}),
    "product": ("MatMul", [X, X], {"transpose_b": True}),
    "long product": ("MatMul", [np.ones((3, 900), np.float32), np.ones((900, 5), np.float32)], {}),
    "batch": ("BatchMatMulV2", [np.ones((3, 4, 6), np.float32), np.ones((3, 6, 5), np.float32)], {}),
    "einsum": ("Einsum", [np.ones((2, 3, 4), np.float32), np.ones((4, 3, 5), np.float32)],
               {"equation": "abc,cbd->da", "N": 2}),
    "cell": ("LSTMBlockCell", CELL, {"use_peephole": True}),
    "layer": ("_LSTMSequence", [i32(4), *LAYER], {"T": F}),
    "convolution": ("Conv2D", [IMAGES, np.ones((3, 2, 5, 9), np.float32)], CONV),
    "points": ("Conv2D", [IMAGES, np.ones((1, 1, 5, 9), np.float32)], {**CONV, "strides": (1, 1, 1, 1)}),
    "depthwise": ("DepthwiseConv2dNative", [IMAGES, np.ones((3, 2, 5, 2), np.float32)],
                  {**CONV, "strides": (1, 1, 1, 1)}),
    "maximum": ("MaxPool", [IMAGES], POOL),
    "bias": ("BiasAdd", [IMAGES, np.ones(5, np.float32)], {"data_format": "NHWC"}),
    "normalisation": ("FusedBatchNormV3", [IMAGES, *[np.ones(5, np.float32)] * 4], {"U": F, "is_training": False}),
    "concatenation": ("ConcatV2", [X, X, i32(1)], {"N": 2}),
    "pack": ("Pack", [X, X], {"N": 2, "axis": 1}),
    "unpack": ("Unpack", [X], {"num": 6, "axis": 1}),
    "split": ("Split", [i32(1), X], {"num_split": 3, "T": F}),
    "transpose": ("Transpose", [X, i32([1, 0])], {}),
    "reversal": ("ReverseV2", [X, i32([0])], {"Tidx": dtypes.int32}),
    "tile": ("Tile", [X, i32([2, 3])], {}),
    "padding": ("Pad", [X, i32([[1, 0], [2, 3]])], {}),
    "mirror": ("MirrorPad", [X, i32([[1, 2], [3, 0]])], {"mode": "REFLECT"}),
    "gather": ("GatherV2", [X, i32([[0, 3]]), i32(0)], {"Taxis": dtypes.int32}),
    "fill": ("OnesLike", [X], {}),
    "part": ("Slice", [X, i32([1, 2]), i32([3, 2])], {"Index": dtypes.int32}),
    "steps": ("StridedSlice", [X, i32([3, 0]), i32([0, 6]), i32([-1, 2])], {"Index": dtypes.int32}),
}
READ_IN_PART = {"part", "steps", "fill", "maximum"}  # the last elements of an input do not matter
OTHER_LENGTH = {"all reduced", "columns reduced", "gather"}  # a shorter input gives a result of the same shape
TARGETS = pytest.mark.parametrize("target", [OPENCL_CPU, OPENCL_GPU, CUDA_GPU], ids=["cpu", "gpu", "cuda"])


def honest(case: str) -> Bind:
    op, inputs, attrs = CASES[case]
    for attr, source in (("T", 0), ("Tparams", 0), ("Tindices", 1)):
        if attr in ("T",) or op == "GatherV2":
            attrs = {attr: dtypes.of_numpy(np.asarray(inputs[min(source, len(inputs) - 1)]).dtype)} | attrs
    if op == "SelectV2":
        attrs |= {"T": F}
    return node(op, inputs, attrs)


def checked_plan(target: Any, b: Bind) -> Plan:
    """The plan of a node or of fused nodes. Raises Unimplemented when it is refused."""
    plan = (FUSIONS[b.op] if b.fused else NODES[b.op]).make(target, b)
    check_plan(plan, b)
    return plan


def is_refused(target: Any, b: Bind) -> bool:
    try:
        checked_plan(target, b)
    except (Unimplemented, InvalidArgument):
        return True
    return False


@TARGETS
@pytest.mark.parametrize("case", CASES)
def test_a_plan_touches_all_of_its_operands(case: str, target: Any) -> None:
    b = honest(case)
    extents = checked_plan(target, b).extents()
    assert all(extents[Argument("output", i)] == meta.nbytes for i, meta in enumerate(b.outputs))
    read = {a.value: nbytes for a, nbytes in extents.items() if a.kind == INPUT}
    if case not in READ_IN_PART:
        assert read
        assert read == {i: b.inputs[i].meta.nbytes for i in read}


def lies(b: Bind, *, is_shorter: bool) -> Iterator[Bind]:
    """The node with one result longer along an axis, or its first tensor shorter along the first axis."""
    for number, meta in enumerate(b.outputs):
        for dims in others(meta.dims, (1, 50)):
            outputs = tuple(TensorMetadata(meta.dtype, dims) if i == number else o for i, o in enumerate(b.outputs))
            yield Bind("n", b.op, b.attrs, b.inputs, outputs, b.device, None, {})
    if not is_shorter:
        return
    number, x = next((i, x) for i, x in enumerate(b.inputs) if len(x.meta.dims) > 1)
    lie = ValueInfo(TensorMetadata(x.dtype, (x.meta.dims[0] - 1, *x.meta.dims[1:])), x.value)
    inputs = tuple(lie if i == number else one for i, one in enumerate(b.inputs))
    yield Bind("n", b.op, b.attrs, inputs, b.outputs, b.device, None, {})


def others(dims: tuple[int, ...], changes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for axis, length in enumerate(dims):
        for change in changes:
            if length + change > 0:
                yield (*dims[:axis], length + change, *dims[axis + 1 :])


@TARGETS
@pytest.mark.parametrize("case", [case for case in CASES if case not in READ_IN_PART])
def test_a_plan_for_operands_of_other_sizes_is_refused(case: str, target: Any) -> None:
    for lie in lies(honest(case), is_shorter=case not in OTHER_LENGTH):
        assert is_refused(target, lie), ([x.shape for x in lie.inputs], [o.shape for o in lie.outputs])


@TARGETS
def test_fused_nodes_for_operands_of_other_sizes_are_refused(target: Any) -> None:
    shapes = ((5, 9), (9, 33), (33,), (5, 33))
    output = TensorMetadata(F, (5, 33))
    fused = (FusedOp("MatMul", {"T": F, "transpose_a": False, "transpose_b": False}, (0, 1), (4,), (output,)),
             FusedOp("AddV2", {"T": F}, (4, 2), (5,), (output,)), FusedOp("AddV2", {"T": F}, (3, 5), (6,), (output,)))

    def bind_of_shapes(*shapes: tuple[int, ...]) -> Bind:
        inputs = tuple(info(F, shape) for shape in shapes)
        return Bind("n", "Product", {}, inputs, (output,), Cpu(0), None, {}, fused)

    checked_plan(target, bind_of_shapes(*shapes))
    for number, dims in ((0, (4, 9)), (1, (8, 33)), (1, (9, 32)), (2, (32,)), (3, (4, 33))):
        with pytest.raises((Unimplemented, InvalidArgument)):
            checked_plan(target, bind_of_shapes(*(dims if i == number else shape for i, shape in enumerate(shapes))))


@pytest.mark.parametrize("paddings", [[[0, 0], [9, 0]], [[0, 9], [0, 0]]])
def test_a_mirror_wider_than_its_image_is_refused(paddings: list[list[int]]) -> None:
    op, (x, _), attrs = CASES["mirror"]
    b = honest("mirror")
    dims = tuple(n + sum(pads) for n, pads in zip(x.shape, paddings, strict=True))
    lie = Bind("n", op, b.attrs | attrs, (b.inputs[0], ValueInfo(b.inputs[1].meta, i32(paddings))),
               (TensorMetadata(F, dims),), b.device, None, {})
    for target in (OPENCL_CPU, OPENCL_GPU):
        with pytest.raises(Unimplemented, match="contradict each other"):
            checked_plan(target, lie)


def test_buffers_are_compared_with_the_text() -> None:
    (text,) = checked_plan(OPENCL_GPU, honest("softmax")).launches
    count = len(text.arguments) - 2
    sizes = [X.nbytes, X.nbytes, *[None] * count]
    check_sizes(text, sizes)
    for number in (0, 1):
        less = [size if i != number else X.nbytes - 1 for i, size in enumerate(sizes)]
        with pytest.raises(InvalidArgument, match=r"95 bytes, where kernel 'Softmax' touches 96"):
            check_sizes(text, less)
