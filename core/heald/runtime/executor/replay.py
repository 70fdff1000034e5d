"""Replay: consecutive kernels of one device run as one call, where the device can capture them (`Device.capture`).

A frame's first run launches each kernel by itself, as drivers load code at the first launch. The kernels are captured
behind it. Runs with a deadline or a trace go on launching each kernel.

The replay takes the place of the segment's first call, and the other calls do nothing: indices in a flat list stay the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ..contract.device import STREAM, Device, own_method
from .calls.frame_calls import nothing
from .frame import Frame, Segment
from .frame_layout import FrameLayout

LEAST_KERNELS = 2  # kernels that are worth a capture


def find_segments(layout: FrameLayout) -> tuple[Segment, ...]:
    """Return the segments of a flat list."""
    segments = []
    for device, group in groupby(enumerate(layout.lists.flat), key=lambda pair: _capturing_device(layout, pair[1])):
        positions = [position for position, _ in group]
        if device is not None and len(positions) >= LEAST_KERNELS:
            segments.append(Segment(positions[0], positions[-1] + 1, device))
    return tuple(segments)


def capture(frame: Frame, segment: Segment) -> None:
    """Replace the calls of a segment, which ran before, by one. The other calls keep their indices."""
    calls = frame.calls[segment.start : segment.stop]
    replay = segment.device.capture(calls, STREAM)
    if replay is not None:
        if frame.unreplayed is None:
            frame.unreplayed = list(frame.calls)
        frame.calls[segment.start : segment.stop] = [replay, *[nothing] * (len(calls) - 1)]


def describe_launches(layout: FrameLayout) -> dict[int, str]:
    """Return the way in which each kernel on a device that captures is launched, by the index of its call."""
    sizes = {position: segment.stop - segment.start for segment in find_segments(layout)
             for position in range(segment.start, segment.stop)}
    return {number: f"one of {sizes[position]} kernels in one launch" if position in sizes else
            f"launched singly: {_obstacle_to_capture(layout, number) or 'no kernel stands beside it'}"
            for position, number in enumerate(layout.lists.flat)
            if layout.calls[number].kernel is not None and not layout.calls[number].is_view
            and own_method(layout.calls[number].device, "capture")}


def _capturing_device(layout: FrameLayout, number: int) -> Device | None:
    """Return the device that can capture the kernel of the call with this index, or None."""
    bound = layout.calls[number]
    is_able = bound.kernel is not None and own_method(bound.device, "capture") is not None
    return bound.device if is_able and not _obstacle_to_capture(layout, number) else None


def _obstacle_to_capture(layout: FrameLayout, number: int) -> str:
    """Return the reason for which a kernel cannot be captured, empty if it can."""
    bound = layout.calls[number]
    if number in layout.fences.before:
        return "it waits for a copy on another stream"
    if bound.obstacle_to_capture:
        return bound.obstacle_to_capture
    registers: Sequence[int] = (*bound.call.args, *bound.call.results)
    if not layout.memory.fixed.issuperset(registers):
        return "its values have no fixed buffers"
    if any(r not in layout.registers.device_of and r not in layout.registers.presets for r in bound.call.args):
        return "it reads values in host memory"
    return ""
