"""FreshCalls: calls as functions from arguments to results, which write no memory of the plan, for a DataflowRun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .calls.frame_calls import FreshCall
from .frame_layout import FrameLayout

if TYPE_CHECKING:
    from ..host.host import Host


class FreshCalls:
    """The calls of `layout` as FreshCalls, shared by all runs."""

    def __init__(self, layout: FrameLayout, host: Host) -> None:
        self._calls = layout.calls
        self._environment = layout.environment(host)
        self._fresh: dict[int, FreshCall] = {}

    def call(self, number: int) -> FreshCall:
        """Return call `number` as a function, built on first use, that writes no memory of the plan."""
        if number not in self._fresh:
            self._fresh[number] = self._calls[number].make_fresh_call(self._environment)
        return self._fresh[number]
