"""Primitive calls: attached calls of primitives. Adjacent ones of a frame become one call of the native loop.

A joined call runs to its end once it has begun. A cancelled step ends behind it, so it has at most MOST_JOINED
primitives and LARGEST_JOINED_BYTES of operands: some 10 ms on one core. Steps with a deadline or a trace call each
primitive by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from threading import get_ident
from time import monotonic
from typing import Any

from .library import library
from .native_loop import NO_BITS, NativeCall, address, has_loop, loop_over
from .spinning import SpinSwitch

MOST_JOINED = 16
LARGEST_JOINED_BYTES = 16 << 20


class PrimitiveCall:
    """One call of a primitive over fixed arrays, which several threads share.

    `nbytes`: the bytes of its operands.
    `owners`: the objects that own the memory behind the pointers.
    `switch`: see `spin_switch`.
    """

    is_single = False  # True: made for one thread, and run by one

    def __init__(
        self, handle: Any, stream: Any, count: int, exec_args: Any, nbytes: int, owners: Any, switch: SpinSwitch | None
    ) -> None:
        self.nbytes = nbytes
        self._arguments = handle, stream, count, exec_args
        self._execute = library().c.dnnl_primitive_execute
        self._owners = owners
        self.switch = switch

    def __call__(self) -> None:
        if self.switch is not None:
            look_when_due(self.switch)
        self.execute()

    def execute(self) -> None:
        status = self._execute(*self._arguments)
        if status:
            library().check(status, "call")

    @property
    def native(self) -> NativeCall:
        handle, stream, count, exec_args = self._arguments
        return NativeCall(_function("dnnl_primitive_execute"),
                          (address(handle), address(stream), count, address(exec_args)))

    @staticmethod
    def join(calls: Sequence[Callable[[], Any]]) -> list[Callable[[], Any] | None]:
        """Return the calls in the place of these adjacent ones: a joined call for several, and None for the others."""
        return [call for part in _parts(calls) for call in (join_part(part), *[None] * (len(part) - 1))]


class SinglePrimitiveCall(PrimitiveCall):
    """One call of a primitive that was made for one thread."""

    is_single = True

    def __init__(self, call: PrimitiveCall) -> None:
        handle, stream, count, exec_args = call._arguments
        super().__init__(handle, stream, count, exec_args, call.nbytes, call, None)
        self._set_threads, self._threads = library().c.omp_set_num_threads, library().threads

    def __call__(self) -> None:
        self._set_threads(1)
        try:
            self.execute()
        finally:
            self._set_threads(self._threads)


def look_when_due(switch: SpinSwitch) -> None:
    if monotonic() > switch.due or get_ident() not in switch.callers:
        switch.look()


def join_calls(calls: Sequence[PrimitiveCall]) -> list[Callable[[], Any]]:
    """The calls of one kernel, with as many joined as possible."""
    return [call for call in PrimitiveCall.join(calls) if call is not None]


def _parts(calls: Sequence[Any]) -> Iterator[list[PrimitiveCall]]:
    """Yield the calls in parts, each within the bounds of a joined call. All are single if there is no loop."""
    part: list[PrimitiveCall] = []
    longest = MOST_JOINED if has_loop() else 1
    for call in calls:
        if part and (len(part) == longest or sum(c.nbytes for c in (*part, call)) > LARGEST_JOINED_BYTES):
            yield part
            part = []
        part.append(call)
    if part:
        yield part


def join_part(part: Sequence[PrimitiveCall]) -> Callable[[], Any]:
    """One call in the place of these. It sets the number of threads only where it changes."""
    if len(part) == 1:
        return part[0]
    threads, set_threads = library().threads, library().c.omp_set_num_threads
    run = loop_over([*_native_calls(part)])
    switch = next((call.switch for call in part if call.switch is not None), None)
    ends_single = part[-1].is_single

    def call(_: Sequence[PrimitiveCall] = part) -> None:  # keeps the objects that the table points to
        if switch is not None:
            look_when_due(switch)
        try:
            status = run()
        finally:
            if ends_single:
                set_threads(threads)
        if status:
            set_threads(threads)
            library().check(status, "call")

    return call


def _native_calls(part: Sequence[PrimitiveCall]) -> Iterator[NativeCall]:
    was_single = False
    for call in part:
        if call.is_single is not was_single:
            yield NativeCall(_function("omp_set_num_threads"), (1 if call.is_single else library().threads,), NO_BITS)
        was_single = call.is_single
        yield call.native


@cache
def _function(name: str) -> int:
    return address(library().ffi.addressof(library().c, name))
