"""ConstantFolder: computes values that depend on constants alone, before any program is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...runtime.contract.device import Device
from ...runtime.contract.op import Attrs
from ...runtime.host.host import Host
from ...runtime.host.resources import Resources
from ...runtime.linker.binder import Binder
from ...runtime.linker.folding import Compute, folding_function, is_worth_folding
from ...runtime.program.host_program import Call
from ...runtime.values.tensor import TensorMetadata, ValueInfo, constant_info
from ..compiler.lower import MAIN
from ..compiler.resolve import Resolved

Metas = tuple[TensorMetadata, ...]
Likeness = tuple[str, int, Metas, Metas]  # op, attributes by identity, inputs and outputs


class ConstantFolder:
    """Folds with the kernels of a device that works on host memory, if the host has one.

    Similar nodes share one bound kernel, since the layers of a network have the same few shapes.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._bound: dict[Likeness, tuple[Attrs, Compute | None]] = {}  # holds the attributes: their ids stay unique

    def forget(self) -> None:
        """Drop the bound kernels, which hold attributes of nodes."""
        self._bound.clear()

    @cached_property
    def _device(self) -> tuple[str, Device] | None:
        name = self._host.host_device()
        return None if name is None else (name, self._host.open(name))

    def __call__(
        self, entry: Resolved, inputs: Sequence[ValueInfo], outputs: tuple[ValueInfo, ...]
    ) -> tuple[ValueInfo, ...]:
        """Return the known facts about a node's outputs, with their elements when folding the node is worth it."""
        named_device = None if entry.op.stateful or not is_worth_folding(inputs, outputs) else self._device
        if named_device is None:
            return outputs
        compute = (self._compute_for_likeness(named_device, entry, inputs, outputs)
                   or self._compute_by_kernel(named_device, entry, inputs, outputs))
        values = None if compute is None else compute(inputs)
        return outputs if values is None else tuple(map(constant_info, values))

    def _compute_for_likeness(
        self, named_device: tuple[str, Device], entry: Resolved, inputs: Sequence[ValueInfo],
        outputs: Sequence[ValueInfo]
    ) -> Compute | None:
        """Return the function that computes all nodes like this one.

        Returns None when no kernel takes such nodes, or when their metadata function reads elements of inputs.
        """
        rule = self._host.registries.ops.metadata(entry.op)
        if rule is not None and rule.values:
            return None
        like = entry.op.name, id(entry.attrs), tuple([i.meta for i in inputs]), tuple([o.meta for o in outputs])
        if like not in self._bound:
            unknown = [ValueInfo(i.meta) for i in inputs]
            self._bound[like] = entry.attrs, self._compute_by_kernel(named_device, entry, unknown, outputs)
        return self._bound[like][1]

    def _compute_by_kernel(
        self, named_device: tuple[str, Device], entry: Resolved, inputs: Sequence[ValueInfo],
        outputs: Sequence[ValueInfo]
    ) -> Compute | None:
        name, device = named_device
        able = tuple([kernel for kernel in self._host.registries.kernels.candidates(entry.op.name, device.type)
                      if kernel.refuses(entry.attrs) is None])
        call = Call(f"{device.type}.{entry.op.name}", (), (), entry.attrs, node=entry.node.name)
        binder = Binder(call, entry.op, None, able, device, name, {}, self._host.memory, Resources().get, MAIN,
                        self._host.debug.poison, self._host.files)
        return folding_function(binder, inputs, outputs)
