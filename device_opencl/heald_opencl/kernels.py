"""The kernels: texts that heald_kernel_text makes for a node, launched on this device. Imported at the first use of a
device of type OPENCL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter

from heald.api import Attrs, Bind, Declined, Kernels, errors
from heald_kernel_text import (
    ALIASES,
    FUSIONS,
    NODES,
    OPENCL_CPU,
    OPENCL_GPU,
    BoundPlan,
    FusedKernel,
    KernelText,
    LaunchDriver,
    NodeKernel,
    bind_plan,
    check_plan,
    register_host_results,
)

from .native import Launch

OPTIONS = "-cl-std=CL1.2"  # and no option that lets the compiler change numerical results


def register_kernels(kernels: Kernels) -> None:
    register_host_results(kernels)
    for op, row in NODES.items():
        kernels.kernel(op, dtypes=row.dtypes, host=row.host)(partial(bind, row))
    for name, fused in FUSIONS.items():
        kernels.fusion(name, ops=fused.ops, heads=fused.heads, priority=fused.priority)(partial(bind, fused))
    for op, host in ALIASES.items():
        kernels.kernel(op, alias=own_inputs if op == "IdentityN" else {0: 0}, host=host)(alias)


def bind(row: NodeKernel | FusedKernel, b: Bind) -> BoundPlan | Declined:
    native = b.device.native
    try:
        plan = row.make(OPENCL_CPU if native.on_cpu else OPENCL_GPU, b)
        check_plan(plan, b)
    except errors.Unimplemented as error:
        return b.decline(error.message)
    return bind_plan(plan, b, LAUNCH_DRIVER)


def compile_text(text: KernelText, b: Bind) -> Launch:
    return b.device.native.kernel(text.source, text.name, OPTIONS)  # type: ignore[no-any-return]


LAUNCH_DRIVER = LaunchDriver("opencl-1", compile_text, attrgetter("global_size"), attrgetter("size"))


def alias(_b: Bind) -> None:
    return None  # the outputs are buffers of the inputs: there is nothing to launch


def own_inputs(attrs: Attrs) -> Mapping[int, int]:
    return {i: i for i in range(len(attrs["T"]))}
