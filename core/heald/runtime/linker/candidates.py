"""Candidates: the kernels that may take the calls of one function, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import overload

from ...errors import Unimplemented
from ..contract.device import Device
from ..contract.kernel import KernelDef
from ..contract.op import Attrs
from ..host.host import Host
from ..program.host_program import HOST, Call, ProgramDef
from .binder import Binder
from .shared_by_links import SharedByLinks


class CandidatesFrom(Sequence[KernelDef]):
    """A kernel and those that are asked after it, in order. They are looked for when it has declined.

    A compiled model names the plugin of each call's kernel, so a start registers no kernels of other plugins.
    """

    def __init__(self, first: KernelDef, find_all: Callable[[], Sequence[KernelDef]], attrs: Attrs) -> None:
        self._first, self._find_all, self._attrs = first, find_all, attrs

    @cached_property
    def _kernels(self) -> tuple[KernelDef, ...]:
        kernels = self._find_all()
        begin = next(index for index, kernel in enumerate(kernels) if kernel is self._first)
        return self._first, *(kernel for kernel in kernels[begin + 1 :]
                              if kernel.host == self._first.host
                              and kernel.host_outputs == self._first.host_outputs
                              and kernel.refuses(self._attrs) is None)

    def __iter__(self) -> Iterator[KernelDef]:
        yield self._first
        yield from self._kernels[1:]

    def __len__(self) -> int:
        return len(self._kernels)

    @overload
    def __getitem__(self, index: int) -> KernelDef: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[KernelDef]: ...

    def __getitem__(self, index: int | slice) -> KernelDef | Sequence[KernelDef]:
        return self._first if index == 0 else self._kernels[index]


class Candidates:
    """`devices` and `names`: the program's devices and their names, by stream."""

    def __init__(self, program: ProgramDef, function: str, host: Host, shared: SharedByLinks) -> None:
        self.devices: list[Device] = [host.open(name) for name in program.requires]
        self.names = program.requires
        self._function = function
        self._host = host
        self._shared = shared
        self._binders: dict[int, Binder] = {}

    def works_on_host(self, call: Call) -> bool:
        """True when the call's device works on host memory."""
        return bool(self.devices[call.stream].attributes.get("host_visible"))

    def result_memory(self, call: Call) -> int:
        """Return the stream whose memory holds the results of a call."""
        if self.works_on_host(call) or self.binder(call).candidates[0].host_outputs:
            return HOST
        return call.stream

    def binder(self, call: Call) -> Binder:
        """Return the binder of a call. Raises Unimplemented when the pack that it names has no kernel for it."""
        key = id(call)
        if key not in self._binders:
            ops = self._host.registries.ops
            op = ops.get(call.op)
            device, name = self.devices[call.stream], self.names[call.stream]
            registry = self._host.registries.kernels
            kernels = [(k, k.refuses(call.attrs))
                       for k in registry.candidates(call.op, device.type, call.pack) if k.pack == call.pack]
            named = next((k for k, refusal in kernels if refusal is None), None)
            if named is None:
                why = "".join(f": {refusal}" for _, refusal in kernels)
                raise Unimplemented(f"no kernel {call.code} on {name}{why}", node=call.node, op=call.op, device=name,
                                    hint="'heald plugins' lists the packs")
            same = CandidatesFrom(named, partial(registry.candidates, call.op, device.type), call.attrs)
            self._binders[key] = Binder(call, op, ops.metadata(op), same, device, name, self._shared.prepared,
                                        self._host.memory, self._shared.resources.get, self._function,
                                        self._host.debug.poison, self._shared.resources.files or self._host.files,
                                        self._shared.stored, partial(self._shared.own, device))
        return self._binders[key]

    def folding_binder(self, call: Call) -> Binder | None:
        """Return the binder that can compute a call's results now.

        The call's own kernels if they work on host memory, else the kernels of a device that does. None without such
        a device.
        """
        binder = self.binder(call)
        if self.works_on_host(call):
            return binder
        name = self._host.host_device()
        if name is None:
            return None
        device = self._host.open(name)
        kernels = self._host.registries.kernels.candidates(call.op, device.type)
        able = tuple(k for k in kernels if k.refuses(call.attrs) is None)
        return binder._replace(candidates=able, device=device, device_name=name)
