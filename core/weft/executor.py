"""The executor: runs a linked program, each step in a frame of its own.

A run fills registers and calls the frame's flat list in order; nothing is looked up or tested per call. The first
exception ends the step; which call raised it is read off the list's iterator, at no cost to the others.
Results are the user's: what was not made in this very run is copied at the door.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .device import Device
from .errors import (
    DeadlineExceeded,
    InvalidArgument,
    OutOfRange,
    ResourceExhausted,
    Unimplemented,
    Unknown,
    WeftError,
)
from .frame import STREAM, Frame, FrameLayout, Step
from .host_program import Function
from .tensor import TensorMetadata

if TYPE_CHECKING:
    from .host_context import HostContext

FREE_FRAMES = 8  # frames kept for reuse; more steps at once make frames of their own

# What an exception of a kernel means, by TensorFlow's rule for Python functions in a graph.
CODES: tuple[tuple[type[Exception], type[WeftError]], ...] = (
    (MemoryError, ResourceExhausted), (NotImplementedError, Unimplemented), (TimeoutError, DeadlineExceeded),
    (StopIteration, OutOfRange), (ValueError, InvalidArgument), (TypeError, InvalidArgument),
    (ArithmeticError, InvalidArgument),
)


class Executable:
    """A function linked for given argument metadata. Several threads may run it at once."""

    def __init__(
        self, function: Function, metas: Sequence[TensorMetadata], steps: Sequence[Step], presets: Mapping[int, Any],
        devices: Mapping[str, Device], host: HostContext,
        declined: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self.function = function
        self.metas = tuple(metas)
        self.steps = tuple(steps)
        self.declined = declined  # node -> (pack, reason) of better kernels that declined it
        self.layout = FrameLayout(function, metas, steps, presets, host)
        self._device_names = {id(device): name for name, device in devices.items()}
        self._asynchronous = [d for d in devices.values() if not d.attributes.get("host_visible")]
        self._count = len(function.arg_names)
        self._open = self.layout.open
        self._results = function.results
        self._copied = self.layout.copied_results
        self._frames: list[Frame] = []

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        """Results for these arguments: arrays of exactly the linked metadata, contiguous and aligned.

        Raises the typed error of the first call that fails, with its node, op and device.
        """
        frames = self._frames
        try:
            frame = frames.pop()
        except IndexError:
            frame = self.layout.make_frame()
        registers = frame.registers
        registers[: self._count] = feeds
        for i, copy in frame.copies:
            copy[...] = feeds[i]
        calls = iter(frame.calls)
        try:
            frame.context.run(_run_flat, calls)
            if self._asynchronous:
                self._synchronize()
        except Exception as error:
            left: int = calls.__length_hint__()  # type: ignore[attr-defined]
            typed = self._typed(error, len(frame.calls) - left - 1)
            if typed is error:
                raise
            raise typed from error
        results = [registers[r] for r in self._results]
        for i in self._copied:
            results[i] = np.array(results[i])
        for register in self._open:
            registers[register] = None
        if len(frames) < FREE_FRAMES:
            frames.append(frame)
        return results

    def _synchronize(self) -> None:
        for device in self._asynchronous:
            device.synchronize(device.record(STREAM))

    def _typed(self, error: Exception, position: int) -> WeftError:
        """The typed error for what a call raised: the one place where a kernel's exception becomes weft's."""
        step = self.layout.attached[min(position, len(self.layout.attached) - 1)]
        device = self._device_names[id(step.device)]
        if isinstance(error, WeftError):
            return error.at(node=step.call.node, op=step.call.op, device=device)
        kind = next((mine for theirs, mine in CODES if isinstance(error, theirs)), Unknown)
        return kind(f"kernel {step.call.code} failed with {type(error).__name__}: {error}", node=step.call.node,
                    op=step.call.op, device=device)


def _run_flat(calls: Iterable[Callable[[], Any]]) -> None:
    for call in calls:
        call()
