"""Evaluation: what constants make of each other, told before any program is lowered."""

from __future__ import annotations

from collections.abc import Sequence

from .host_program import Call
from .lower import MAIN
from .resolve import Resolved
from .running.binder import Binder
from .running.folding import folded, is_worth_folding
from .running.host_context import HostContext
from .running.resources import Resources
from .tensor import ValueInfo, constant_info


def fold(
    entry: Resolved, inputs: Sequence[ValueInfo], outputs: tuple[ValueInfo, ...], host: HostContext
) -> tuple[ValueInfo, ...]:
    """What is known of a node's outputs, with their elements where those of its inputs are known and computing them now
    is no waste, by the kernels of a device that works on host memory."""
    name = host.host_device() if not entry.op.stateful and is_worth_folding(inputs, outputs) else None
    if name is None:
        return outputs
    device = host.open(name)
    able = tuple(kernel for kernel in host.registries.kernels.candidates(entry.op.name, device.type)
                 if kernel.refuses(entry.attrs) is None)
    call = Call(f"{device.type}.{entry.op.name}", (), (), entry.attrs, node=entry.node.name)
    values = folded(Binder(call, entry.op, None, able, device, name, {}, host.allocator, Resources().get, MAIN),
                    inputs, outputs)
    return outputs if values is None else tuple(map(constant_info, values))
