"""The fake driver: the functions of heald_cuda.driver over the machine of heald_sim, whose clocks find missing waits.

Enqueued work runs when the host waits for it, so a program that does not wait is always too early. A mistake of the
program raises Misuse at the next wait, and stands in `report`. `plant` makes the next call of a function fail.

HEALDTEST_NVRTC names an architecture such as sm_90: the plugin's own compiler then compiles each text for it, too.
"""

from __future__ import annotations

import ctypes
import os
import threading
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from heald.api import Unavailable
from heald_cuda.driver import INSTALL, OUT_OF_MEMORY, Context, Description, DriverError
from heald_cuda.driver import compile_text as compile_for_a_gpu
from heald_sim.happens_before import Access, History
from heald_sim.machine import Event, Item, Machine, Record, Stream, Wait

from .host_compiler import HostKernel, host_kernel, is_there, signature

GPUS = int(os.environ.get("HEALDTEST_GPUS", "2"))
MEMORY = int(os.environ.get("HEALDTEST_GPU_MEMORY", str(256 << 20)))
NVRTC = os.environ.get("HEALDTEST_NVRTC", "")
CAPABILITY = (99, 1 if NVRTC else 0)  # of no GPU: caches of true GPUs get none of these texts
GUARD, POISON, GUARDED = 64, 0xFF, 0xA5
QUARANTINE = 4 << 20  # bytes of freed memory that no allocation gets: a pointer into it stays wrong
STICKY = "CUDA_ERROR_ILLEGAL_ADDRESS"
UNSAFE = frozenset({"allocate_host", "free_host", "function", "synchronize", "trim", "open_context"})


class Misuse(AssertionError):
    """The program drives the device wrongly."""


class Memory:
    """An allocation, of a GPU or of pinned host memory, between two guards."""

    def __init__(self, nbytes: int, ordinal: int | None) -> None:
        self.ordinal = ordinal
        self.nbytes = nbytes
        self._bytes = np.full(nbytes + 2 * GUARD + 256, POISON, np.uint8)
        start = self._bytes.__array_interface__["data"][0]
        self.address = -(-(start + GUARD) // 256) * 256
        self.offset = self.address - start
        for guard in self._guards():
            guard.fill(GUARDED)
        self.size = self._bytes.nbytes
        self.state = "live"
        self.history = History()

    def _guards(self) -> Iterator[np.ndarray[Any, Any]]:
        yield self._bytes[self.offset - GUARD : self.offset]
        yield self._bytes[self.offset + self.nbytes : self.offset + self.nbytes + GUARD]

    def at(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        first = address - self.address + self.offset
        return self._bytes[first : first + nbytes]

    def is_spilt(self) -> bool:
        return any((guard != GUARDED).any() for guard in self._guards())

    def end(self) -> None:
        self.state = "freed"
        self._bytes.fill(POISON)

    def __str__(self) -> str:
        return f"{self.nbytes} bytes of {'the host' if self.ordinal is None else f'GPU {self.ordinal}'}"


class Use(NamedTuple):
    """A use of memory by work: the allocation, the bytes, and the kind of access."""

    memory: Memory
    address: int
    nbytes: int
    writes: bool


class Work(Item):
    """A launch, a copy, a release or a graph: `run_it` does it, after the checks of all its uses."""

    def __init__(self, what: str, uses: Sequence[Use], run_it: Callable[[], None], releases: Memory | None = None):
        self.what = what
        self.uses = uses
        self.run_it = run_it
        self.releases = releases

    def run(self, stream: Stream, start: float) -> None:
        stream.seconds = start + 1e-6
        stream.learn(self.issuing_clock)
        access = Access(stream.actor, stream.tick(), self.what)
        faults = [f"{self.what} uses {use.memory}, which was freed" for use in self.uses if use.memory.state != "live"]
        for use in self.uses:
            earlier = use.memory.history.conflict(stream.clock, writes=use.writes)
            if earlier is not None:
                faults.append(f"{self.what} on {stream} and {earlier.what} on {earlier.actor} use {use.memory}, and "
                              "nothing orders them")
                stream.learn({earlier.actor: earlier.tick})
            use.memory.history.add(access, writes=use.writes)
        try:
            if not faults:
                self.run_it()
        except (Misuse, ValueError) as error:
            faults.append(str(error))
        faults += [f"{self.what} wrote beyond {use.memory}" for use in self.uses if use.memory.is_spilt()]
        for fault in faults:
            state.report_fault(fault)
        if self.releases is not None:
            state.release(self.releases)


class State:
    """All of the driver: contexts, streams, events, memory, kernels, graphs, and planted faults."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.report: list[str] = []
        self.owed: list[str] = []
        self.lost: dict[int, str] = {}
        self.planted: dict[str, list[str]] = defaultdict(list)
        self.calls: Counter[str] = Counter()
        self.open: Counter[int] = Counter()
        self.streams: dict[int, tuple[int, int]] = {}  # handle -> context and number
        self.events: dict[int, Event | None] = {}
        self.recorded_in: dict[int, int] = {}  # event -> the stream that is captured
        self.memory: dict[int, Memory] = {}
        self.order: list[int] = []  # the addresses of `memory`, ascending
        self.used: Counter[int | None] = Counter()
        self.quarantine: deque[Memory] = deque()
        self.quarantined = 0  # bytes
        self.kernels: dict[int, tuple[str, str]] = {}
        self.graphs: dict[int, list[Work]] = {}
        self.captured: dict[int, list[Work]] = {}  # by stream
        self.numbers = count(0x7000)
        self.thread = threading.local()

    def report_fault(self, fault: str) -> None:
        self.report.append(fault)
        self.owed.append(fault)

    def context(self) -> int:
        current = getattr(self.thread, "context", None)
        if current is None:
            raise DriverError("CUDA_ERROR_INVALID_CONTEXT", "no context is current on this thread")
        return int(current)

    def take(self, nbytes: int, ordinal: int | None) -> int:
        if ordinal is not None and self.used[ordinal] + nbytes > MEMORY:
            raise DriverError(OUT_OF_MEMORY, "out of memory")
        try:
            memory = Memory(nbytes, ordinal)
        except (MemoryError, ValueError):
            raise DriverError(OUT_OF_MEMORY, "out of memory") from None
        self.used[ordinal] += nbytes
        self.memory[memory.address] = memory
        insort(self.order, memory.address)
        return memory.address

    def release(self, memory: Memory) -> None:
        if memory.is_spilt():
            self.report_fault(f"work wrote beyond {memory}")
        memory.end()
        self.used[memory.ordinal] -= memory.nbytes
        self.quarantine.append(memory)
        self.quarantined += memory.size
        while self.quarantined > QUARANTINE:
            oldest = self.quarantine.popleft()
            self.quarantined -= oldest.size
            del self.memory[oldest.address]
            del self.order[bisect_left(self.order, oldest.address)]

    def use(self, address: int, nbytes: int | None, *, writes: bool) -> Use | None:
        """The use of an allocation; None for memory that the driver has not made."""
        index = bisect_right(self.order, address) - 1
        memory = self.memory[self.order[index]] if index >= 0 else None
        if memory is None or not memory.address <= address < memory.address + max(memory.nbytes, 1):
            return None
        left = memory.address + memory.nbytes - address
        if nbytes is not None and nbytes > left:
            raise Misuse(f"{nbytes} bytes at {address - memory.address} of {memory}")
        return Use(memory, address, left if nbytes is None else nbytes, writes)

    def submit(self, stream: int, work: Work) -> None:
        if stream in self.captured:
            self.captured[stream].append(work)
        else:
            self.machine.enqueue(self.lane(stream), work)

    def lane(self, stream: int) -> Stream:
        context, number = self.streams[stream]
        return self.machine.stream(f"GPU {context}", number)


state = State()


def reset() -> None:
    """Begin anew, as in a new process."""
    vars(state).clear()
    State.__init__(state)


def plant(call: str, name: str = STICKY) -> None:
    """Have the next call of this function fail with this code."""
    state.planted[call].append(name)


def driver_function(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function under the driver's lock, with planted faults and the checks of contexts and captures."""
    name = call.__name__

    def call_checked(*arguments: Any) -> Any:
        with state.machine.lock:
            state.calls[name] += 1
            if name not in ("probe", "devices", "open_context", "close_context", "enter", "can_access", "compile_text"):
                context = state.context()
                if context in state.lost:
                    raise DriverError(state.lost[context], "the context is spoilt")
            if state.planted[name]:
                code = state.planted[name].pop(0)
                if code == STICKY:
                    state.lost[state.context()] = code
                raise DriverError(code, "a planted fault")
            if name in UNSAFE and getattr(state.thread, "captures", False):
                raise DriverError("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", f"{name} while a stream is captured")
            return call(*arguments)

    call_checked.__name__ = name
    return call_checked


@driver_function
def probe() -> None:
    reason = is_there()
    if reason is not None:
        raise Unavailable(f"the fake driver has no compiler: {reason}", hint=INSTALL)


@driver_function
def devices() -> list[Description]:
    return [Description(n, f"Fake GPU {n}", f"{n:032x}", f"0000:0{n}:00.0", MEMORY, CAPABILITY, 4, 10**9, 10**9, 64,
                        (13, 0)) for n in range(GPUS)]


@driver_function
def open_context(ordinal: int) -> Context:
    state.open[ordinal] += 1
    return Context(ordinal, ordinal + 1, ordinal + 1)


@driver_function
def close_context(context: Context) -> None:
    state.open[context.ordinal] -= 1


@driver_function
def enter(context: int) -> None:
    state.thread.context = context


@driver_function
def can_access(ordinal: int, peer: int) -> bool:
    return ordinal != peer


@driver_function
def new_stream() -> int:
    handle = next(state.numbers)
    state.streams[handle] = state.context(), handle
    return handle


@driver_function
def new_event() -> int:
    handle = next(state.numbers)
    state.events[handle] = None
    return handle


@driver_function
def destroy(kind: str, handle: int) -> None:
    del {"stream": state.streams, "event": state.events, "graph": state.graphs}[kind][handle]


@driver_function
def record(event: int, stream: int) -> None:
    if stream in state.captured:
        state.recorded_in[event] = stream
        return
    state.recorded_in.pop(event, None)
    state.events[event] = reached = Event()
    state.machine.enqueue(state.lane(stream), Record(reached))
    reached.is_recorded = True


@driver_function
def wait(stream: int, event: int) -> None:
    awaited = state.events[event]
    is_captured, is_of_capture = stream in state.captured, event in state.recorded_in
    if is_captured is not is_of_capture:
        raise DriverError("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a captured stream waits for work that is not")
    if awaited is None:
        raise Misuse("a stream waits for an event that was never recorded")
    if stream not in state.captured:
        state.machine.enqueue(state.lane(stream), Wait(awaited))


@driver_function
def synchronize(event: int) -> None:
    awaited = state.events[event]
    while awaited is not None and not awaited.is_reached:
        if not state.machine.advance():
            raise Misuse(f"the host waits for ever: {state.machine.blocked_streams()}")
    if awaited is not None:
        state.machine.advance_host(awaited)
    if state.owed:
        faults, state.owed = state.owed, []
        raise Misuse("; ".join(faults))


@driver_function
def elapsed(start: int, end: int) -> float:
    first, last = state.events[start], state.events[end]
    if first is None or last is None or not (first.is_reached and last.is_reached):
        raise DriverError("CUDA_ERROR_NOT_READY", "an event has not happened")
    return last.seconds - first.seconds


@driver_function
def allocate(context: Context, nbytes: int, stream: int) -> int:
    address = state.take(nbytes, context.ordinal)
    use = state.use(address, None, writes=True)
    assert use is not None
    state.submit(stream, Work(f"the allocation of {nbytes} bytes", [use], lambda: None))
    return address


@driver_function
def free(address: int, stream: int) -> None:
    use = state.use(address, None, writes=True)
    if use is None or use.memory.address != address:
        raise DriverError("CUDA_ERROR_INVALID_VALUE", "no such allocation")
    state.submit(stream, Work(f"the release of {use.memory}", [use], lambda: None, releases=use.memory))


@driver_function
def trim(context: Context) -> int:
    return MEMORY - state.used[context.ordinal]


@driver_function
def allocate_host(nbytes: int) -> int:
    return state.take(nbytes, None)


@driver_function
def free_host(address: int) -> None:
    state.release(state.memory[address])


@driver_function
def copy(target: int, source: int, nbytes: int, stream: int) -> None:
    uses = [state.use(target, nbytes, writes=True), state.use(source, nbytes, writes=False)]
    if None in uses:
        raise Misuse("a copy of pageable memory, or of memory that is gone")
    buffers = [use for use in uses if use is not None]
    state.submit(stream, Work(f"a copy of {nbytes} bytes", buffers, lambda: _move(target, source, nbytes)))


def compile_text(source: str, architecture: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The text itself, which `launch` has compiled for the host."""
    if NVRTC:
        binary, log = compile_for_a_gpu(source, NVRTC, options)
        if not binary:
            return b"", log
    return "\n".join((*options, source)).encode(), ""


@driver_function
def function(binary: bytes, name: str) -> int:
    source = binary.decode()
    if signature(source, name) is None:
        raise DriverError("CUDA_ERROR_NOT_FOUND", "named symbol not found")
    handle = next(state.numbers)
    state.kernels[handle] = source, name
    return handle


@driver_function
def launch(kernel: int, grid: Sequence[int], block: Sequence[int], shared: int, stream: int, arguments: int) -> None:
    source, name = state.kernels[kernel]
    options = [line for line in source.splitlines() if line.startswith("-D")]
    compiled = host_kernel("\n".join(line for line in source.splitlines() if not line.startswith("-D")), name,
                           tuple(options))
    if not all(size >= 1 for size in (*grid, *block)) or grid[1] > 65535 or grid[2] > 65535:
        raise DriverError("CUDA_ERROR_INVALID_VALUE", f"a grid of {grid} blocks of {block}")
    if block[0] * block[1] * block[2] > 1024:
        raise DriverError("CUDA_ERROR_INVALID_VALUE", f"a block of {block}")
    pointers = (ctypes.c_void_p * len(compiled.parameters)).from_address(arguments)
    values = [ctypes.string_at(pointers[n] or 0, p.nbytes) for n, p in enumerate(compiled.parameters)]
    uses = []
    for value, parameter in zip(values, compiled.parameters, strict=True):
        if parameter.is_pointer:
            use = state.use(int.from_bytes(value, "little"), None, writes=parameter.written)
            if use is None:
                raise Misuse(f"{name}: argument {parameter.name} is no device memory")
            uses.append(use)
    what = f"a launch of {name}"
    state.submit(stream, Work(what, uses, lambda: _run(compiled, name, tuple(grid), tuple(block), values)))


@driver_function
def capture(stream: int, enqueue: Callable[[], None]) -> int:
    state.captured[stream] = []
    state.thread.captures = True
    try:
        enqueue()
    finally:
        work = state.captured.pop(stream)
        state.thread.captures = False
    handle = next(state.numbers)
    state.graphs[handle] = work
    return handle


@driver_function
def replay(graph: int, stream: int) -> None:
    for work in state.graphs[graph]:
        state.submit(stream, Work(f"{work.what} of a graph", work.uses, work.run_it, work.releases))


def _move(target: int, source: int, nbytes: int) -> None:
    ctypes.memmove(target, source, nbytes)


def _run(kernel: HostKernel, name: str, grid: tuple[int, ...], block: tuple[int, ...], values: Sequence[bytes]) -> None:
    slots = [ctypes.create_string_buffer(value, max(len(value), 8)) for value in values]
    pointers = (ctypes.c_void_p * max(len(slots), 1))(*(ctypes.addressof(slot) for slot in slots))
    if kernel.run(*grid, *block, ctypes.addressof(pointers)):
        raise Misuse(f"{name}: some threads of a block do not reach a barrier")
