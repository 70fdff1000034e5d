"""Candidates: the kernels that may take the calls of one function, in the order in which they are asked."""

from __future__ import annotations

from ...errors import Unimplemented
from ..contract.device import Device
from ..host.host import Host
from ..program.host_program import HOST, Call, ProgramDef
from .binder import Binder
from .link_context import LinkContext


class Candidates:
    """`devices` and `names`: the program's devices and their names, by stream."""

    def __init__(self, program: ProgramDef, function: str, host: Host, context: LinkContext) -> None:
        self.devices: list[Device] = [host.open(name) for name in program.requires]
        self.names = program.requires
        self._function = function
        self._host = host
        self._context = context
        self._binders: dict[int, Binder] = {}

    def works_on_host(self, call: Call) -> bool:
        """True when the call's device works on host memory."""
        return bool(self.devices[call.stream].attributes.get("host_visible"))

    def result_memory(self, call: Call) -> int:
        """Return the stream whose memory holds the results of a call."""
        return HOST if self.works_on_host(call) else call.stream

    def binder(self, call: Call) -> Binder:
        """Return the binder of a call. Raises Unimplemented when the pack that it names has no kernel for it."""
        key = id(call)
        if key not in self._binders:
            ops = self._host.registries.ops
            op = ops.get(call.op)
            device, name = self.devices[call.stream], self.names[call.stream]
            kernels = [(k, k.refuses(call.attrs))
                       for k in self._host.registries.kernels.candidates(call.op, device.type)]
            candidates = [k for k, refusal in kernels if refusal is None]
            named = next((k for k in candidates if k.pack == call.pack), None)
            if named is None:
                why = "".join(f": {refusal}" for k, refusal in kernels if k.pack == call.pack)
                raise Unimplemented(f"no kernel {call.code} on {name}{why}", node=call.node, op=call.op, device=name,
                                    hint="'heald plugins' lists the packs")
            same = tuple(k for k in candidates[candidates.index(named):]
                         if k.host == named.host)
            self._binders[key] = Binder(call, op, ops.metadata(op), same, device, name, self._context.prepared,
                                        self._host.memory, self._context.resources.get, self._function,
                                        self._host.debug.poison, self._context.resources.files or self._host.files,
                                        self._context.stored)
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
