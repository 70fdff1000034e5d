"""heald's runtime of the served models: one for all of them, with one budget of memory."""

from __future__ import annotations

from typing import Any


def served_runtime(threads: int = 0) -> Any:
    """The runtime of the process, or one whose runs have so many threads each."""
    from heald.runtime.service import runtime

    return runtime.runtime({"work_queue": {"threads": threads}} if threads else None)
