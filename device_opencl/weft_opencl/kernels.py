"""The kernels: texts that weft_kernel_text makes for a node, launched on this device. Imported when somebody first asks
for a device of type OPENCL.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from weft.api import Bind, Declined, Kernels, errors
from weft_kernel_text import (
    ALIASES,
    FUSIONS,
    INPUT,
    NODES,
    OPENCL_CPU,
    OPENCL_GPU,
    OUTPUT,
    SIZE,
    FusedKernel,
    KernelText,
    NodeKernel,
    Plan,
)

OPTIONS = "-cl-std=CL1.2"  # and none that lets the compiler change what numbers come out
Run = Callable[..., None]


def register(kernels: Kernels) -> None:
    for op, row in NODES.items():
        kernels.kernel(op, dtypes=row.dtypes, host=row.host)(partial(bind, row))
    for name, fused in FUSIONS.items():
        kernels.fusion(name, ops=fused.ops, heads=fused.heads, priority=fused.priority)(partial(bind, fused))
    for op, host in ALIASES.items():
        kernels.kernel(op, alias={0: 0}, host=host)(alias)


def bind(row: NodeKernel | FusedKernel, b: Bind) -> Run | Declined:
    native = b.device.native
    types = {info.dtype.name for info in b.inputs} | {meta.dtype.name for meta in b.outputs}
    if "float64" in types and not native.device.double_fp_config:
        return b.decline("the device has no float64")
    try:
        plan = row.make(OPENCL_CPU if native.on_cpu else OPENCL_GPU, b)
    except errors.Unimplemented as error:
        return b.decline(error.message)
    return _running(plan, b)


def alias(_b: Bind) -> None:
    return None  # output 0 is the buffer of input 0: there is nothing to launch


def _running(plan: Plan, b: Bind) -> Run:
    """Enqueues the plan's launches. Scratch is had for each run: what is freed serves what is enqueued already."""
    device, count = b.device, len(b.inputs)
    launches = [_launch(text, b) for text in plan.launches]

    def run(*buffers: Any) -> None:
        scratch = []
        try:
            for nbytes in plan.scratch:
                buffer = device.allocate(nbytes)
                if buffer is None:
                    raise errors.ResourceExhausted(f"no memory for {nbytes} bytes between two kernels of {b.op}")
                scratch.append(buffer)
            for launch in launches:
                launch(buffers[:count], buffers[count:], scratch)
        finally:
            for buffer in scratch:
                device.free(buffer)

    return run


def _launch(text: KernelText, b: Bind) -> Callable[[Any, Any, Any], None]:
    launch = b.device.native.kernel(text.source, text.name, OPTIONS)
    places = [(a.kind, np.int64(a.value) if a.kind == SIZE else a.value) for a in text.arguments]

    def call(inputs: Any, outputs: Any, scratch: Any) -> None:
        of = {INPUT: inputs, OUTPUT: outputs}
        launch(text.global_size, text.local_size,
               *[value if kind == SIZE else of.get(kind, scratch)[value] for kind, value in places])

    return call
