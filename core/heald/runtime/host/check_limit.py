"""Check limit: `heald devices --check` awaits each piece of a device's work for so long, and names the work.

The limit holds in the context of `limited_check` alone: no other opening is limited. The probe and the device check say
which work they give to the device, and wait behind each piece of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...errors import DeadlineExceeded, Unavailable
from ..support.remedy import device_remedy
from ..support.time_limit import run_within
from .probe import CheckedWork, running_check

T = TypeVar("T")
CHECK_SECONDS = 50.0  # for an opening with its probe, and for each wait; simulators take many seconds


class NoAnswer(Unavailable):
    """A device did not answer in time. A thread is still in one of its methods: none may be called any more."""


@contextmanager
def limited_check() -> Iterator[None]:
    """Limit the openings and the waits of devices within the block."""
    token = running_check.set(CheckedWork())
    try:
        yield
    finally:
        running_check.reset(token)


def run_limited(name: str, plugin: str, function: Callable[[], T]) -> T:
    """Call a function that works on a device, under a check for at most `CHECK_SECONDS`.

    Raises NoAnswer with the work behind which the device waits. Its thread is left behind.
    """
    check = running_check.get()
    if check is None:
        return function()
    try:
        return run_within(CHECK_SECONDS, lambda: name, function)
    except DeadlineExceeded:
        reason = (f"no answer of device {name} (plugin {plugin}) within {CHECK_SECONDS:g} s: "
                  f"it waited behind {check.work}")
        raise NoAnswer(reason, device=name, hint=device_remedy(plugin)) from None
