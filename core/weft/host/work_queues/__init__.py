"""The work queues that come with weft, by name; the one that config chooses is made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...contract.device import load_callable
from ...contract.work_queue import ConcurrentWorkQueue, WorkQueueConfig
from ...errors import NotFound
from ...support.plugin_guard import plugin_guard

GIVEN = {
    "multi_threaded": "weft.host.work_queues.multi_threaded:create",
    "seeded": "weft.host.work_queues.seeded:create",
    "single_threaded": "weft.host.work_queues.single_threaded:create",
}


def make_work_queue(
    factories: Mapping[str, str | Callable[..., Any]], config: WorkQueueConfig
) -> ConcurrentWorkQueue:
    """The work queue that config names. Raises NotFound for a name without a factory, PluginError when that fails."""
    if config.name not in factories:
        raise NotFound(f"no work queue is called '{config.name}'",
                       hint=f"[work_queue] name: one of {', '.join(sorted(factories))}")
    with plugin_guard(f"the factory of work queue '{config.name}'"):
        return load_callable(factories[config.name])(config)  # type: ignore[no-any-return]
