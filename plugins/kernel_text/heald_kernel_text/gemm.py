"""GEMM by batch entry or group z: y[z, m, n] = sum over k of a[z, m, k] * b[z, k, n]."""

from __future__ import annotations

from heald.api import dtypes

from .dialect import Target
from .epilogue import Epilogue
from .gemm_cpu import gemm_cpu
from .gemm_gpu import gemm_gpu
from .gemm_problem import GemmProblem
from .lhs import Lhs
from .plan import Plan


def gemm(target: Target, name: str, problem: GemmProblem, lhs: Lhs, epilogue: Epilogue) -> Plan:
    """The variant for this target: blocks of vector registers on CPUs, tiles in local memory elsewhere."""
    if 0 in (problem.batch, problem.rows, problem.columns):
        return Plan()
    vectors = target.cpu and problem.dtype is dtypes.float32
    return (gemm_cpu if vectors else gemm_gpu)(target, name, problem, lhs, epilogue)
