"""Streams: copies go on beside kernels, and a device that names several streams keeps the order between them.

A missing wait often shows nothing, since the copy is done in time. So the cases make copies late: other copies stand
before each of them on its stream. A device with one stream passes for the same reason as before: its work is in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from heald.api import STREAM, DeviceQueues, Node, dtypes

from ..arrays import generator
from ..case import sentence
from ..elementwise import Array, ops_of
from ..injection import nothing, replace_methods
from ..subject import Subject, placeholder, whatever_comes
from ..verdict import NotApplicable, expect_close, expect_same_bits

NBYTES = 4096
FILLER_BYTES = 1 << 20
FEEDS = ("x", "y", "z")


class Work(NamedTuple):
    """A copy of a case. `stream`: a field of DeviceQueues, or "kernels"."""

    goes_in: bool
    stream: str


ORDERS = {  # the second work waits for the first, on the device
    "a copy in, then a copy out": (Work(True, "copy_in"), Work(False, "copy_out")),
    "a copy in, then the kernels": (Work(True, "copy_in"), Work(False, "kernels")),
    "the kernels, then a copy out": (Work(True, "kernels"), Work(False, "copy_out")),
    "a copy out, then a copy in": (Work(False, "copy_out"), Work(True, "copy_in")),
    "a copy out, then the kernels": (Work(False, "copy_out"), Work(True, "kernels")),
    "the kernels, then a copy in": (Work(False, "kernels"), Work(True, "copy_in")),
}


class LateCopies:
    """Copies with others before them on their stream, which make them late."""

    def __init__(self, on: Subject, count: int) -> None:
        self._on = on
        self._count = count
        self._fillers: dict[tuple[Any, bool], tuple[Any, Array]] = {}  # by stream and direction
        self._copy_in, self._copy_out = on.device.copy_in, on.device.copy_out

    def copy_in(self, host: Array, buffer: Any, stream: Any) -> None:
        self._fill(self._copy_in, stream, is_in=True)
        self._copy_in(host, buffer, stream)

    def copy_out(self, buffer: Any, host: Array, stream: Any) -> None:
        self._fill(self._copy_out, stream, is_in=False)
        self._copy_out(buffer, host, stream)

    def finish(self) -> None:
        await_streams(self._on)
        for buffer, _ in self._fillers.values():
            self._on.device.free(buffer)

    def _fill(self, copy: Callable[..., None], stream: Any, *, is_in: bool) -> None:
        key = stream, is_in
        if key not in self._fillers:
            self._fillers[key] = self._on.allocate(FILLER_BYTES), np.zeros(FILLER_BYTES, np.uint8)
        buffer, array = self._fillers[key]
        for _ in range(self._count):
            copy(*((array, buffer) if is_in else (buffer, array)), stream)


class Stages:
    """A graph with a feed for each stage, and a result behind each: its copies are in flight beside its kernels."""

    def __init__(self, on: Subject, length: int) -> None:
        self._op = max(ops_of(on), key=lambda op: op.arity)
        self._length = length
        self.nodes = [placeholder(feed) for feed in FEEDS]
        self.fetches: list[str] = []
        value = FEEDS[0]
        for feed in FEEDS:
            for number in range(length):
                inputs = [value if self._op.arity > 1 or number else feed, feed][: self._op.arity]
                value = f"{feed}{number}"
                self.nodes.append(Node(value, self._op.name, inputs, attrs={"T": dtypes.float32}, device=on.name))
            self.fetches.append(value)

    def expected(self, feeds: dict[str, Array]) -> list[Array]:
        value, results = feeds[FEEDS[0]], []
        for feed in FEEDS:
            for number in range(self._length):
                first = value if self._op.arity > 1 or number else feeds[feed]
                value = self._op.compute(*(first, feeds[feed])[: self._op.arity])
            results.append(value)
        return results


def require_own_memory(on: Subject) -> None:
    if on.host_visible:
        raise NotApplicable("its buffers are host memory: nothing is copied")


def stream_of(on: Subject, work: Work) -> Any:
    return STREAM if work.stream == "kernels" else getattr(DeviceQueues.of(on.device), work.stream)


def await_streams(on: Subject) -> None:
    for stream in (STREAM, *DeviceQueues.of(on.device).beside):
        on.device.synchronize(on.device.record(stream))


@contextmanager
def late_copies(on: Subject, count: int) -> Iterator[LateCopies]:
    """Give copies that come late. Ends with a wait for all streams."""
    copies = LateCopies(on, count)
    try:
        yield copies
    finally:
        copies.finish()


@sentence(over=lambda _: list(ORDERS))
def work_behind_an_event_of_another_stream_comes_after_it(on: Subject, order: str) -> None:
    require_own_memory(on)
    first, second = ORDERS[order]
    streams = stream_of(on, first), stream_of(on, second)
    if streams[0] == streams[1]:
        raise NotApplicable("its attribute 'queues' names no two streams for this work")
    before, after = (np.full(NBYTES, byte, np.uint8) for byte in (0x11, 0x77))
    for _ in range(on.size(10, 3)):
        host = np.full(NBYTES, 0xA5, np.uint8)
        with on.buffers(NBYTES) as (buffer,), late_copies(on, on.size(8, 3)) as copies:
            on.enqueue_in(before, buffer)
            await_streams(on)
            with whatever_comes(order, expected="no exception", rule="Device.wait"):
                for work, stream in zip((first, second), streams, strict=True):
                    if work is second:
                        on.device.wait(stream, on.device.record(streams[0]))
                    copy = copies if work is first else on.device
                    copy.copy_in(after, buffer, stream) if work.goes_in else copy.copy_out(buffer, host, stream)
                on.device.synchronize(on.device.record(streams[1]))
        expect_same_bits(host, after if first.goes_in else before, order, "Device.wait")


@sentence(over=lambda _: ["as they come", "late copies in", "late copies out", "late copies"])
def copies_beside_kernels_change_no_result(on: Subject, copies: str) -> None:
    """Feeds arrive, and results leave, while kernels of the same run work. Memory is used again within the run."""
    require_own_memory(on)
    stages = Stages(on, on.size(40, 12))
    rng = generator("streams", copies)
    with late_copies(on, on.size(4, 1)) as late, on.session(stages.nodes) as session:
        methods: dict[str, Callable[..., Any]] = {"wrap": nothing}  # so that feeds are copied
        methods |= {"copy_in": late.copy_in} if "in" in copies.split() or copies == "late copies" else {}
        methods |= {"copy_out": late.copy_out} if "out" in copies.split() or copies == "late copies" else {}
        with replace_methods(on, methods):
            for number in range(on.size(10, 4)):
                feeds = {name: rng.normal(size=1000).astype(np.float32) for name in FEEDS}
                results = session.run(stages.fetches, feeds)
                for result, value, name in zip(results, stages.expected(feeds), stages.fetches, strict=True):
                    expect_close(result, value, on.settings.tolerance("float32"), f"{name} in run {number + 1}",
                                 "Device.wait")
