"""The table from ops to plans, from which a device plugin registers its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from heald.api import Bind

from . import array_plans, fused_plans, image_plans, math_plans
from .dialect import Target
from .einsum import einsum
from .lstm import lstm_cell
from .plan import Plan
from .sequences import sequence

PlanFunction = Callable[[Target, Bind], Plan]


class NodeKernel(NamedTuple):
    """The maker of an op's plans. `make` raises Unimplemented (then the device declines) or InvalidArgument."""

    make: PlanFunction
    dtypes: Mapping[str, tuple[str, ...]]  # type attribute: the types with kernel text
    host: tuple[str, ...] = ()  # inputs read in host memory; `make` needs their values


class FusedKernel(NamedTuple):
    """The maker of one plan for several nodes (heald's FusionDef). `make` raises Unimplemented for other groups."""

    make: PlanFunction
    ops: tuple[str, ...]
    heads: tuple[str, ...] = ()
    priority: int = 0


FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = INTEGERS + FLOATS
FIXED = (*NUMBERS, "bool", "complex64")  # the types that can be copied
T_FLOATS, T_NUMBERS, T_FIXED = {"T": FLOATS}, {"T": NUMBERS}, {"T": FIXED}
T_PRODUCTS = {"T": (*FLOATS, "int32", "int64")}


def _rows() -> Iterator[tuple[str, NodeKernel]]:
    for op, types in math_plans.elementwise_types().items():
        yield op, NodeKernel(math_plans.elementwise_node, {"T": types} if types else {})
    for op in ("AccumulateNV2", "AddN"):
        yield op, NodeKernel(math_plans.add_n, T_NUMBERS)
    for op in ("Select", "SelectV2"):
        yield op, NodeKernel(math_plans.select, {"T": (*NUMBERS, "bool")})
    yield "Cast", NodeKernel(math_plans.cast, {"SrcT": (*NUMBERS, "bool"), "DstT": (*NUMBERS, "bool")})
    for op in ("Max", "Mean", "Min", "Prod", "Sum"):
        yield op, NodeKernel(math_plans.reduction, T_NUMBERS, ("reduction_indices",))
    for op in ("All", "Any"):
        yield op, NodeKernel(math_plans.reduction, {}, ("reduction_indices",))
    for op in ("ArgMax", "ArgMin"):
        yield op, NodeKernel(math_plans.arg_reduction, {"T": (*NUMBERS, "bool")}, ("dimension",))
    for op in ("Softmax", "LogSoftmax"):
        yield op, NodeKernel(math_plans.softmax_node, T_FLOATS)
    yield "MatMul", NodeKernel(math_plans.matmul_node, T_PRODUCTS)
    yield "BatchMatMulV2", NodeKernel(math_plans.matmul_node, T_PRODUCTS)
    yield "Einsum", NodeKernel(einsum, T_PRODUCTS)
    yield "LSTMBlockCell", NodeKernel(lstm_cell, {"T": ("float32",)})
    for op in ("_GRUSequence", "_LSTMSequence", "_RNNSequence"):
        yield op, NodeKernel(sequence, {"T": ("float32",)}, ("length",))
    for op in ("BlockLSTM", "BlockLSTMV2"):
        yield op, NodeKernel(sequence, {"T": ("float32",)}, ("seq_len_max",))

    yield "Conv2D", NodeKernel(image_plans.convolution, T_FLOATS)
    yield "DepthwiseConv2dNative", NodeKernel(image_plans.depthwise, T_FLOATS)
    yield "MaxPool", NodeKernel(image_plans.pooling, T_NUMBERS)
    yield "AvgPool", NodeKernel(image_plans.pooling, T_FLOATS)
    yield "BiasAdd", NodeKernel(image_plans.bias_add, T_NUMBERS)
    yield "FusedBatchNorm", NodeKernel(image_plans.batch_norm, {"T": ("float32",)})
    for version in ("V2", "V3"):
        yield f"FusedBatchNorm{version}", NodeKernel(image_plans.batch_norm, {"T": FLOATS, "U": ("float32",)})

    yield "ConcatV2", NodeKernel(array_plans.concatenation, T_FIXED, ("axis",))
    yield "Pack", NodeKernel(array_plans.pack, T_FIXED)
    yield "Unpack", NodeKernel(array_plans.unpack, T_FIXED)
    yield "Split", NodeKernel(array_plans.splitting, T_FIXED, ("split_dim",))
    yield "Slice", NodeKernel(array_plans.slice_, T_FIXED, ("begin", "size"))
    yield "StridedSlice", NodeKernel(array_plans.strided_slice, T_FIXED, ("begin", "end", "strides"))
    yield "ReverseV2", NodeKernel(array_plans.reversal, T_FIXED, ("axis",))
    yield "Transpose", NodeKernel(array_plans.transposition, T_FIXED, ("perm",))
    yield "Tile", NodeKernel(array_plans.tiling, T_FIXED, ("multiples",))
    yield "Pad", NodeKernel(array_plans.padding, {"T": (*NUMBERS, "bool")}, ("paddings",))
    yield "PadV2", NodeKernel(array_plans.padding, {"T": (*NUMBERS, "bool")}, ("paddings",))
    yield "MirrorPad", NodeKernel(array_plans.mirror_padding, T_FIXED, ("paddings",))
    yield "GatherV2", NodeKernel(array_plans.gathering, {"Tparams": FIXED, "Tindices": ("int32", "int64")}, ("axis",))
    yield "Fill", NodeKernel(array_plans.filling, {"T": (*NUMBERS, "bool")}, ("dims",))
    for op in ("OnesLike", "ZerosLike"):
        yield op, NodeKernel(array_plans.filling_like, {"T": (*NUMBERS, "bool")})
    yield "Shape", NodeKernel(array_plans.shape, {"T": FIXED, "out_type": ("int32", "int64")})


NODES: dict[str, NodeKernel] = dict(_rows())

FUSIONS: dict[str, FusedKernel] = {
    "Elementwise": FusedKernel(fused_plans.chain, fused_plans.OPS),
    "Product": FusedKernel(fused_plans.product, fused_plans.OPS, tuple(fused_plans.HEADS), priority=1),
}

# Ops that launch nothing: each output is the buffer of the input with its index. Op: inputs in host memory.
ALIASES: dict[str, tuple[str, ...]] = {
    "ExpandDims": ("dim",), "Identity": (), "IdentityN": (), "PlaceholderWithDefault": (), "PreventGradient": (),
    "Reshape": ("shape",), "Snapshot": (), "Squeeze": (), "StopGradient": (),
}
