"""Products of nodes as data, for devices that have libraries of products: the problem, and a simple epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heald.api import Bind

from .convolution import convolution_problem
from .epilogue import CHANNEL, FULL, Epilogue
from .gemm_problem import GemmProblem
from .image_plans import window_of
from .lhs import Lhs
from .math_plans import node_problem
from .plan import INPUT, OUTPUT, Argument, check_extents


def product_problem(b: Bind) -> tuple[GemmProblem, Lhs]:
    """The product of a MatMul, BatchMatMulV2 or Conv2D. Raises Unimplemented."""
    if b.op == "Conv2D":
        return convolution_problem(b.inputs[0].dtype, b.inputs[1].meta.dims, window_of(b))
    return node_problem(b)


def check_product(b: Bind, args: Sequence[int], problem: GemmProblem, lhs: Lhs, epilogue: Epilogue) -> None:
    """Raise Unimplemented where a library's product would leave its operands. `args`: the inputs that the product and
    the epilogue read."""
    counts = {CHANNEL: problem.channel_count, FULL: problem.result_count}
    lengths = [lhs.count(problem), problem.right_count, *(counts[kind] for _, kind in epilogue.operands)]
    extents = {Argument(OUTPUT, 0): problem.result_count * b.outputs[0].dtype.itemsize}
    for input_number, length in zip(args, lengths, strict=True):
        nbytes = length * b.inputs[input_number].dtype.itemsize
        extents[Argument(INPUT, input_number)] = max(nbytes, extents.get(Argument(INPUT, input_number), 0))
    check_extents(extents, b)


class Ending(NamedTuple):
    """An epilogue that libraries have: a bias, then a residual, then Relu. Operands are indices, counted from 1."""

    bias: int | None = None
    residual: int | None = None
    relu: bool = False


def simple_ending(epilogue: Epilogue) -> Ending | None:
    """The epilogue as an ending; None for every other epilogue."""
    operand_of_kind: dict[str, int] = {}
    relu, current = False, 0
    for number, (op, args, _) in enumerate(epilogue.steps, len(epilogue.operands) + 1):
        if relu or current not in args:
            return None
        if op == "Relu":
            relu = True
        elif op == "AddV2":
            other = args[1] if args[0] == current else args[0]
            if not isinstance(other, int) or not 0 < other <= len(epilogue.operands):
                return None
            kind = "bias" if epilogue.operands[other - 1][1] == CHANNEL else "residual"
            if kind in operand_of_kind:
                return None
            operand_of_kind[kind] = other
        elif op != "Identity":
            return None
        current = number
    return Ending(operand_of_kind.get("bias"), operand_of_kind.get("residual"), relu)
