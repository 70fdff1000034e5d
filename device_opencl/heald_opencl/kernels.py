"""The kernels: texts that heald_kernel_text makes for a node, launched on this device. Imported at the first use of a
device of type OPENCL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from heald.api import Attrs, Bind, Declined, Kernels, errors
from heald_kernel_text import ALIASES, FUSIONS, NODES, OPENCL_CPU, OPENCL_GPU, FusedKernel, NodeKernel, check_plan

from .launches import Launches, WithScratch, launches


def register_kernels(kernels: Kernels) -> None:
    for op, row in NODES.items():
        kernels.kernel(op, dtypes=row.dtypes, host=row.host)(partial(bind, row))
    for name, fused in FUSIONS.items():
        kernels.fusion(name, ops=fused.ops, heads=fused.heads, priority=fused.priority)(partial(bind, fused))
    for op, host in ALIASES.items():
        kernels.kernel(op, alias=own_inputs if op == "IdentityN" else {0: 0}, host=host)(alias)


def bind(row: NodeKernel | FusedKernel, b: Bind) -> Launches | WithScratch | Declined:
    native = b.device.native
    types = {info.dtype.name for info in b.inputs} | {meta.dtype.name for meta in b.outputs}
    if "float64" in types and not native.device.double_fp_config:
        return b.decline("the device has no float64")
    try:
        plan = row.make(OPENCL_CPU if native.on_cpu else OPENCL_GPU, b)
        check_plan(plan, b)
    except errors.Unimplemented as error:
        return b.decline(error.message)
    return launches(plan, b)


def alias(_b: Bind) -> None:
    return None  # the outputs are buffers of the inputs: there is nothing to launch


def own_inputs(attrs: Attrs) -> Mapping[int, int]:
    return {i: i for i in range(len(attrs["T"]))}
