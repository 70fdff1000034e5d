"""The threads that help the calling one in a parallel region, and the cores where they wait.

A virtual machine may wake a thread on the core of the thread that wakes it. Both then share that core, for as long as
no balancing of the kernel meets them: MobileNetV2 takes 12 ms after a pause instead of 3. Therefore the others may not
run on the core where the caller is at the moment. The caller itself stays free.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

TASKS = Path("/proc/self/task")  # a folder for each thread of this process


def new_threads(start: Callable[[], object]) -> frozenset[int]:
    """The ids of the threads that this process has more after `start` than before; none where there is no /proc."""
    before = _threads()
    start()
    return _threads() - before


def keep_off_this_core(threads: Collection[int]) -> None:
    """Let these threads of this process run on all cores of the caller but its own. Threads that ended are left out."""
    if not threads:
        return
    allowed = os.sched_getaffinity(0)
    try:
        others = allowed - {_core()}
        if not others:
            return
        for thread in threads:
            if (TASKS / str(thread)).exists():  # an id may be another process's by now
                os.sched_setaffinity(thread, others)
    except OSError:  # it has just ended, or a sandbox forbids it
        return


def _threads() -> frozenset[int]:
    try:
        return frozenset(int(task.name) for task in TASKS.iterdir())
    except OSError:
        return frozenset()


def _core() -> int:
    """The core of the calling thread. Raises OSError."""
    fields = Path("/proc/thread-self/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[36])  # "processor", the 39th field of proc(5)
