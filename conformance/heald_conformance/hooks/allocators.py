"""Host allocators: buffers have the size, type and alignment asked for, and belong to one owner at a time."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
from heald.api import AllocatorStats, Graph, HostAllocator, Node, dtypes, errors
from heald.runtime.host import make_allocator

from ..case import sentence
from ..hook_subject import HookSubject, expect_raises, faults_of_threads
from ..subject import placeholder, whatever_comes
from ..verdict import NotApplicable, expect, expect_same_bits

SIZES = (0, 1, 3, 63, 64, 65, 4095, 4097, 100_003, 1 << 21)
ALIGNMENTS = (1, 64, 128, 4096, 1 << 21)
MORE_THAN_ANY = 1 << 60  # bytes, more than any machine has
METHODS = ("allocate", "deallocate", "stats")


def make(on: HookSubject) -> HostAllocator:
    with whatever_comes("the allocator is made", expected="a host allocator", rule="allocator.factory"):
        allocator = make_allocator(heald.default_host().registries.allocators, on.name, None)
    missing = [name for name in METHODS if not callable(getattr(allocator, name, None))]
    expect(not missing, "the allocator is made", expected=f"an object with {', '.join(METHODS)}",
           got=f"without {missing}", rule="allocator.factory")
    return allocator


def allocate(allocator: HostAllocator, nbytes: int, alignment: int = 64) -> Any:
    """A buffer. Raises Broken for any exception, and for an object that is no buffer."""
    with whatever_comes(f"allocate({nbytes}, {alignment})", expected="a buffer", rule="allocator.allocate"):
        buffer = allocator.allocate(nbytes, alignment)
    got = f"{type(buffer).__name__} {getattr(buffer, 'dtype', '')}{list(getattr(buffer, 'shape', ()))}"
    expect(isinstance(buffer, np.ndarray) and buffer.dtype == np.uint8 and buffer.shape == (nbytes,),
           f"allocate({nbytes}, {alignment})", expected=f"ndarray uint8[{nbytes}]", got=got, rule="allocator.allocate")
    return buffer


@sentence(over=lambda _: [str(n) for n in SIZES])
def a_buffer_has_the_bytes_asked_for(on: HookSubject, nbytes: str) -> None:
    buffer = allocate(make(on), int(nbytes))
    expect(buffer.flags.writeable, f"allocate({nbytes})", expected="a writable array", got="a read-only one",
           rule="allocator.allocate")
    expect(buffer.flags.c_contiguous, f"allocate({nbytes})", expected="bytes without gaps", got=buffer.strides,
           rule="allocator.allocate")
    buffer[:] = 0xA5
    expect(bool((buffer == 0xA5).all()), f"every byte of {nbytes} is written", expected="165", got="others",
           rule="allocator.allocate")


@sentence(over=lambda _: [str(n) for n in ALIGNMENTS])
def a_buffer_starts_at_a_multiple_of_the_alignment(on: HookSubject, alignment: str) -> None:
    allocator = make(on)
    buffers = [allocate(allocator, nbytes, int(alignment)) for nbytes in (1, 100, 5000, 70_000)]
    wrong = [hex(b.ctypes.data) for b in buffers if b.ctypes.data % int(alignment)]
    expect(not wrong, f"allocate(..., {alignment})", expected=f"addresses that {alignment} divides", got=wrong,
           rule="allocator.allocate")


@sentence()
def no_two_buffers_share_a_byte(on: HookSubject) -> None:
    allocator = make(on)
    buffers: dict[int, Any] = {}
    for turn in range(on.size(400, 120)):
        buffers[turn] = allocate(allocator, turn * 37 % 3000 + 1)
        buffers[turn][:] = turn % 251
        if turn % 3 == 2:
            allocator.deallocate(buffers.pop(turn - 1))
    for turn, buffer in buffers.items():
        expect_same_bits(buffer, np.full(buffer.size, turn % 251, np.uint8), f"buffer {turn}, which nobody else wrote",
                         "allocator.ownership")


@sentence()
def memory_lives_as_long_as_an_array_over_it(on: HookSubject) -> None:
    allocator = make(on)
    view = allocate(allocator, 5000)[1000:1100]
    view[:] = 7
    for _ in range(50):
        allocate(allocator, 5000)[:] = 1
    expect_same_bits(view, np.full(100, 7, np.uint8), "a part of a buffer whose whole is gone", "allocator.ownership")


@sentence()
def a_second_deallocation_does_nothing(on: HookSubject) -> None:
    allocator = make(on)
    buffer = allocate(allocator, 5000)
    with whatever_comes("deallocate, twice", expected="nothing", rule="allocator.ownership"):
        allocator.deallocate(buffer)
        allocator.deallocate(buffer)
    del buffer
    first, second = allocate(allocator, 5000), allocate(allocator, 5000)
    first[:], second[:] = 1, 2
    expect_same_bits(first, np.full(5000, 1, np.uint8), "a buffer after another was deallocated twice",
                     "allocator.ownership")


@sentence()
def memory_that_is_not_there_is_resource_exhausted(on: HookSubject) -> None:
    allocator = make(on)
    expect_raises((errors.ResourceExhausted,), lambda: allocator.allocate(MORE_THAN_ANY),
                  f"allocate({MORE_THAN_ANY})", "allocator.memory")
    allocate(allocator, 100)[:] = 1


@sentence()
def the_limit_holds(on: HookSubject) -> None:
    allocator = make(on)
    limit = allocator.stats().limit
    if limit is None:
        raise NotApplicable("it has no limit")
    expect_raises((errors.ResourceExhausted,), lambda: allocator.allocate(limit + 1), f"allocate({limit + 1}), one "
                  "byte more than the limit", "allocator.memory")


@sentence()
def figures_follow_the_buffers(on: HookSubject) -> None:
    allocator = make(on)
    before = figures(allocator)
    buffer = allocate(allocator, 100_000)
    during = figures(allocator)
    allocator.deallocate(buffer)
    del buffer
    after = figures(allocator)
    for name, least in (("in_use", 100_000), ("buffers", 1), ("allocations", 1)):
        first, second = getattr(before, name), getattr(during, name)
        expect(first is None or second - first >= least, f"stats().{name} after allocate(100000)",
               expected=f"{least} more than {first}", got=second, rule="allocator.stats")
    expect(before.in_use is None or after.in_use == before.in_use, "stats().in_use after deallocate",
           expected=before.in_use, got=after.in_use, rule="allocator.stats")
    expect(after.peak is None or during.in_use is None or after.peak >= during.in_use, "stats().peak",
           expected=f"at least {during.in_use}", got=after.peak, rule="allocator.stats")


def figures(allocator: HostAllocator) -> AllocatorStats:
    with whatever_comes("stats()", expected="an AllocatorStats", rule="allocator.stats"):
        stats = allocator.stats()
    expect(isinstance(stats, AllocatorStats), "stats()", expected="an AllocatorStats", got=type(stats).__name__,
           rule="allocator.stats")
    odd = {name: figure for name, figure in stats._asdict().items()
           if figure is not None and (not isinstance(figure, int) or figure < 0)}
    expect(not odd, "stats()", expected="None or numbers from 0 on", got=odd, rule="allocator.stats")
    return stats


@sentence()
def threads_allocate_at_once(on: HookSubject) -> None:
    allocator = make(on)

    def work(mark: int, faults: list[Any]) -> None:
        for turn in range(on.size(300, 60)):
            buffer = allocator.allocate(turn * 53 % 9000 + 1)
            buffer[:] = mark
            if not (buffer == mark).all():
                faults.append(f"another thread's bytes in a buffer of {buffer.size}")
            allocator.deallocate(buffer)

    faults = faults_of_threads(work)
    expect(not faults, "four threads allocate and deallocate", expected="no fault", got=faults[:1],
           rule="allocator.threads")


@sentence()
def a_program_runs_in_its_memory(on: HookSubject) -> None:
    nodes = [placeholder("x"), Node("y", "Mul", ["x", "x"], attrs={"T": dtypes.float32}),
             Node("z", "AddV2", ["y", "x"], attrs={"T": dtypes.float32}),
             Node("u", "MatMul", ["z", "y"], attrs={"T": dtypes.float32})]
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 7
    with heald.Session(Graph(nodes), config={"allocator": {"name": on.name}}) as session:
        results = [session.run("u", {"x": x}) for _ in range(3)]
    for result in results:
        expect_same_bits(result, (x * x + x) @ (x * x), "a program of three ops", "allocator.ownership")
