"""The kernels: texts that heald_kernel_text makes for a node, launched on this device. Imported at the first use of a
device of type GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from heald.api import Attrs, Bind, Declined, Kernels, errors
from heald_kernel_text import ALIASES, FUSIONS, GROUPS, NODES, FusedKernel, NodeKernel, check_plan

from .launches import Launches, WithScratch, grid, launches
from .library_kernels import register_library_kernels


def register_kernels(kernels: Kernels) -> None:
    register_library_kernels(kernels)
    for op, row in NODES.items():
        kernels.kernel(op, dtypes=row.dtypes, host=row.host)(partial(bind, row))
    for name, fused in FUSIONS.items():
        kernels.fusion(name, ops=fused.ops, heads=fused.heads, priority=fused.priority)(partial(bind, fused))
    for op, host in ALIASES.items():
        kernels.kernel(op, alias=own_inputs if op == "IdentityN" else {0: 0}, host=host)(alias)


def bind(row: NodeKernel | FusedKernel, b: Bind) -> Launches | WithScratch | Declined:
    try:
        plan = row.make(b.device.native.target, b)
        check_plan(plan, b)
    except errors.Unimplemented as error:
        return b.decline(error.message)
    if any(blocks > GROUPS for text in plan.launches for blocks in grid(text)[1:]):
        return b.decline(f"a launch has more than {GROUPS} blocks in a dimension")
    return launches(plan, b)


def alias(_b: Bind) -> None:
    return None  # the outputs are buffers of the inputs: there is nothing to launch


def own_inputs(attrs: Attrs) -> Mapping[int, int]:
    return {i: i for i in range(len(attrs["T"]))}
