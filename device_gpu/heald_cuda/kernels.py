"""The kernels: texts that heald_kernel_text makes for a node, launched on this device. Imported at the first use of a
device of type GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter

from heald.api import Attrs, Bind, Declined, Kernels, errors
from heald_kernel_text import (
    ALIASES,
    FUSIONS,
    GROUPS,
    NODES,
    BoundPlan,
    FusedKernel,
    KernelText,
    LaunchDriver,
    NodeKernel,
    bind_plan,
    check_plan,
    register_host_results,
)

from .library_kernels import register_library_kernels
from .native import Launch


def register_kernels(kernels: Kernels) -> None:
    register_library_kernels(kernels)
    register_host_results(kernels)
    for op, row in NODES.items():
        kernels.kernel(op, dtypes=row.dtypes, host=row.host)(partial(bind, row))
    for name, fused in FUSIONS.items():
        kernels.fusion(name, ops=fused.ops, heads=fused.heads, priority=fused.priority)(partial(bind, fused))
    for op, host in ALIASES.items():
        kernels.kernel(op, alias=own_inputs if op == "IdentityN" else {0: 0}, host=host)(alias)


def bind(row: NodeKernel | FusedKernel, b: Bind) -> BoundPlan | Declined:
    try:
        plan = row.make(b.device.native.target, b)
        check_plan(plan, b)
    except errors.Unimplemented as error:
        return b.decline(error.message)
    if any(blocks > GROUPS for text in plan.launches for blocks in grid_size(text)[1:]):
        return b.decline(f"a launch has more than {GROUPS} blocks in a dimension")
    return bind_plan(plan, b, LAUNCH_DRIVER)


def compile_text(text: KernelText, b: Bind) -> Launch:
    return b.device.native.kernel(text.source, text.name)  # type: ignore[no-any-return]


def grid_size(text: KernelText) -> tuple[int, ...]:
    """The blocks of a launch in each dimension."""
    return tuple(items // local for items, local in zip(text.global_size, text.local_size, strict=True))


LAUNCH_DRIVER = LaunchDriver("cuda-1", compile_text, grid_size, attrgetter("nbytes"))


def alias(_b: Bind) -> None:
    return None  # the outputs are buffers of the inputs: there is nothing to launch


def own_inputs(attrs: Attrs) -> Mapping[int, int]:
    return {i: i for i in range(len(attrs["T"]))}
