"""Lowering: the placed nodes of a step become a HostProgram of one function.

A value that crosses between host memory and a device's is copied once for each destination, however many use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import Unimplemented
from .host_program import CONSTANT, COPY, HOST, Call, Function, HostProgram
from .infer import infer_registers
from .op import OpRegistry
from .place import Placement
from .prune import Tensor
from .resolve import Resolved
from .tensor import TensorMetadata, ValueInfo

MAIN = "main"


@dataclass
class Builder:
    """A function being written: registers with their types and the stream whose memory holds them."""

    host_visible: frozenset[str]  # devices whose memory is the host's
    types: list[TensorMetadata] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    copies: dict[tuple[int, int], int] = field(default_factory=dict)  # (register, stream) -> register

    def register(self, meta: TensorMetadata, stream: int) -> int:
        self.types.append(meta)
        self.streams.append(stream)
        return len(self.types) - 1

    def stream(self, device: str) -> int:
        if device not in self.devices:
            self.devices.append(device)
        return self.devices.index(device)

    def memory(self, device: str) -> int:
        """The stream whose memory a device's values live in: the host's where the device can see it."""
        return HOST if device in self.host_visible else self.stream(device)

    def moved(self, register: int, stream: int, node: str) -> int:
        """The register that holds a value in the memory of `stream`."""
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


def lower(
    order: Sequence[Resolved], placement: Placement, feeds: Sequence[tuple[Tensor, TensorMetadata]],
    fetches: Sequence[Tensor], targets: Sequence[str], host_visible: frozenset[str], ops: OpRegistry,
) -> HostProgram:
    """The program that computes `fetches` (and runs `targets`) from `feeds`. Raises what stands in a node's way."""
    builder = Builder(host_visible)
    at: dict[Tensor, int] = {tensor: builder.register(meta, HOST) for tensor, meta in feeds}
    for entry in order:
        _lower_node(builder, entry, placement, at)
    results = tuple(builder.moved(at[tensor], HOST, tensor[0]) for tensor in fetches)
    effects = tuple(dict.fromkeys(at[name, 0] for name in targets if (name, 0) in at))
    names = tuple(f"{node}:{index}" for (node, index), _ in feeds)
    function = Function(MAIN, names, tuple(builder.types), tuple(builder.calls), results, effects)
    arguments = [ValueInfo(meta) for _, meta in feeds]
    known = infer_registers(function, arguments, builder.constants, ops)
    function = replace(function, register_types=tuple(info.meta for info in known))
    return HostProgram({MAIN: function}, tuple(builder.constants), tuple(builder.devices))


def _lower_node(builder: Builder, entry: Resolved, placement: Placement, at: dict[Tensor, int]) -> None:
    node, op = entry.node, entry.op.name
    row = placement[node.name]
    if row.error is not None:
        raise row.error
    if op == "NoOp":
        return
    if op == "Const":
        value = entry.attrs["value"].array()
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
        at.setdefault((node.name, index), register)  # an output that is fed keeps the fed value
    builder.calls.append(
        Call(f"{kernel.pack}.{op}", args, results, entry.attrs, builder.stream(row.device), node.name))


def _refuse_references(entry: Resolved) -> None:
    for arg in (*entry.op.inputs, *entry.op.outputs):
        if arg.is_ref:
            raise Unimplemented(f"op {entry.op.name} works on references ('{arg.name}'): variables are not run yet",
                                node=entry.node.name, op=entry.op.name)
