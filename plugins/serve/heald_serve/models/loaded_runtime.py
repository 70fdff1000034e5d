"""heald's runtime of the served models: one for all of them, with one budget of memory.

Several workers divide `[limits] memory` and the cores among them.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

from ..metrics import Gauge

MEMORY_GAUGE, MEMORY_FIELDS = "heald_serve_memory_", ("in_use", "peak", "arrays", "limit")


def served_runtime(threads: int = 0, workers: int = 1) -> Any:
    """The runtime of the process, or one whose runs have so many threads each, or of one of several workers."""
    from heald.runtime.service import runtime

    config: dict[str, Any] = {}
    if workers > 1:
        threads = threads or max(1, core_count() // workers)
        limit = runtime.runtime().host.memory.limit
        if limit is not None:
            config["limits"] = {"memory": limit // workers}
    if threads:
        config["work_queue"] = {"threads": threads}
    return runtime.runtime(config or None)


def memory_gauges(memory: Any) -> list[Gauge]:
    """Gauges of a budget of memory: of workers, /metrics and the page show the sums."""
    return [Gauge(f"{MEMORY_GAUGE}{field}", partial(_memory_number, memory, field)) for field in MEMORY_FIELDS]


def _memory_number(memory: Any, field: str) -> float:
    if field == "limit":
        return memory.limit or 0
    stats = memory.stats()
    return {"in_use": stats.in_use, "peak": stats.peak, "arrays": stats.buffers}[field] or 0


def core_count() -> int:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
