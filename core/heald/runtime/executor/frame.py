"""Frames: the registers of one running step, with the calls that are attached to them.

A step ends between two calls. The canceller sets the step's error, then moves the cursors of its frames behind their
last call (`Cursor.stop`), so the flat list tests nothing. Two steps never share a frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import maxsize
from typing import Any

from ..contract.device import Device
from ..host.device_memory import Owned
from ..host.kernel_context import KernelContext
from ..support.records import NamedTuple
from .calls.frame_calls import FrameCall
from .step import Step


class Cursor:
    """The position of one run in a list of calls. Another thread can end the run through it.

    Every run has a cursor of its own. So a late stop ends a run that is over, and never the frame's next run.
    """

    calls: Iterator[FrameCall] = iter(())
    is_stopped = False

    def stop(self) -> None:
        """Begin no further call.

        The list's iterator is set behind its end, so the loop over it ends and tests nothing per call. After the loop,
        the run tests `is_stopped`.
        """
        self.is_stopped = True
        self.calls.__setstate__(maxsize)  # type: ignore[attr-defined]


class Segment(NamedTuple):
    """Calls of a flat list, from `start` up to `stop`, whose kernels `device` may capture."""

    start: int
    stop: int
    device: Device


class Frame:
    """The registers of one step, the FrameCalls over them, and the arrays that feeds are copied into.

    The last register holds the Step that runs in the frame, one at a time.

    `copies`: (register, array) for each feed that is copied.
    `lent`: buffers of the current run, with the functions that free them.
    `cursor`: the position of the current run.
    `parts`: the calls of each part, in frames of a parallel schedule.
    `cursors`: the position in each piece.
    `numbers`: for each of `calls` the index of its call in the layout.
    `tail`: the calls of the layout's tail, as a frame over the same registers; None without one.
    `segments_to_capture`: the segments of `calls` that the next run's end captures.
    `unreplayed`: the calls with each kernel by itself, once some of `calls` replay or join several kernels; else None.
    """

    __slots__ = (
        "__weakref__",
        "calls",
        "context",
        "copies",
        "cursor",
        "cursors",
        "lent",
        "numbers",
        "parts",
        "registers",
        "segments_to_capture",
        "tail",
        "unreplayed",
    )

    def __init__(
        self, registers: list[Any], calls: list[FrameCall], copies: list[tuple[int, Any]], lent: list[Owned],
        numbers: Sequence[int],
    ) -> None:
        self.registers = registers
        self.calls = calls
        self.numbers = numbers
        self.tail: Frame | None = None
        self.segments_to_capture: Sequence[Segment] = ()
        self.unreplayed: list[FrameCall] | None = None
        self.copies = copies
        self.lent = lent
        self.parts: list[list[FrameCall]] = []
        self.cursor = Cursor()
        self.cursors: list[Cursor] = []
        self.context = KernelContext()

    def position(self) -> int:
        """Return the flat index of the call that started last. For a stopped run the index means nothing."""
        left: int = self.cursor.calls.__length_hint__()  # type: ignore[attr-defined]
        return max(len(self.calls) - left - 1, 0)

    def stop(self, step: Step) -> None:
        """Begin no further call if this step runs here. Any thread may call this after it has set the step's error."""
        cursors = self.cursor, *self.cursors  # read before the owner: a later owner's run has other cursors
        for owner in self.registers[-1:]:
            if owner is step:
                for cursor in cursors:
                    cursor.stop()
