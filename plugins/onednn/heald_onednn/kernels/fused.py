"""Fused products: a product and the ops after it as one primitive. An op before a convolution goes into it, too:
padding of the images, or a factor for each channel."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from heald.api import Bind, FusedOp, Kernels, errors

from ..epilogue import OPS, ROUNDING, broadcast, epilogue
from ..memory import FLOAT, dense
from ..primitives import NativeKernel
from .binding import Head, declining, left_to_numpy
from .convolution import CONVOLUTIONS, heads
from .matmul import batch_matmul, matmul, operands_of

PADDING, GATE, EINSUM = "Pad", "Mul", "Einsum"
PRODUCTS: Mapping[str, Head] = {"BatchMatMulV2": batch_matmul, "MatMul": matmul}


def product(b: Bind, by_op: Mapping[str, Head]) -> NativeKernel:
    head = next((node for node in b.fused if node.op in by_op or node.op == EINSUM), None)
    if head is None:
        raise errors.Unimplemented("there is no product among these nodes")
    if head.attrs["T"] is FLOAT and b.outputs[0].dtype is not FLOAT:
        raise errors.Unimplemented(f"the library has no products of float32 that give {b.outputs[0].dtype}")
    if any(node.op == ROUNDING and node.outputs[0].dtype is not FLOAT for node in b.fused[:-1]):
        raise errors.Unimplemented("a Cast before the last op, for intermediate values are not rounded")
    first = b.fused[0]
    lead = first if first.results[0] == head.args[0] else None
    following_ops = [node for node in b.fused if node is not head and node is not lead]
    if lead is not None and lead.op == GATE:
        from .squeeze_excite import squeeze_excite  # imported late, for many networks lack such heads

        return squeeze_excite(b, lead, head, following_ops)
    if head.op == EINSUM:
        from .einsum import einsum_and

        return einsum_and(b, head, following_ops)
    operand_layout = broadcast(b, len(head.outputs[0].dims), dense) if head.op in CONVOLUTIONS else operands_of(b, head)
    after = epilogue(b, head, following_ops, operand_layout)
    return by_op[head.op](b, head if lead is None else _with_own_padding(b, lead, head), after)


def _with_own_padding(b: Bind, padding: FusedOp, head: FusedOp) -> FusedOp:
    """The convolution with the padding in its own attributes. Raises Unimplemented."""
    images, amounts_index = padding.args
    amounts = b.inputs[amounts_index].value
    if amounts is None or amounts.shape != (4, 2) or (amounts < 0).any() or amounts[[0, 3]].any():
        raise errors.Unimplemented("padding of more than height and width, or not known before the run")
    if head.attrs.get("padding") != "VALID" or head.attrs["data_format"] != "NHWC":
        raise errors.Unimplemented("padding before a convolution that pads itself, or has channels first")
    pads = {"padding": "EXPLICIT", "explicit_paddings": tuple(int(n) for n in amounts.reshape(-1))}
    return head._replace(attrs={**head.attrs, **pads}, args=(images, head.args[1]))


def register_kernels(kernels: Kernels, types: Collection[str], winograd: bool) -> None:
    by_op = {**heads(winograd), **PRODUCTS}
    kernels.kernel(PADDING, dtypes={"T": types})(left_to_numpy)
    kernels.fusion("Product", heads=(*by_op, EINSUM), ops=OPS, leads=[PADDING, GATE], priority=1)(
        declining(lambda b: product(b, by_op)))
