"""Evaluation: what constants make of each other, told before any program is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .device import Device
from .host_program import Call
from .lower import MAIN
from .resolve import Resolved
from .running.binder import Binder
from .running.folding import folded, is_worth_folding
from .running.host_context import HostContext
from .running.resources import Resources
from .tensor import ValueInfo, constant_info


class Evaluation:
    """By the kernels of a device that works on host memory, if the host has one."""

    def __init__(self, host: HostContext) -> None:
        self._host = host

    @cached_property
    def _device(self) -> tuple[str, Device] | None:
        name = self._host.host_device()
        return None if name is None else (name, self._host.open(name))

    def __call__(
        self, entry: Resolved, inputs: Sequence[ValueInfo], outputs: tuple[ValueInfo, ...]
    ) -> tuple[ValueInfo, ...]:
        """What is known of a node's outputs, with their elements where those of its inputs are known and computing them
        now is no waste."""
        found = None if entry.op.stateful or not is_worth_folding(inputs, outputs) else self._device
        if found is None:
            return outputs
        name, device = found
        able = tuple([kernel for kernel in self._host.registries.kernels.candidates(entry.op.name, device.type)
                      if kernel.refuses(entry.attrs) is None])
        call = Call(f"{device.type}.{entry.op.name}", (), (), entry.attrs, node=entry.node.name)
        binder = Binder(call, entry.op, None, able, device, name, {}, self._host.allocator, Resources().get, MAIN)
        values = folded(binder, inputs, outputs)
        return outputs if values is None else tuple(map(constant_info, values))
