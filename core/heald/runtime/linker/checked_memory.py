"""The check that every call reads its arguments in the memory that it works on.

The compiler copies values between memories. A file may lack a copy, and a kernel would take the handle of a buffer for
an array, or an array for a handle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import InvalidArgument
from ..contract.op_registry import OpRegistry
from ..executor.calls.bound_call import BoundCall
from ..program.host_program import COPY, HOST, ProgramFunction
from .candidates import Candidates


def check_memory(
    function: ProgramFunction, bound_calls: Sequence[BoundCall], memory: Mapping[int, int], candidates: Candidates,
    ops: OpRegistry,
) -> None:
    """Raises InvalidArgument for an argument in another memory than the call's, and for a result on a device.

    `memory`: for each register the stream whose memory holds it, HOST for host memory.
    """
    if all(device.attributes.get("host_visible") for device in candidates.devices):
        return
    from ..executor.calls.failing_call import FailingCall

    for bound in bound_calls:
        if isinstance(bound, FailingCall):
            continue  # it reads nothing
        for register, expected_memory in zip(bound.call.args, _expected_memories(bound, memory, ops), strict=True):
            if memory[register] != expected_memory:
                where, expected = (_memory_name(stream, candidates) for stream in (memory[register], expected_memory))
                raise InvalidArgument(f"{bound.call.code} reads register {register} in {expected}, it is in {where}",
                                      node=bound.call.node or None, location=bound.call.location,
                                      hint="a call of heald.copy moves it")
    if any(memory[register] != HOST for register in function.results):
        raise InvalidArgument(f"function '{function.name}' returns a value in a device's memory",
                              location=function.location, hint="a call of heald.copy moves it")


def _expected_memories(bound: BoundCall, memory: Mapping[int, int], ops: OpRegistry) -> list[int]:
    """Return for each argument the stream in whose memory the call reads it."""
    call = bound.call
    if call.code == COPY:
        to_host = call.attrs["to"] == "host"
        return [call.stream if to_host else call.attrs.get("from", HOST)]
    if bound.sees_host or bound.kernel is None:
        return [HOST] * len(call.args)
    if bound.kernel.compiler:  # its inputs are where the calls of the group read them
        return [memory[r] if memory[r] in (HOST, call.stream) else call.stream for r in call.args]
    if call.fused:  # no fusion reads in host memory
        return [call.stream] * len(call.args)
    tensors = ops.get(call.op).expand_inputs(call.attrs)
    return [HOST if tensor.arg in bound.kernel.host else call.stream for tensor in tensors]


def _memory_name(stream: int, candidates: Candidates) -> str:
    return "host memory" if stream == HOST else f"the memory of {candidates.names[stream]}"
