"""Evaluation: what constants make of each other, told before any program is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .device import Device
from .host_program import Call
from .lower import MAIN
from .op import Attrs
from .resolve import Resolved
from .running.binder import Binder
from .running.folding import Compute, folding, is_worth_folding
from .running.host_context import HostContext
from .running.resources import Resources
from .tensor import TensorMetadata, ValueInfo, constant_info

Metas = tuple[TensorMetadata, ...]
Likeness = tuple[str, int, Metas, Metas]  # op, attributes by identity, inputs and outputs


class Evaluation:
    """By the kernels of a device that works on host memory, if the host has one. What is like another is done by the
    kernel that was bound for that one: the layers of a network have the same few shapes."""

    def __init__(self, host: HostContext) -> None:
        self._host = host
        self._bound: dict[Likeness, tuple[Attrs, Compute | None]] = {}  # the attributes, too: their ids are not reused

    @cached_property
    def _device(self) -> tuple[str, Device] | None:
        name = self._host.host_device()
        return None if name is None else (name, self._host.open(name))

    def __call__(
        self, entry: Resolved, inputs: Sequence[ValueInfo], outputs: tuple[ValueInfo, ...]
    ) -> tuple[ValueInfo, ...]:
        """What is known of a node's outputs, with their elements where those of its inputs are known and computing them
        now is no waste."""
        if entry.op.stateful or not is_worth_folding(inputs, outputs):
            return outputs
        like = entry.op.name, id(entry.attrs), tuple([i.meta for i in inputs]), tuple([o.meta for o in outputs])
        bound = self._bound.get(like)
        if bound is None:
            bound = self._bound[like] = entry.attrs, self._bind(entry, [ValueInfo(i.meta) for i in inputs], outputs)
        compute = bound[1]
        if compute is None:  # a kernel may need the elements to be bound
            compute = self._bind(entry, inputs, outputs)
        values = None if compute is None else compute(inputs)
        return outputs if values is None else tuple(map(constant_info, values))

    def _bind(self, entry: Resolved, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> Compute | None:
        if self._device is None:
            return None
        name, device = self._device
        able = tuple([kernel for kernel in self._host.registries.kernels.candidates(entry.op.name, device.type)
                      if kernel.refuses(entry.attrs) is None])
        call = Call(f"{device.type}.{entry.op.name}", (), (), entry.attrs, node=entry.node.name)
        binder = Binder(call, entry.op, None, able, device, name, {}, self._host.allocator, Resources().get, MAIN)
        return folding(binder, inputs, outputs)
