"""Schedule: one order in which a flat list runs, in frames of its own. A step gives its frame back when it ends."""

from __future__ import annotations

from collections.abc import Callable

from .frame import Frame
from .frame_calls import FrameCall
from .step import Step

CallEach = Callable[[int, FrameCall, Frame, Step], None]  # a call, by its place in the list


class IdleFrames(list[Frame]):
    """Frames that no step runs in. Those of much memory are dropped when it runs short."""

    def drop(self) -> None:
        self.clear()


class Schedule:
    """`run(frame, step)` and `run_each(call_each, frame, step)` are called in the frame's context. `frames` are
    those that no step runs in."""

    __slots__ = ("frames", "make_frame", "run", "run_each")

    def __init__(
        self, make_frame: Callable[[], Frame], run: Callable[[Frame, Step], None],
        run_each: Callable[[CallEach, Frame, Step], None], frames: IdleFrames | None = None,
    ) -> None:
        self.frames = IdleFrames() if frames is None else frames
        self.make_frame = make_frame
        self.run = run
        self.run_each = run_each
