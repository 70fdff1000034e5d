"""Schedule: one order in which a flat list runs, with the frames for it. A step returns its frame when it ends."""

from __future__ import annotations

from collections.abc import Callable

from .calls.frame_calls import FrameCall
from .frame import Frame
from .step import Step

LEAST_DIVIDED_NS = 300_000  # ns below which a whole list is not worth dividing
LEAST_SPEEDUP = 1.2  # speed-up that an estimate must promise
CallEach = Callable[[int, FrameCall, Frame, Step], None]  # receives a call with its index in the flat list


class IdleFrames(list[Frame]):
    """Frames in which no step runs. The memory budget drops frames with much memory when memory runs short."""

    def drop(self) -> None:
        self.clear()


class Schedule:
    """One way to run a flat list; both run functions are called in the frame's context.

    `frames`: idle frames, in which no step runs.
    `make_frame`: returns a new frame.
    `run(frame, step)`: runs the list without a look at single calls.
    `run_each(call_each, frame, step)`: hands each call to `call_each`, for steps with a deadline or a trace.
    """

    __slots__ = ("frames", "make_frame", "run", "run_each")

    def __init__(
        self, make_frame: Callable[[], Frame], run: Callable[[Frame, Step], None],
        run_each: Callable[[CallEach, Frame, Step], None], frames: IdleFrames | None = None,
    ) -> None:
        self.frames = IdleFrames() if frames is None else frames
        self.make_frame = make_frame
        self.run = run
        self.run_each = run_each
