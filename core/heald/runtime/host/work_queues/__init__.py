"""Work queues: heald's own queues by name, and the construction of the queue that configuration chooses.

An open queue loses no task, and reports every exception that leaves one. A closed queue, or one of a forked child's
parent, raises FailedPrecondition instead of hanging. Queues know no program and no device.

`multi_threaded`: A pool of threads for non-blocking tasks, and a growing one for blocking tasks. The default.
`single_threaded`: Tasks run in order of arrival on the thread that waits.
`seeded`: Tasks run in an order drawn from a seed, for tests of schedules.
`worker_pool`: The threads of one deque of tasks.
`waiting`: Parking and waking of threads, deadlines, counting of pending values.
`lifetime`: The state of a queue: open, closed or inherited by a forked child.
`queue_check`: The trial of a plugin's queue when it is made.
`faults`: The report of an exception that left a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....errors import NotFound
from ...contract.device import load_callable
from ...contract.work_queue import ConcurrentWorkQueue, WorkQueueConfig
from ...support.plugin_guard import plugin_guard

BUILT_IN_QUEUES = {
    "multi_threaded": "heald.runtime.host.work_queues.multi_threaded:create",
    "seeded": "heald.runtime.host.work_queues.seeded:create",
    "single_threaded": "heald.runtime.host.work_queues.single_threaded:create",
}


def make_work_queue(
    factories: Mapping[str, str | Callable[..., Any]], config: WorkQueueConfig, section: str = "work_queue",
    plugin: str | None = None,
) -> ConcurrentWorkQueue:
    """Return the work queue that `config`, the section of this name, describes. `plugin`: the owner of its name.

    Raises NotFound for a name without a factory, PluginError when the factory fails or its queue breaks the protocol.
    """
    if config.name not in factories:
        raise NotFound(f"no work queue is called '{config.name}'",
                       hint=f"[{section}] name: one of {', '.join(sorted(factories))}")
    who = f"work queue '{config.name}' of plugin {plugin or 'unknown'}"
    with plugin_guard(f"the factory of {who}"):
        queue: ConcurrentWorkQueue = load_callable(factories[config.name])(config)
    if config.name not in BUILT_IN_QUEUES:
        from .queue_check import check_queue

        check_queue(queue, who, section)
    return queue
