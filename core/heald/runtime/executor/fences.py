"""Fences: the waits by which the streams of a device keep the order of a run.

A device may have streams for copies beside that of its kernels (DeviceQueues). Work on one stream does not wait for
work on another. A fence before a call has the call's stream wait for another stream, on the device: the host goes on.

Two calls need an order when they use the same memory and one of them writes it. Memory is a slot of the plan, so a slot
is used again only behind all work on its earlier value. The order of the calls is known when the function is linked,
so the fences are, too. A copy waits for all kernels that were enqueued before it. A kernel waits for one copy, by the
event behind it, and so for no later copy of that stream.

Fences stand only in functions whose calls run in the order of one list (`OrderedCalls.overlaps`). Elsewhere every call
is on the stream of the kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..contract.device import STREAM, Device, Event, Stream
from ..support.records import NamedTuple, record
from .call_order import OrderedCalls
from .calls.bound_call import BoundCall
from .calls.frame_calls import FrameCall
from .register_table import RegisterTable


class Fence(NamedTuple):
    """`stream` of the device waits for the event behind a copy, or for all kernels so far.

    `copy`: the index of the copy; None for the kernels.
    """

    device: Device
    stream: Stream
    copy: int | None


class Fences(NamedTuple):
    """The fences of a function.

    `before`: the fences of each call, by its index.
    `awaited`: by index, the device and the stream of each copy for which a fence waits.
    """

    before: Mapping[int, Sequence[Fence]]
    awaited: Mapping[int, tuple[Device, Stream]]


NO_FENCES = Fences({}, {})


class Access(NamedTuple):
    """A call's use of memory. `memory`: a slot of the plan, or the root of a register without one."""

    device: Device
    stream: Stream
    memory: tuple[bool, int]
    writes: bool


@record
class StreamOrder:
    """The order of a device's streams so far, as numbers of calls.

    `known`: by two streams, the number of calls of the second that are over for later work of the first.
    `written`: by memory, the stream and the index of the last write; `read`: the last read since, by stream.
    """

    known: dict[tuple[Stream, Stream], int]
    written: dict[tuple[bool, int], tuple[Stream, int]]
    read: dict[tuple[bool, int], dict[Stream, int]]

    def work_to_await(self, access: Access) -> list[tuple[Stream, int]]:
        """Return the earlier work that this access must come behind, by its stream and the index of its call."""
        earlier = [self.written[access.memory]] if access.memory in self.written else []
        if access.writes:
            earlier += self.read[access.memory].items()
        return [(stream, number) for stream, number in earlier
                if stream != access.stream and self.known[access.stream, stream] <= number]

    def note(self, access: Access, number: int) -> None:
        if access.writes:
            self.written[access.memory] = access.stream, number
            self.read[access.memory].clear()
        else:
            self.read[access.memory][access.stream] = number


def find_fences(order: OrderedCalls, registers: RegisterTable, slot_of: Mapping[int, int]) -> Fences:
    """Return the fences of a function with these slots, by index of the call. Devices with one stream need none."""
    if not order.overlaps:
        return NO_FENCES
    orders: defaultdict[int, StreamOrder] = defaultdict(
        lambda: StreamOrder(defaultdict(int), {}, defaultdict(dict)))
    before: dict[int, list[Fence]] = {}
    awaited: dict[int, tuple[Device, Stream]] = {}
    for number, bound in enumerate(order.calls):
        if bound.is_view:
            continue
        accesses = [*_accesses(bound, registers, slot_of)]
        for access in accesses:
            streams = orders[id(access.device)]
            for other, source in streams.work_to_await(access):
                of_kernels = other == STREAM
                streams.known[access.stream, other] = number if of_kernels else source + 1
                fence = Fence(access.device, access.stream, None if of_kernels else source)
                before.setdefault(number, []).append(fence)
                if not of_kernels:
                    awaited[source] = access.device, other
        for access in accesses:  # reads first, so that a write behind them stays
            orders[id(access.device)].note(access, number)
    return Fences(before, awaited)


def copy_streams(order: OrderedCalls) -> Mapping[int, Stream]:
    """Return the streams of the copies that are not on the stream of the kernels, by the register of their result."""
    if not order.overlaps:
        return {}
    return {bound.call.results[0]: bound.device_stream for bound in order.calls if bound.device_stream != STREAM}


def fenced_calls(calls: Sequence[FrameCall], numbers: Sequence[int], fences: Fences) -> list[FrameCall]:
    """Return the calls of one frame, which have these indices, behind their fences."""
    events: dict[int, Event] = {}  # of the copies in the frame's current run
    return [_fenced_call(call, number, fences, events) if number in fences.before or number in fences.awaited else call
            for number, call in zip(numbers, calls, strict=True)]


def _fenced_call(call: FrameCall, number: int, fences: Fences, events: dict[int, Event]) -> FrameCall:
    before, awaited = fences.before.get(number, ()), fences.awaited.get(number)

    def run() -> Any:
        for device, stream, copy in before:
            device.wait(stream, device.record(STREAM) if copy is None else events[copy])
        returned = call()
        if awaited is not None:
            device, stream = awaited
            events[number] = device.record(stream)
        return returned

    return run


def _accesses(bound: BoundCall, registers: RegisterTable, slot_of: Mapping[int, int]) -> Iterator[Access]:
    """Yield the uses of device memory by a call, the reads first. Another device's call uses the kernels' stream."""
    for numbers, writes in ((bound.call.args, False), (bound.call.results, True)):
        for root in dict.fromkeys(registers.root[register] for register in numbers):
            device = registers.device_of.get(root)
            if device is not None:
                memory = root in slot_of, slot_of.get(root, root)
                yield Access(device, bound.device_stream if device is bound.device else STREAM, memory, writes)
