"""Chains, which order side effects, and printing, which is one."""

from __future__ import annotations

from typing import Any, TypeVar

from ..contract.host_kernel import HostKernels
from ..contract.host_type import F32, F64, I1, I32, I64, Chain
from ..executor.step import Step

N = TypeVar("N")
PRINT_FORMATS = {"i1": (I1, "int1 = %d"), "i32": (I32, "int32 = %d"), "i64": (I64, "int64 = %d"),
                 "f32": (F32, "f32 = %f"), "f64": (F64, "f64 = %f")}


def register(kernels: HostKernels) -> None:
    kernels.kernel("tfrt.new.chain", syntax="attr-dict")(new_chain)
    kernels.kernel("tfrt.merge.chains", syntax="(operands^ `:` type(operands))? attr-dict")(merge_chains)
    for name, (kind, form) in PRINT_FORMATS.items():
        kernels.kernel(f"tfrt.print.{name}", step=True, N=kind, syntax="operands attr-dict")(printing(form))


def new_chain() -> Chain:
    """Return a chain that is ready."""


def merge_chains(*values: Any) -> Chain:
    """Return a chain that is ready when all arguments are."""


def printing(form: str) -> Any:
    def kernel(step: Step, value: N, chain: Chain = None) -> Chain:  # noqa: ARG001 - the chain orders prints
        step.host.print_line(form % value)

    return kernel
