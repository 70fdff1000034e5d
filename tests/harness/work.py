"""Work: a count of operations that tells linear code from quadratic code without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

# Methods that go through the whole container for all arguments.
TRAVERSING = frozenset({"union", "difference", "symmetric_difference", "copy", "index", "count", "insert", "remove",
                        "sort"})


def count_work(function: Callable[[], object]) -> int:
    """Call the function, and count the calls within it on this thread.

    A call of a container's method counts with the elements that it goes through.
    """
    total = 0

    def note(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal total
        if event == "call":
            total += 1
        elif event == "c_call":
            owner = getattr(called, "__self__", None)
            goes_through = called.__name__ in TRAVERSING and isinstance(owner, Collection)
            total += 1 + (len(owner) if goes_through else 0)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return total
