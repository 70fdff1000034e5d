"""Lowering: turns placed nodes into a function of a program.

A value that crosses between host memory and a device's memory is copied once per destination, however many consumers it
has. A control edge makes a call wait for the values of its source. When the source is on a device that works
asynchronously, and the call is elsewhere, the call waits for an event of that device.
"""

# The theory of lowering
#
# A register is one tensor in one memory. `at` has the register that the producer filled, `copies` the register of each
# further memory. The op of a node decides about its call:
#
#   op                                        becomes
#   a constant                                `heald.constant`, in host memory
#   NoOp                                      no call: its control edges pass through (`nodes_before`)
#   a call of functions, Switch, Merge        a host kernel's call, over values in host memory
#   Send, Recv                                the same
#   any other                                 a call of the kernel that placement chose, in the stream of its device
#
# A control edge makes the call wait for registers, by the source of the edge:
#
#   source                                    registers
#   a node without a call                     the registers of the nodes before it
#   a call on host memory                     all that the call fills
#   a Switch                                  its chain alone: at least one of its outputs is dead
#   a call on the same stream                 all that the call fills; a stream keeps its order
#   a call on another stream                  one event behind the call, shared by all waiting calls
#
# Invariants
# - A register is assigned once, by an earlier call than each of its consumers. The order of the nodes implies it.
# - Arguments and results of a function are in host memory.
# - A fed tensor keeps the fed value, even if its node runs for another output.
# - A copy from device to device needs a destination that reaches the memory of the source. Otherwise it goes through
#   the host.
# - All functions of one call return a chain behind their results if one of them has effects.
# - Devices and kernels are names here. No device is called, and nothing but the given pool is changed.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument
from ...runtime.contract.host_type import CHAIN
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.placement import Assignment, Placement
from ...runtime.contract.rendezvous import RendezvousKey
from ...runtime.contract.structural import (
    CONST,
    DEAD_VALUES,
    FRAME_OP,
    MERGE_CODE,
    NO_OP,
    RECV_CODE,
    RECVS,
    SEND_CODE,
    SENDS,
    SWITCH_N_CODE,
)
from ...runtime.program.deferred_errors import SWITCH_CODES, DeferredErrors
from ...runtime.program.host_program import CONSTANT, COPY, EVENT, HOST, Call, ProgramFunction, RegisterType
from ...runtime.program.infer import infer_registers
from ...runtime.values.tensor import TensorMetadata, ValueInfo
from .call_site import CallSite
from .feed_hint import add_feed_hint
from .infer_node import program_constant
from .prune import Tensor
from .resolve import Resolved

MAIN = "main"
NEW_CHAIN = "tfrt.new.chain"
GATE = "heald.gate"
_KEY_ATTRIBUTES = ("send_device", "send_device_incarnation", "recv_device", "tensor_name")
OPS_WITH_DEAD_OUTPUTS = frozenset({*DEAD_VALUES, FRAME_OP, *RECVS})


class ProgramResources:
    """The constants of a program, and its devices in the order of their streams: all its functions share them.

    `host_visible`: names of devices that work on host memory.
    `reached`: pairs of names (destination, source) of devices that copy from the other's memory.
    """

    def __init__(self) -> None:
        self.host_visible: frozenset[str] = frozenset()
        self.reached: frozenset[tuple[str, str]] = frozenset()
        self.constants: list[Any] = []
        self.devices: list[str] = []


class FunctionBuilder:
    """A function being written: its calls, and its registers with their types and the stream of their memory."""

    def __init__(self, pool: ProgramResources) -> None:
        self.may_be_dead = False  # some values of the function may be dead
        self.host_visible = pool.host_visible
        self.reached = pool.reached
        self.constants = pool.constants
        self.devices = pool.devices
        self.types: list[RegisterType] = []
        self.streams: list[int] = []
        self.calls: list[Call] = []
        self.copies: dict[tuple[int, int], int] = {}  # (register, stream) -> register
        self.calls_by_node: dict[str, Call] = {}  # node -> its call
        self.nodes_before: dict[str, tuple[str, ...]] = {}  # node without a call -> the nodes that run before it
        self.events: dict[str, int] = {}  # node -> register that is filled when the device has done the node

    def new_register(self, kind: RegisterType, stream: int) -> int:
        self.types.append(kind)
        self.streams.append(stream)
        return len(self.types) - 1

    def stream_of(self, device: str) -> int:
        if device not in self.devices:
            self.devices.append(device)
        return self.devices.index(device)

    def memory_stream(self, device: str) -> int:
        """Return the stream whose memory holds a device's values: HOST for a device that works on host memory."""
        return HOST if device in self.host_visible else self.stream_of(device)

    def register_in_memory(self, register: int, stream: int, node: str) -> int:
        """Return the register that holds the value in the memory of `stream`, copying it there at most once."""
        if self.streams[register] == stream:
            return register
        is_peer = HOST not in (stream, self.streams[register])
        if is_peer and (self.devices[stream], self.devices[self.streams[register]]) not in self.reached:
            register, is_peer = self.register_in_memory(register, HOST, node), False
        if (register, stream) not in self.copies:
            copy = self.new_register(self.types[register], stream)
            self.copies[register, stream] = copy
            attrs = {"to": "device", "from": self.streams[register]} if is_peer else {
                "to": "host" if stream == HOST else "device"}
            device = stream if is_peer else max(stream, self.streams[register])
            self.calls.append(Call(COPY, (register,), (copy,), attrs, device, node))
        return self.copies[register, stream]

    def registers_before(self, entry: Resolved, memory: int) -> tuple[int, ...]:
        """Return the registers that a node waits for because of control edges.

        `memory` is the stream whose memory the node works on. A source on the same stream only needs to be enqueued
        before.
        """
        return self.registers_when_done(self.nodes_ordered_before(entry), memory)

    def registers_when_done(self, nodes: Iterable[str], memory: int) -> tuple[int, ...]:
        """Return the registers that are filled when these nodes have run, for work on the memory of this stream."""
        registers: dict[int, None] = {}
        for name in nodes:
            call = self.calls_by_node[name]
            stream = HOST if call.stream == HOST else self.memory_stream(self.devices[call.stream])
            if stream in (HOST, memory):
                registers.update(dict.fromkeys(call.results[-1:] if call.code in SWITCH_CODES else call.gives))
                continue
            if name not in self.events:
                self.events[name] = self.new_register(CHAIN, HOST)
                self.calls.append(Call(EVENT, (), (self.events[name],), {}, stream, name, after=call.gives))
            registers[self.events[name]] = None
        return tuple(registers)

    def nodes_ordered_before(self, entry: Resolved) -> tuple[str, ...]:
        """Return the nodes with calls that control edges order before this one, also through nodes without calls."""
        nodes: dict[str, None] = {}
        for name in (*entry.node.controls, *(node for node, _ in entry.inputs if node in self.nodes_before)):
            nodes.update(dict.fromkeys(self.nodes_before.get(name, (name,) if name in self.calls_by_node else ())))
        return tuple(nodes)


def lower(
    name: str, order: Sequence[Resolved], placement: Placement, feeds: Sequence[tuple[Tensor, TensorMetadata]],
    fetches: Sequence[Tensor], targets: Sequence[str], pool: ProgramResources, ops: OpRegistry,
    sites: Mapping[str, CallSite], *, gives_chain: bool = False, takes_dead: bool = False,
) -> ProgramFunction:
    """Return the function that computes `fetches`, and runs `targets`, from `feeds`.

    `sites`: the nodes that call functions.
    `gives_chain`: one more result is a chain, filled when the targets have run.
    `takes_dead`: the feeds may be dead.

    Raises the placement error of a node.
    """
    builder = FunctionBuilder(pool)
    builder.may_be_dead = takes_dead or any(entry.op.name in OPS_WITH_DEAD_OUTPUTS for entry in order)
    at: dict[Tensor, int] = {tensor: builder.new_register(meta, HOST) for tensor, meta in feeds}
    for entry in order:
        if entry.node.name in sites:
            _lower_site(builder, sites[entry.node.name], at)
        elif entry.op.name in DEAD_VALUES:
            _lower_dead_values(builder, entry, at)
        elif entry.op.name in SENDS:
            _lower_send(builder, entry, at)
        elif entry.op.name in RECVS:
            _lower_recv(builder, entry, at)
        else:
            row = placement[entry.node.name]
            if row.error is not None:
                raise add_feed_hint(row.error, entry, order, at)
            _lower_node(builder, entry, row, at)
    results = tuple(builder.register_in_memory(at[tensor], HOST, tensor[0]) for tensor in fetches)
    acting = [node for target in targets
              for node in builder.nodes_before.get(target, (target,)) if node in builder.calls_by_node]
    effects = tuple(dict.fromkeys(register for node in acting for register in builder.calls_by_node[node].gives))
    if gives_chain:
        chain, after = builder.new_register(CHAIN, HOST), builder.registers_when_done(acting, HOST)
        builder.calls.append(Call(NEW_CHAIN, (), (chain,), after=after))
        results += (chain,)
    names = tuple(f"{node}:{index}" for (node, index), _ in feeds)
    function = ProgramFunction(name, names, tuple(builder.types), tuple(builder.calls), results, effects)
    arguments = [ValueInfo(meta) for _, meta in feeds]
    deferred_errors = DeferredErrors(function, is_conditional=name != MAIN)  # the link checks called functions
    inferred = infer_registers(function, arguments, builder.constants, ops, defers=deferred_errors.defers)
    types = [kind if isinstance(kind, str) else info.meta for kind, info in zip(builder.types, inferred, strict=True)]
    return function._replace(register_types=tuple(types))


def _lower_site(builder: FunctionBuilder, site: CallSite, at: dict[Tensor, int]) -> None:
    """Write a node that calls functions (If, While, a call) as one kernel call. Its values are in host memory."""
    entry = site.entry
    node = entry.node.name
    args = tuple(builder.register_in_memory(at[entry.inputs[index]], HOST, node) for index in site.inputs)
    results = []
    for index, tensor in enumerate(entry.output_tensors):
        passed = site.forwarded_inputs.get(index)
        if passed is None:
            results.append(builder.new_register(TensorMetadata(tensor.dtype, None), HOST))
        at.setdefault((node, index), results[-1] if passed is None else at[entry.inputs[passed]])
    if site.has_effects:
        results.append(builder.new_register(CHAIN, HOST))
    call = Call(site.code, args, tuple(results), site.attrs, HOST, node, site.functions,
                after=builder.registers_before(entry, HOST),
                chain=None if results else builder.new_register(CHAIN, HOST))
    builder.calls_by_node[node] = call
    builder.calls.append(call)


def _lower_dead_values(builder: FunctionBuilder, entry: Resolved, at: dict[Tensor, int]) -> None:
    """Write the call of a Switch, a Merge or a ControlTrigger: the ops that make dead values or run in spite of them.

    Their values are in host memory. A Switch has one more result, a chain: at least one of its outputs is dead, so a
    node with a control edge from the Switch waits for the chain, which is always alive.
    """
    node, code = entry.node.name, DEAD_VALUES[entry.op.name]
    args = tuple(builder.register_in_memory(at[source], HOST, node) for source in entry.inputs)
    results = tuple(builder.new_register(TensorMetadata(tensor.dtype, None), HOST) for tensor in entry.output_tensors)
    for index, register in enumerate(results):
        at.setdefault((node, index), register)
    if code != MERGE_CODE:
        results += (builder.new_register(CHAIN, HOST),)
    attrs = {"outputs": len(entry.output_tensors)} if code == SWITCH_N_CODE else {}
    call = Call(code, args, results, attrs, HOST, node, after=builder.registers_before(entry, HOST))
    builder.calls_by_node[node] = call
    builder.calls.append(call)


def _lower_send(builder: FunctionBuilder, entry: Resolved, at: dict[Tensor, int]) -> None:
    """Write a Send, which gives a value in host memory to the step's rendezvous.

    A Send whose control inputs are dead sends a dead value, as in TensorFlow: a gate kills the value.
    """
    node = entry.node.name
    value, after = builder.register_in_memory(at[entry.inputs[0]], HOST, node), builder.registers_before(entry, HOST)
    if after and builder.may_be_dead:
        gated = builder.new_register(builder.types[value], HOST)
        builder.calls.append(Call(GATE, (value,), (gated,), {}, HOST, node, after=after))
        value, after = gated, ()
    chain = builder.new_register(CHAIN, HOST)
    call = Call(SEND_CODE, (value,), (chain,), {"key": _rendezvous_key(entry)}, HOST, node, after=after)
    builder.calls_by_node[node] = call
    builder.calls.append(call)


def _lower_recv(builder: FunctionBuilder, entry: Resolved, at: dict[Tensor, int]) -> None:
    """Write a Recv, whose value comes from the step's rendezvous to host memory."""
    node = entry.node.name
    register = builder.new_register(TensorMetadata(entry.output_tensors[0].dtype, None), HOST)
    at.setdefault((node, 0), register)
    attrs = {"key": _rendezvous_key(entry), "client_terminated": bool(entry.attrs["client_terminated"])}
    call = Call(RECV_CODE, (), (register,), attrs, HOST, node, after=builder.registers_before(entry, HOST))
    builder.calls_by_node[node] = call
    builder.calls.append(call)


def _rendezvous_key(entry: Resolved) -> str:
    """Return the key under which a Send and its Recv meet.

    All turns of a loop share one key: the order of the sends keeps them apart. Raises InvalidArgument for names that
    make no key.
    """
    source, incarnation, destination, tensor = (entry.attrs[name] for name in _KEY_ATTRIBUTES)
    key = str(RendezvousKey(_as_text(source), incarnation % (1 << 64), _as_text(destination), _as_text(tensor)))
    try:
        RendezvousKey.parse(key)
    except InvalidArgument as error:
        raise error.at(node=entry.node.name, op=entry.op.name)  # noqa: B904 - the same error, with its node
    return key


def _as_text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _lower_gate(builder: FunctionBuilder, entry: Resolved, at: dict[Tensor, int]) -> None:
    """Write a call that passes a constant on, and is dead when the constant's control inputs are."""
    node = entry.node.name
    after = builder.registers_when_done(builder.nodes_before.pop(node), HOST)
    register = builder.new_register(builder.types[at[node, 0]], HOST)
    call = Call(GATE, (at[node, 0],), (register,), {}, HOST, node, after=after)
    at[node, 0] = register
    builder.calls_by_node[node] = call
    builder.calls.append(call)


def _lower_node(builder: FunctionBuilder, entry: Resolved, row: Assignment, at: dict[Tensor, int]) -> None:
    node, op = entry.node, entry.op.name
    if op in (NO_OP, CONST):
        builder.nodes_before[node.name] = builder.nodes_ordered_before(entry)
    if op == NO_OP:
        return
    if op == CONST:
        value = program_constant(entry.attrs["value"])
        register = builder.new_register(TensorMetadata(entry.attrs["dtype"], value.shape), HOST)
        builder.calls.append(Call(CONSTANT, (), (register,), {"index": len(builder.constants)}, node=node.name))
        builder.constants.append(value)
        at[node.name, 0] = register
        if builder.may_be_dead and builder.nodes_before[node.name]:
            _lower_gate(builder, entry, at)
        return
    kernel = row.kernel
    assert kernel is not None
    assert row.device
    memory = builder.memory_stream(row.device)
    args = tuple(
        builder.register_in_memory(at[source], HOST if tensor.arg in kernel.host else memory, node.name)
        for source, tensor in zip(entry.inputs, entry.input_tensors, strict=True)
    )
    result_memory = HOST if kernel.host_outputs else memory
    results = tuple(builder.new_register(TensorMetadata(t.dtype, None), result_memory) for t in entry.output_tensors)
    for index, register in enumerate(results):
        at.setdefault((node.name, index), register)  # a fed output keeps the fed value
    stream = builder.stream_of(row.device)
    call = Call(f"{kernel.pack}.{op}", args, results, entry.attrs, stream, node.name,
                after=builder.registers_before(entry, result_memory),
                chain=None if results else builder.new_register(CHAIN, HOST))
    builder.calls_by_node[node.name] = call
    builder.calls.append(call)
