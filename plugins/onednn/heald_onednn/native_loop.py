"""A loop in machine code, which calls C functions one after the other: one call from Python instead of many.

A call through cffi takes 0.3 to 0.4 us beside the function's own work, which is 0.2 to 1 us in a small network. C has
no function that calls a list of others, and the package is installed without a compiler. The loop is 47 bytes. The
library makes machine code of its own in the same process, so a process that runs it may run the loop too. The memory
of the loop is never writable. A system may forbid such memory: then each call runs by itself.

    endbr64                     a valid target of an indirect call
    push rbx                    aligns the stack, too
    mov  rbx, rdi               the table
    again:
    mov  rax, [rbx]             the function; 0 ends the table
    test rax, rax
    jz   done
    mov  rdi, [rbx + 8]         its four arguments
    mov  rsi, [rbx + 16]
    mov  rdx, [rbx + 24]
    mov  rcx, [rbx + 32]
    call rax
    and  eax, [rbx + 40]        the bits of its result that state an error
    jnz  done
    add  rbx, 48
    jmp  again
    done:
    pop  rbx
    ret                         0, or the first error
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from .library import library

MACHINE_CODE = bytes.fromhex("f30f1efa 53 4889fb 488b03 4885c0 741d 488b7b08 488b7310 488b5318 488b4b20 ffd0 234328"
                             "7506 4883c330 ebdb 5b c3")
ALL_BITS, NO_BITS = 0xFFFFFFFF, 0
END = 0


class NativeCall(NamedTuple):
    """A call of a C function with integer arguments or addresses. `error_bits`: the bits of its result, an int, that
    state an error; none for a function without a result."""

    function: int
    arguments: tuple[int, ...]
    error_bits: int = ALL_BITS


def has_loop() -> bool:
    """False on a system that forbids the loop's machine code."""
    return machine_loop() is not None


def loop_over(calls: Sequence[NativeCall]) -> Callable[[], int]:
    """Return a function that makes these calls in order, up to the first error, which it returns; 0 without any.

    Needs a loop (`has_loop`).
    """
    run = machine_loop()
    assert run is not None
    numbers = [number for call in calls
               for number in (call.function, *call.arguments, *[0] * (4 - len(call.arguments)), call.error_bits)]
    table = library().ffi.new("uint64_t[]", [*numbers, END])

    return partial(run, table)


def address(pointer: Any) -> int:
    """The address in a pointer of cffi."""
    return int(library().ffi.cast("uintptr_t", pointer))


@cache
def machine_loop() -> Callable[[Any], int] | None:
    try:
        file = os.memfd_create("heald-onednn-loop")
        try:
            os.write(file, MACHINE_CODE)
            code = mmap.mmap(file, len(MACHINE_CODE), mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        finally:
            os.close(file)
    except OSError:  # a hardened system
        return None
    ffi = library().ffi
    start = ffi.from_buffer(code)
    _kept.append((code, start))
    return ffi.cast("int (*)(uint64_t *)", start)  # type: ignore[no-any-return]


_kept: list[Any] = []  # the loop's memory, for as long as the process lives
