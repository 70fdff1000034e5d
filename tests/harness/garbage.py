"""Garbage, for tests that look at what is left."""

from __future__ import annotations

import gc
from collections.abc import Collection

from heald.runtime.executor.dataflow import Dataflow
from heald.runtime.executor.step_loop import StepLoop
from heald.runtime.host.host import Host


def collect() -> None:
    """Until nothing is found: what finalizers of garbage leave is garbage of the next collection."""
    while gc.collect():
        pass


def left_over(hosts: Collection[Host]) -> list[StepLoop | Dataflow]:
    """What a run has to itself, of runs on these hosts that are over."""
    collect()
    return [t for t in gc.get_objects() if isinstance(t, StepLoop | Dataflow) and t._step.host in hosts]
