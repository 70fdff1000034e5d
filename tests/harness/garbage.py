"""Garbage collection, for tests that count the objects left."""

from __future__ import annotations

import gc
from collections.abc import Collection

from heald.runtime.executor.dataflow import DataflowRun
from heald.runtime.executor.step_loop import StepLoop
from heald.runtime.host.host import Host


def collect() -> None:
    """Collect until no garbage is found. Finalizers leave garbage for the next collection."""
    while gc.collect():
        pass


def left_over(hosts: Collection[Host]) -> list[StepLoop | DataflowRun]:
    """The private objects of finished runs on these hosts."""
    collect()
    return [t for t in gc.get_objects() if isinstance(t, StepLoop | DataflowRun) and t._step.host in hosts]
