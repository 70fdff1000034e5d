"""Garbage, for tests that look at what is left."""

from __future__ import annotations

import gc
from collections.abc import Collection

from weft.running.driver import Driver
from weft.running.host_context import HostContext
from weft.running.propagation import Propagation


def collect() -> None:
    """Until nothing is found: what finalizers of garbage leave is garbage of the next collection."""
    while gc.collect():
        pass


def left_over(hosts: Collection[HostContext]) -> list[Driver | Propagation]:
    """What a run has to itself, of runs on these hosts that are over."""
    collect()
    return [t for t in gc.get_objects() if isinstance(t, Driver | Propagation) and t._step.host in hosts]
