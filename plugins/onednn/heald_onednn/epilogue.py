"""Epilogue: the ops after a product, computed by the primitive of the product.

Known factors and sums per channel that directly follow the product go into its weights and bias. All further ops are
steps that the library applies to each element before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from heald.api import Bind, DType, FusedOp, errors

from .activations import ACTIVATION, with_activations
from .attributes import Binary, PostOp
from .functions import BINARY, COMMUTING, PARTS, UNARY, linear, swish
from .memory import Array, Layout, Operand

NORMALISATIONS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
CHAINED = (*UNARY, *BINARY, *PARTS, "BiasAdd")
ROUNDING = "Cast"  # needs no step: intermediate values are not rounded, and the result has the type of the last op
OPS = (*CHAINED, *NORMALISATIONS, ROUNDING)
SWISH = "Swish"  # x * Sigmoid(factor * x), of two nodes or three


@dataclass(eq=False, repr=False)
class Epilogue:
    """y = steps(product * scale + bias): scale and bias have one number per channel, or are None."""

    scale: Array | None = None
    bias: Array | None = None
    steps: list[PostOp] = field(default_factory=list)


# from the index of an input to its layout as an operand, and the operand
OperandLayouts = Callable[[int], tuple[Layout, Operand]]


def epilogue(b: Bind, head: FusedOp, following_ops: Sequence[FusedOp], operand_layout: OperandLayouts) -> Epilogue:
    """The epilogue of `following_ops` after `head`, a product whose second input is the weights.

    Raises Unimplemented for ops that the library cannot compute as steps.
    """
    are_weights_known = b.inputs[head.args[1]].is_known
    builder = _EpilogueBuilder(b, head, operand_layout,
                               ("AddV2", "Mul", "Sub") if are_weights_known else ("AddV2", "Sub"))
    builder.add_ops(with_swish(b, following_ops))
    return builder.epilogue


def broadcast(b: Bind, rank: int, layout: Callable[[Sequence[int], DType], Layout]) -> OperandLayouts:
    """Lay each input out with its own shape, padded with leading lengths of 1 to `rank`."""

    def operand_layout(input_index: int) -> tuple[Layout, Operand]:
        meta = b.inputs[input_index].meta
        return layout((1,) * (rank - len(meta.dims)) + meta.dims, meta.dtype), input_index

    return operand_layout


def steps_after(b: Bind, first: FusedOp, following_ops: Sequence[FusedOp],
                operand_layout: OperandLayouts) -> list[PostOp]:
    """The steps of `following_ops` after a node without weights and bias. Raises Unimplemented as `epilogue` does."""
    builder = _EpilogueBuilder(b, first, operand_layout, ())
    builder.add_ops(following_ops)
    return builder.epilogue.steps


class _EpilogueBuilder:
    """Builds an epilogue op by op. `folds`: the ops whose known operand may go into weights and bias."""

    def __init__(self, b: Bind, head: FusedOp, operand_layout: OperandLayouts, folds: Sequence[str]) -> None:
        self.epilogue = Epilogue()
        self._b = b
        self._operand_layout = operand_layout
        self._folds = folds
        self._value = head.results[0]
        self._rank, self._channels = len(head.outputs[0].dims), head.outputs[0].dims[-1]

    def add_ops(self, ops: Sequence[FusedOp]) -> None:
        for op in ops:
            others = [a for a in op.args if a != self._value]
            if len(others) != len(op.args) - 1 or any(a >= len(self._b.inputs) for a in others):
                raise errors.Unimplemented(f"{op.op} of a value that is not the product's and not an input")
            self._add_op(op)
            self._value = op.results[0]

    def _add_op(self, op: FusedOp) -> None:
        if op.op == ROUNDING:
            return
        if op.op in UNARY:
            self.epilogue.steps.append(UNARY[op.op](op.attrs))
        elif op.op == SWISH:
            self.epilogue.steps.append(swish(op.attrs["factor"]))
        elif op.op == ACTIVATION:
            self.epilogue.steps.append(op.attrs["step"])
        elif op.op in PARTS:
            raise errors.Unimplemented(f"{op.op} outside a known activation")
        elif _channels_first(op):
            raise errors.Unimplemented("channels that are not last")
        elif op.op in NORMALISATIONS:
            self._add_normalisation(op)
        else:
            self._add_binary("AddV2" if op.op == "BiasAdd" else op.op, *op.args)

    def _add_binary(self, op: str, left: int, right: int) -> None:
        turned = right == self._value
        operand = left if turned else right
        vector = self._vector(operand) if op in self._folds and not self.epilogue.steps else None
        if vector is None or (op == "Sub" and turned):
            self._add_step(op, operand, turned)
        elif op == "Mul":
            self._fold(vector, 0.0)
        else:
            self._fold(1.0, vector if op == "AddV2" else -vector)

    def _add_step(self, op: str, operand: int, turned: bool) -> None:
        if turned and op == "RealDiv":
            raise errors.Unimplemented("a division by the product's value")
        if turned and op not in COMMUTING:  # y - x is y + -x
            self.epilogue.steps.append(linear(-1.0, 0.0))
            op = "AddV2"
        self.epilogue.steps.append(Binary(BINARY[op], *self._operand_layout(operand)))

    def _add_normalisation(self, op: FusedOp) -> None:
        vectors = [self._vector(a) for a in op.args[1:]]
        folds = "Mul" in self._folds and not self.epilogue.steps
        if op.attrs["is_training"] or not folds or any(v is None for v in vectors):
            raise errors.Unimplemented("a normalisation that cannot go into the weights")
        gamma, beta, mean, variance = vectors
        factor = gamma / np.sqrt(variance + op.attrs["epsilon"])
        self._fold(factor, beta - mean * factor)

    def _vector(self, value: int) -> Any:
        """The float64 numbers of a known input with one number per channel, or one for all channels; else None."""
        info = self._b.inputs[value]
        per_channel = info.size == 1 or info.meta.dims[-1] == info.size == self._channels
        if not info.is_known or not per_channel or len(info.meta.dims) > self._rank:
            return None
        vector = np.asarray(info.value, np.float64).reshape(-1)
        return vector if np.isfinite(vector).all() else None

    def _fold(self, scale: Any, shift: Any) -> None:
        """Compose the epilogue with y * scale + shift."""
        folded, scales = self.epilogue, _differs(scale, 1.0)
        if scales:
            folded.scale = np.full(self._channels, scale) if folded.scale is None else folded.scale * scale
        if folded.bias is not None:
            folded.bias = folded.bias * scale + shift if scales else folded.bias + shift
        elif _differs(shift, 0.0):
            folded.bias = np.full(self._channels, shift)


def _differs(numbers: Any, number: float) -> bool:
    """True when one of the numbers, an array or a float, differs from `number`."""
    return numbers != number if isinstance(numbers, float) else bool((numbers != number).any())


def _channels_first(op: FusedOp) -> bool:
    return len(op.outputs[0].dims) > 2 and op.attrs.get("data_format", "NHWC")[1] == "C"


def with_swish(b: Bind, ops: Sequence[FusedOp]) -> list[FusedOp]:
    """The ops, where each product of a value with its own sigmoid is one op, and each activation is one op."""
    ops = with_activations(b, ops)
    producers = {op.results[0]: op for op in ops}
    uses = [a for op in ops for a in op.args]
    remaining = list(ops)
    for op in ops:
        swish_match = _swish(b, op, producers)
        if swish_match is None:
            continue
        parts, source, factor = swish_match
        if all(uses.count(part.results[0]) == 1 for part in parts) and all(part in remaining for part in parts):
            remaining = [old for old in remaining if old not in parts]
            remaining[remaining.index(op)] = FusedOp(SWISH, {"factor": factor}, (source,), op.results, op.outputs)
    return remaining


def _swish(b: Bind, op: FusedOp, producers: dict[int, FusedOp]) -> tuple[list[FusedOp], int, float] | None:
    """If `op` is x * Sigmoid(factor * x): the ops before it, x and the factor. Else None."""
    for source, other in (op.args, op.args[::-1]) if op.op == "Mul" else ():
        sigmoid = producers.get(other)
        if sigmoid is None or sigmoid.op != "Sigmoid":
            continue
        (inner,) = sigmoid.args
        if inner == source:
            return [sigmoid], source, 1.0
        scaled = producers.get(inner)
        if scaled is not None and scaled.op == "Mul" and source in scaled.args:
            factor = scaled.args[1 - scaled.args.index(source)]
            info = b.inputs[factor] if factor < len(b.inputs) else None
            if info is not None and info.value is not None and info.size == 1:
                return [scaled, sigmoid], source, float(info.value.reshape(-1)[0])
    return None
