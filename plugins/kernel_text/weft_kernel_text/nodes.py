"""The table from ops to plans: what a device plugin registers kernels from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from weft.api import Bind

from . import of_arrays, of_fused, of_images, of_numbers
from .dialect import Target
from .plan import Plan

PlanFunction = Callable[[Target, Bind], Plan]


class NodeKernel(NamedTuple):
    """How an op becomes a plan. `make` raises Unimplemented (then the device declines) or InvalidArgument."""

    make: PlanFunction
    dtypes: Mapping[str, tuple[str, ...]]  # type attribute: the types there is text for
    host: tuple[str, ...] = ()  # inputs read in host memory; `make` needs their values


class FusedKernel(NamedTuple):
    """How several nodes become one plan: see weft's FusionDef. `make` raises Unimplemented where it cannot."""

    make: PlanFunction
    ops: tuple[str, ...]
    heads: tuple[str, ...] = ()
    priority: int = 0


FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = INTEGERS + FLOATS
FIXED = (*NUMBERS, "bool", "complex64")  # what can be copied
T_FLOATS, T_NUMBERS, T_FIXED = {"T": FLOATS}, {"T": NUMBERS}, {"T": FIXED}
T_PRODUCTS = {"T": (*FLOATS, "int32", "int64")}


def _rows() -> Iterator[tuple[str, NodeKernel]]:
    for op, types in of_numbers.elementwise_types().items():
        yield op, NodeKernel(of_numbers.elementwise_node, {"T": types} if types else {})
    for op in ("Select", "SelectV2"):
        yield op, NodeKernel(of_numbers.select, {"T": (*NUMBERS, "bool")})
    yield "Cast", NodeKernel(of_numbers.cast, {"SrcT": (*NUMBERS, "bool"), "DstT": (*NUMBERS, "bool")})
    for op in ("Max", "Mean", "Min", "Prod", "Sum"):
        yield op, NodeKernel(of_numbers.reduction, T_NUMBERS, ("reduction_indices",))
    for op in ("All", "Any"):
        yield op, NodeKernel(of_numbers.reduction, {}, ("reduction_indices",))
    for op in ("ArgMax", "ArgMin"):
        yield op, NodeKernel(of_numbers.arg_reduction, {"T": (*NUMBERS, "bool")}, ("dimension",))
    for op in ("Softmax", "LogSoftmax"):
        yield op, NodeKernel(of_numbers.softmax_node, T_FLOATS)
    yield "MatMul", NodeKernel(of_numbers.matmul_node, T_PRODUCTS)
    yield "BatchMatMulV2", NodeKernel(of_numbers.batch_matmul, T_PRODUCTS)

    yield "Conv2D", NodeKernel(of_images.convolution, T_FLOATS)
    yield "DepthwiseConv2dNative", NodeKernel(of_images.depthwise, T_FLOATS)
    yield "MaxPool", NodeKernel(of_images.pooling, T_NUMBERS)
    yield "AvgPool", NodeKernel(of_images.pooling, T_FLOATS)
    yield "BiasAdd", NodeKernel(of_images.bias_add, T_NUMBERS)
    yield "FusedBatchNorm", NodeKernel(of_images.batch_norm, {"T": ("float32",)})
    for version in ("V2", "V3"):
        yield f"FusedBatchNorm{version}", NodeKernel(of_images.batch_norm, {"T": FLOATS, "U": ("float32",)})

    yield "ConcatV2", NodeKernel(of_arrays.concatenation, T_FIXED, ("axis",))
    yield "Pack", NodeKernel(of_arrays.pack, T_FIXED)
    yield "Unpack", NodeKernel(of_arrays.unpack, T_FIXED)
    yield "Split", NodeKernel(of_arrays.splitting, T_FIXED, ("split_dim",))
    yield "Slice", NodeKernel(of_arrays.slice_, T_FIXED, ("begin", "size"))
    yield "StridedSlice", NodeKernel(of_arrays.strided_slice, T_FIXED, ("begin", "end", "strides"))
    yield "Transpose", NodeKernel(of_arrays.transposition, T_FIXED, ("perm",))
    yield "Tile", NodeKernel(of_arrays.tiling, T_FIXED, ("multiples",))
    yield "Pad", NodeKernel(of_arrays.padding, {"T": (*NUMBERS, "bool")}, ("paddings",))
    yield "PadV2", NodeKernel(of_arrays.padding, {"T": (*NUMBERS, "bool")}, ("paddings",))
    yield "MirrorPad", NodeKernel(of_arrays.mirror_padding, T_FIXED, ("paddings",))
    yield "GatherV2", NodeKernel(of_arrays.gathering, {"Tparams": FIXED, "Tindices": ("int32", "int64")}, ("axis",))
    yield "Fill", NodeKernel(of_arrays.filling, {"T": (*NUMBERS, "bool")}, ("dims",))
    for op in ("OnesLike", "ZerosLike"):
        yield op, NodeKernel(of_arrays.filling_like, {"T": (*NUMBERS, "bool")})
    yield "Shape", NodeKernel(of_arrays.shape, {"T": FIXED, "out_type": ("int32", "int64")})


NODES: dict[str, NodeKernel] = dict(_rows())

FUSIONS: dict[str, FusedKernel] = {
    "Elementwise": FusedKernel(of_fused.chain, of_fused.OPS),
    "Product": FusedKernel(of_fused.product, of_fused.OPS, of_fused.HEADS, priority=1),
}

# Ops that launch nothing: each output is the buffer of the input of its number. Op: inputs in host memory.
ALIASES: dict[str, tuple[str, ...]] = {
    "ExpandDims": ("dim",), "Identity": (), "IdentityN": (), "PlaceholderWithDefault": (), "PreventGradient": (),
    "Reshape": ("shape",), "Snapshot": (), "Squeeze": (), "StopGradient": (),
}
