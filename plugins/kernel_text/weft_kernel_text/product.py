"""A product of matrices, batch by batch or group by group: y[z, m, n] = sum over k of a[z, m, k] * b[z, k, n]."""

from __future__ import annotations

from weft.api import dtypes

from .block import block
from .dialect import Target
from .epilogue import Epilogue
from .left import Left
from .plan import Plan
from .problem import Problem
from .tile import tile


def product(target: Target, name: str, problem: Problem, left: Left, epilogue: Epilogue) -> Plan:
    """The variant for this target: blocks of vector registers on CPUs, tiles in local memory elsewhere."""
    if 0 in (problem.batch, problem.rows, problem.columns):
        return Plan()
    vectors = target.cpu and problem.dtype is dtypes.float32
    return (block if vectors else tile)(target, epilogue.name(name), problem, left, epilogue)
