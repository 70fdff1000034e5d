"""Products of nodes as data, for devices that have libraries of products: the problem, and a simple epilogue."""

from __future__ import annotations

from typing import NamedTuple

from heald.api import Bind

from .convolution import convolution_problem
from .epilogue import CHANNEL, Epilogue
from .gemm_problem import GemmProblem
from .image_plans import window_of
from .lhs import Lhs
from .math_plans import node_problem


def product_problem(b: Bind) -> tuple[GemmProblem, Lhs]:
    """The product of a MatMul, BatchMatMulV2 or Conv2D. Raises Unimplemented."""
    if b.op == "Conv2D":
        return convolution_problem(b.inputs[0].dtype, b.inputs[1].meta.dims, window_of(b))
    return node_problem(b)


class Ending(NamedTuple):
    """An epilogue that libraries have: a bias, then a residual, then Relu. Operands are indices, counted from 1."""

    bias: int | None = None
    residual: int | None = None
    relu: bool = False


def simple_ending(epilogue: Epilogue) -> Ending | None:
    """The epilogue as an ending; None for every other epilogue."""
    found: dict[str, int] = {}
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
            if kind in found:
                return None
            found[kind] = other
        elif op != "Identity":
            return None
        current = number
    return Ending(found.get("bias"), found.get("residual"), relu)
