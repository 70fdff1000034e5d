"""Lowering: turns the placed nodes of a step into a ProgramDef of one function.

A value that crosses between host memory and a device's memory is copied once per destination, however many consumers it
has. A control edge makes a call wait for the values of its source. When the source is on a device that works
asynchronously, and the call is elsewhere, the call waits for an event of that device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..contract.host_type import CHAIN
from ..contract.op import OpRegistry
from ..contract.structural import CONST, NO_OP
from ..errors import Unimplemented
from ..program.host_program import CONSTANT, COPY, EVENT, HOST, Call, ProgramDef, ProgramFunction, RegisterType
from ..values.tensor import TensorMetadata, ValueInfo
from .infer import infer_registers
from .infer_node import elements
from .place import Placement
from .prune import Tensor
from .resolve import Resolved

MAIN = "main"


class Builder:
    """A function being written: its calls, and its registers with their types and the stream of their memory.

    `host_visible`: names of devices that work on host memory.
    """

    def __init__(self, host_visible: frozenset[str]) -> None:
        self.host_visible = host_visible
        self.types: list[RegisterType] = []
        self.streams: list[int] = []
        self.calls: list[Call] = []
        self.constants: list[Any] = []
        self.devices: list[str] = []
        self.copies: dict[tuple[int, int], int] = {}  # (register, stream) -> register
        self.made: dict[str, Call] = {}  # node -> its call
        self.held: dict[str, tuple[str, ...]] = {}  # node without a call -> the nodes that run before it
        self.events: dict[str, int] = {}  # node -> register that is filled when the device has done the node

    def register(self, kind: RegisterType, stream: int) -> int:
        self.types.append(kind)
        self.streams.append(stream)
        return len(self.types) - 1

    def stream(self, device: str) -> int:
        if device not in self.devices:
            self.devices.append(device)
        return self.devices.index(device)

    def memory(self, device: str) -> int:
        """Return the stream whose memory holds a device's values: HOST for a device that works on host memory."""
        return HOST if device in self.host_visible else self.stream(device)

    def moved(self, register: int, stream: int, node: str) -> int:
        """Return the register that holds the value in the memory of `stream`, copying it there at most once."""
        if self.streams[register] == stream:
            return register
        if stream != HOST and self.streams[register] != HOST:
            register = self.moved(register, HOST, node)
        if (register, stream) not in self.copies:
            copy = self.register(self.types[register], stream)
            self.copies[register, stream] = copy
            attrs = {"to": "host" if stream == HOST else "device"}
            device = max(stream, self.streams[register])
            self.calls.append(Call(COPY, (register,), (copy,), attrs, device, node))
        return self.copies[register, stream]

    def after(self, entry: Resolved, memory: int) -> tuple[int, ...]:
        """Return the registers that a node waits for because of control edges.

        `memory` is the stream whose memory the node works on. A source on the same stream only needs to be enqueued
        before.
        """
        registers: dict[int, None] = {}
        for name in self.sources(entry):
            call = self.made[name]
            stream = self.memory(self.devices[call.stream])
            if stream in (HOST, memory):
                registers.update(dict.fromkeys(call.gives))
                continue
            if name not in self.events:
                self.events[name] = self.register(CHAIN, HOST)
                self.calls.append(Call(EVENT, (), (self.events[name],), {}, stream, name, after=call.gives))
            registers[self.events[name]] = None
        return tuple(registers)

    def sources(self, entry: Resolved) -> tuple[str, ...]:
        """Return the nodes with calls that control edges order before this one, also through nodes without calls."""
        found: dict[str, None] = {}
        for name in (*entry.node.controls, *(node for node, _ in entry.inputs if node in self.held)):
            found.update(dict.fromkeys(self.held.get(name, (name,) if name in self.made else ())))
        return tuple(found)


def lower(
    order: Sequence[Resolved], placement: Placement, feeds: Sequence[tuple[Tensor, TensorMetadata]],
    fetches: Sequence[Tensor], targets: Sequence[str], host_visible: frozenset[str], ops: OpRegistry,
) -> ProgramDef:
    """Return the program that computes `fetches`, and runs `targets`, from `feeds`.

    Raises the placement error of a node, and Unimplemented for ops on references.
    """
    builder = Builder(host_visible)
    at: dict[Tensor, int] = {tensor: builder.register(meta, HOST) for tensor, meta in feeds}
    for entry in order:
        _lower_node(builder, entry, placement, at)
    results = tuple(builder.moved(at[tensor], HOST, tensor[0]) for tensor in fetches)
    acting = [node for name in targets for node in builder.held.get(name, (name,)) if node in builder.made]
    effects = tuple(dict.fromkeys(register for node in acting for register in builder.made[node].gives))
    names = tuple(f"{node}:{index}" for (node, index), _ in feeds)
    function = ProgramFunction(MAIN, names, tuple(builder.types), tuple(builder.calls), results, effects)
    arguments = [ValueInfo(meta) for _, meta in feeds]
    known = infer_registers(function, arguments, builder.constants, ops)
    types = [kind if isinstance(kind, str) else info.meta for kind, info in zip(builder.types, known, strict=True)]
    function = function._replace(register_types=tuple(types))
    return ProgramDef({MAIN: function}, tuple(builder.constants), tuple(builder.devices))


def _lower_node(builder: Builder, entry: Resolved, placement: Placement, at: dict[Tensor, int]) -> None:
    node, op = entry.node, entry.op.name
    row = placement[node.name]
    if row.error is not None:
        raise row.error
    if op in (NO_OP, CONST):
        builder.held[node.name] = builder.sources(entry)
    if op == NO_OP:
        return
    if op == CONST:
        value = elements(entry.attrs["value"])
        register = builder.register(TensorMetadata(entry.attrs["dtype"], value.shape), HOST)
        builder.calls.append(Call(CONSTANT, (), (register,), {"index": len(builder.constants)}, node=node.name))
        builder.constants.append(value)
        at[node.name, 0] = register
        return
    kernel = row.kernel
    assert kernel is not None
    assert row.device
    _refuse_references(entry)
    memory = builder.memory(row.device)
    args = tuple(
        builder.moved(at[source], HOST if tensor.arg in kernel.host else memory, node.name)
        for source, tensor in zip(entry.inputs, entry.input_tensors, strict=True)
    )
    results = tuple(builder.register(TensorMetadata(t.dtype, None), memory) for t in entry.output_tensors)
    for index, register in enumerate(results):
        at.setdefault((node.name, index), register)  # a fed output keeps the fed value
    stream = builder.stream(row.device)
    call = Call(f"{kernel.pack}.{op}", args, results, entry.attrs, stream, node.name,
                after=builder.after(entry, memory), chain=None if results else builder.register(CHAIN, HOST))
    builder.made[node.name] = call
    builder.calls.append(call)


def _refuse_references(entry: Resolved) -> None:
    for arg in (*entry.op.inputs, *entry.op.outputs):
        if arg.is_ref:
            raise Unimplemented(f"op {entry.op.name} works on references ('{arg.name}'): variables are not run yet",
                                node=entry.node.name, op=entry.op.name)
