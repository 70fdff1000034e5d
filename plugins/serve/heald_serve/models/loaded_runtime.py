"""heald's runtime of the served models: one for all of them, with one budget of memory.

Several workers divide `[limits] memory` and the cores among them.
"""

from __future__ import annotations

import os
import sys
from typing import Any


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


def core_count() -> int:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
