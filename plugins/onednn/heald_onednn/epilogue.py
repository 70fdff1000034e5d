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


@dataclass
class Epilogue:
    """y = steps(product * scale + bias): scale and bias have one number per channel, or are None."""

    scale: Array | None = None
    bias: Array | None = None
    steps: list[PostOp] = field(default_factory=list)


Lay = Callable[[int], tuple[Layout, Operand]]  # from the index of an input to its layout as an operand, and the operand


def epilogue(b: Bind, head: FusedOp, rest: Sequence[FusedOp], lay: Lay) -> Epilogue:
    """The epilogue of the ops `rest` after `head`, a product whose second input is the weights.

    Raises Unimplemented for ops that the library cannot compute as steps.
    """
    known = b.inputs[head.args[1]].is_known
    following = _Following(b, head, lay, ("AddV2", "Mul", "Sub") if known else ("AddV2", "Sub"))
    following.take_all(with_swish(b, rest))
    return following.made


def broadcast(b: Bind, rank: int, layout: Callable[[Sequence[int], DType], Layout]) -> Lay:
    """Lay each input out with its own shape, padded with leading lengths of 1 to `rank`."""

    def lay(place: int) -> tuple[Layout, Operand]:
        meta = b.inputs[place].meta
        return layout((1,) * (rank - len(meta.dims)) + meta.dims, meta.dtype), place

    return lay


def steps_after(b: Bind, first: FusedOp, rest: Sequence[FusedOp], lay: Lay) -> list[PostOp]:
    """The steps of the ops `rest` after a node without weights and bias. Raises Unimplemented as `epilogue` does."""
    following = _Following(b, first, lay, ())
    following.take_all(rest)
    return following.made.steps


class _Following:
    """Builds an epilogue op by op. `folds`: the ops whose known operand may go into weights and bias."""

    def __init__(self, b: Bind, head: FusedOp, lay: Lay, folds: Sequence[str]) -> None:
        self.made = Epilogue()
        self._b = b
        self._lay = lay
        self._folds = folds
        self._value = head.results[0]
        self._rank, self._channels = len(head.outputs[0].dims), head.outputs[0].dims[-1]

    def take_all(self, ops: Sequence[FusedOp]) -> None:
        for each in ops:
            others = [a for a in each.args if a != self._value]
            if len(others) != len(each.args) - 1 or any(a >= len(self._b.inputs) for a in others):
                raise errors.Unimplemented(f"{each.op} of a value that is not the product's and not an input")
            self._take(each)
            self._value = each.results[0]

    def _take(self, each: FusedOp) -> None:
        if each.op == ROUNDING:
            return
        if each.op in UNARY:
            self.made.steps.append(UNARY[each.op](each.attrs))
        elif each.op == SWISH:
            self.made.steps.append(swish(each.attrs["factor"]))
        elif each.op == ACTIVATION:
            self.made.steps.append(each.attrs["step"])
        elif each.op in PARTS:
            raise errors.Unimplemented(f"{each.op} outside a known activation")
        elif _channels_first(each):
            raise errors.Unimplemented("channels that are not last")
        elif each.op in NORMALISATIONS:
            self._normalisation(each)
        else:
            self._binary("AddV2" if each.op == "BiasAdd" else each.op, *each.args)

    def _binary(self, op: str, left: int, right: int) -> None:
        turned = right == self._value
        operand = left if turned else right
        vector = self._vector(operand) if op in self._folds and not self.made.steps else None
        if vector is None or (op == "Sub" and turned):
            self._step(op, operand, turned)
        elif op == "Mul":
            self._fold(vector, 0.0)
        else:
            self._fold(1.0, vector if op == "AddV2" else -vector)

    def _step(self, op: str, operand: int, turned: bool) -> None:
        if turned and op == "RealDiv":
            raise errors.Unimplemented("a division by the product's value")
        if turned and op not in COMMUTING:  # y - x is y + -x
            self.made.steps.append(linear(-1.0, 0.0))
            op = "AddV2"
        self.made.steps.append(Binary(BINARY[op], *self._lay(operand)))

    def _normalisation(self, each: FusedOp) -> None:
        vectors = [self._vector(a) for a in each.args[1:]]
        if each.attrs["is_training"] or "Mul" not in self._folds or self.made.steps or any(v is None for v in vectors):
            raise errors.Unimplemented("a normalisation that cannot go into the weights")
        gamma, beta, mean, variance = vectors
        factor = gamma / np.sqrt(variance + each.attrs["epsilon"])
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
        made, scales = self.made, _differs(scale, 1.0)
        if scales:
            made.scale = np.full(self._channels, scale) if made.scale is None else made.scale * scale
        if made.bias is not None:
            made.bias = made.bias * scale + shift if scales else made.bias + shift
        elif _differs(shift, 0.0):
            made.bias = np.full(self._channels, shift)


def _differs(numbers: Any, number: float) -> bool:
    """True when one of the numbers, an array or a float, differs from `number`."""
    return numbers != number if isinstance(numbers, float) else bool((numbers != number).any())


def _channels_first(each: FusedOp) -> bool:
    return len(each.outputs[0].dims) > 2 and each.attrs.get("data_format", "NHWC")[1] == "C"


def with_swish(b: Bind, ops: Sequence[FusedOp]) -> list[FusedOp]:
    """The ops, where each product of a value with its own sigmoid is one op, and each activation is one op."""
    ops = with_activations(b, ops)
    made = {op.results[0]: op for op in ops}
    uses = [a for op in ops for a in op.args]
    kept = list(ops)
    for op in ops:
        found = _swish(b, op, made)
        if found is None:
            continue
        parts, source, factor = found
        if all(uses.count(part.results[0]) == 1 for part in parts) and all(part in kept for part in parts):
            kept = [each for each in kept if each not in parts]
            kept[kept.index(op)] = FusedOp(SWISH, {"factor": factor}, (source,), op.results, op.outputs)
    return kept


def _swish(b: Bind, op: FusedOp, made: dict[int, FusedOp]) -> tuple[list[FusedOp], int, float] | None:
    """If `op` is x * Sigmoid(factor * x): the ops before it, x and the factor. Else None."""
    for source, other in (op.args, op.args[::-1]) if op.op == "Mul" else ():
        sigmoid = made.get(other)
        if sigmoid is None or sigmoid.op != "Sigmoid":
            continue
        (inner,) = sigmoid.args
        if inner == source:
            return [sigmoid], source, 1.0
        scaled = made.get(inner)
        if scaled is not None and scaled.op == "Mul" and source in scaled.args:
            factor = scaled.args[1 - scaled.args.index(source)]
            info = b.inputs[factor] if factor < len(b.inputs) else None
            if info is not None and info.value is not None and info.size == 1:
                return [scaled, sigmoid], source, float(info.value.reshape(-1)[0])
    return None
