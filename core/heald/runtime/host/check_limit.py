"""Check limit: `heald devices --check` awaits each piece of a device's work for so long, and names the work.

A probe waits once, behind all of its work. Under a check it waits behind each piece, so that a device which does not
answer is told with the piece. The limit holds in the context of `limited_check` alone: no other opening is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from ...errors import DeadlineExceeded, Unavailable
from ..contract.device import STREAM, Device
from ..support.remedy import device_remedy

T = TypeVar("T")
CHECK_SECONDS = 50.0  # for an opening with its probe, and for each wait; simulators take many seconds
OPENING, COPY_IN, KERNEL, COPY_OUT = "its opening", "a copy in", "a kernel", "a copy out"


class NoAnswer(Unavailable):
    """A device did not answer in time. A thread is still in one of its methods: none may be called any more."""


class _Check:
    """A check that goes on: the work behind which the device waits, or which it does."""

    def __init__(self) -> None:
        self.work = OPENING


_running_check: ContextVar[_Check | None] = ContextVar("running_check", default=None)


@contextmanager
def limited_check() -> Iterator[None]:
    """Limit the openings and the waits of devices within the block."""
    token = _running_check.set(_Check())
    try:
        yield
    finally:
        _running_check.reset(token)


def run_limited(name: str, plugin: str, function: Callable[[], T]) -> T:
    """Call a function that works on a device, under a check for at most `CHECK_SECONDS`.

    Raises NoAnswer with the work behind which the device waits. Its thread is left behind.
    """
    check = _running_check.get()
    if check is None:
        return function()
    from ..support.time_limit import run_within  # imported late: a check alone needs it

    try:
        return run_within(CHECK_SECONDS, lambda: name, function)
    except DeadlineExceeded:
        reason = (f"no answer of device {name} (plugin {plugin}) within {CHECK_SECONDS:g} s: "
                  f"it waited behind {check.work}")
        raise NoAnswer(reason, device=name, hint=device_remedy(plugin)) from None


def note_work(work: str) -> None:
    """Name the work that a device is given next, for the error of a check."""
    check = _running_check.get()
    if check is not None:
        check.work = work


def wait_in_check(device: Device) -> None:
    """Under a check, wait until the device has done its work so far."""
    if _running_check.get() is not None:
        device.synchronize(device.record(STREAM))
