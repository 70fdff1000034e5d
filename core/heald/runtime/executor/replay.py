"""Replay: consecutive kernels of one device run as one call, where the device can capture them (`Device.capture`).

A frame's first run launches each kernel by itself, as drivers load code at the first launch. The kernels are captured
behind it. Runs with a deadline or a trace go on launching each kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ..contract.device import STREAM, Device
from ..program.host_program import HOST
from .bound_call import BoundCall
from .frame import Frame, Segment
from .frame_layout import FrameLayout

SHORTEST = 2  # kernels that are worth a capture


def segments(layout: FrameLayout) -> tuple[Segment, ...]:
    """Return the segments of a flat list."""
    found = []
    for device, group in groupby(enumerate(layout.flat), key=lambda pair: _captured_by(layout, layout.calls[pair[1]])):
        positions = [position for position, _ in group]
        if device is not None and len(positions) >= SHORTEST:
            found.append(Segment(positions[0], positions[-1] + 1, device))
    return tuple(found)


def capture(frame: Frame, segment: Segment) -> None:
    """Replace the calls of a segment, which ran before, by one. The other calls keep their indices."""
    calls = frame.calls[segment.start : segment.stop]
    replay = segment.device.capture(calls, STREAM)  # type: ignore[attr-defined] # an optional method
    if replay is not None:
        if frame.single is None:
            frame.single = list(frame.calls)
        frame.calls[segment.start : segment.stop] = [replay, *[_nothing] * (len(calls) - 1)]


def told(layout: FrameLayout) -> dict[int, str]:
    """Return the way in which each kernel on a device that captures is launched, by the index of its call."""
    sizes = {position: segment.stop - segment.start for segment in segments(layout)
             for position in range(segment.start, segment.stop)}
    return {number: f"one of {sizes[position]} kernels in one launch" if position in sizes else
            f"launched singly: {_why_single(layout, layout.calls[number]) or 'no kernel stands beside it'}"
            for position, number in enumerate(layout.flat)
            if layout.calls[number].kernel is not None and hasattr(layout.calls[number].device, "capture")}


def _captured_by(layout: FrameLayout, bound: BoundCall) -> Device | None:
    is_able = bound.kernel is not None and hasattr(bound.device, "capture")
    return bound.device if is_able and not _why_single(layout, bound) else None


def _why_single(layout: FrameLayout, bound: BoundCall) -> str:
    """Return the reason for which a kernel cannot be captured, empty if it can."""
    registers: Sequence[int] = (*bound.call.args, *bound.call.results)
    if bound.lazy is not None:
        return "its shapes change"
    if not getattr(bound.bound, "captures", True):
        return "its kernel says so"
    if not hasattr(bound.bound, "attach"):
        return "its kernel is not attached to buffers"
    if not layout.fixed.issuperset(registers):
        return "its values have no fixed buffers"
    if any(layout.memory[r] == HOST and r not in layout.presets for r in bound.call.args):
        return "it reads values in host memory"
    return ""


def _nothing() -> None:
    """Do nothing: the replay of the segment did this call's work."""
