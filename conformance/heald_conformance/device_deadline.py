"""Deadline of a device's cases: a method that never returns fails its case, with its name, and all later cases at once.

A case runs on a thread of its own. At the deadline the stacks of all threads are read: the method may hang in a thread
of the runtime, such as the waiter of a stream. The threads are left behind, and keep no process alive.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

from heald.api import Device

from .hook_subject import run_within
from .verdict import Broken

T = TypeVar("T")
DEVICE_DEADLINE = 300.0  # seconds of a case; devices in simulators take a minute for the longest
hanging_methods: dict[int, str] = {}  # id of a device -> the case that its method did not return from


def run_before_deadline(device: Device, function: Callable[[], T], title: str) -> T:
    """Run a case of a device. Raises Broken at the deadline, and at once when an earlier case never ended."""
    if id(device) in hanging_methods:
        raise Broken(title, expected="a device that returns", got=f"{hanging_methods[id(device)]} hangs still",
                     rule="returns")
    try:
        return run_within(DEVICE_DEADLINE, function, title)
    except Broken as broken:
        methods = sorted(set(running_methods(device))) if "the end of the call within" in str(broken) else []
        if not methods:
            raise
        hanging_methods[id(device)] = f"{' and '.join(methods)} of the device"
        raise Broken(title, expected=f"the end of the case within {DEVICE_DEADLINE:g} s",
                     got=f"{hanging_methods[id(device)]} hangs", rule="returns") from None


def running_methods(device: Device) -> Iterator[str]:
    """Yield the innermost public method of the device's class in each thread's stack."""
    methods = {code: name for kind in reversed(type(device).__mro__) for name, value in vars(kind).items()
               if (code := getattr(value, "__code__", None)) is not None and not name.startswith("_")}
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None and frame.f_code not in methods:
            frame = frame.f_back
        if frame is not None:
            yield methods[frame.f_code]
