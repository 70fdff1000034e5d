"""The native handle of a device, `device.native`: streams, copies and launches, which kernels drive the device with.

In a real plugin the vendor's library does this work. Streams here run nothing until the host waits for an event. The
delay is deliberate: it exposes code that reads a result, or reuses a buffer, too early.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from .memory import Buffer

Array = np.ndarray[Any, Any]
Launch = Callable[..., None]  # launch(stream, *inputs, output)


class Event:
    """A position in a stream."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.reached = False

    def reach(self) -> None:
        self.reached = True


class Native:
    """The streams of one device, and its instructions."""

    def __init__(self) -> None:
        self.streams: defaultdict[int, deque[Callable[[], object]]] = defaultdict(deque)
        self._lock = Lock()

    def write(self, stream: int, host: Array, buffer: Buffer) -> None:
        device = buffer.elements(host.dtype, host.size)
        self.streams[stream].append(lambda: np.copyto(device, host.reshape(-1)))

    def read(self, stream: int, buffer: Buffer, host: Array) -> None:
        device = buffer.elements(host.dtype, host.size)
        self.streams[stream].append(lambda: np.copyto(host.reshape(-1), device))

    def record(self, stream: int) -> Event:
        event = Event(stream)
        self.streams[stream].append(event.reach)
        return event

    def wait(self, event: Event) -> None:
        with self._lock, np.errstate(all="ignore"):  # as on hardware, NaN is a result
            while not event.reached:
                self.streams[event.stream].popleft()()

    def upload(self, array: Array) -> Buffer:
        """A buffer with a copy of the array, for packed weights. The memory limit does not count it."""
        buffer = Buffer(array.nbytes)
        np.copyto(buffer.elements(array.dtype, array.size), array.reshape(-1))
        return buffer

    def elementwise(self, instruction: str, dtype: np.dtype[Any], count: int) -> Launch:
        """The launch of one instruction over vectors of `count` elements."""
        compute = INSTRUCTIONS[instruction]

        def launch(stream: int, *buffers: Buffer) -> None:
            *inputs, output = (buffer.elements(dtype, count) for buffer in buffers)
            self.streams[stream].append(lambda: compute(*inputs, out=output))

        return launch

    def sequence(self, steps: Sequence[tuple[str, Sequence[int]]], dtype: np.dtype[Any], count: int) -> Launch:
        """The launch of several instructions. Operands are value indices: first the inputs, then the steps' results."""

        def launch(stream: int, *buffers: Buffer) -> None:
            *values, output = (buffer.elements(dtype, count) for buffer in buffers)

            def compute() -> None:
                for instruction, operands in steps:
                    values.append(np.empty_like(output))
                    INSTRUCTIONS[instruction](*(values[number] for number in operands), out=values[-1])
                np.copyto(output, values[-1])

            self.streams[stream].append(compute)

        return launch

    def matmul(self, dtype: np.dtype[Any], rows: int, inner: int, columns: int) -> Launch:
        """The launch of a matrix product. The second matrix is stored by columns, [columns, inner]."""

        def launch(stream: int, x: Buffer, y: Buffer, output: Buffer) -> None:
            a = x.elements(dtype, rows * inner).reshape(rows, inner)
            b = y.elements(dtype, inner * columns).reshape(columns, inner)
            c = output.elements(dtype, rows * columns).reshape(rows, columns)
            self.streams[stream].append(lambda: np.matmul(a, b.T, out=c))

        return launch


def _gelu(x: Array, out: Array) -> None:
    np.multiply(0.5 * x, 1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)), out=out)


INSTRUCTIONS: dict[str, Callable[..., object]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "negative": np.negative,
    "relu": partial(np.maximum, 0),
    "gelu": _gelu,
}
