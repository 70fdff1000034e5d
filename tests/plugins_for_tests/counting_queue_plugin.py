"""A plugin of the tests alone: a work queue that counts its tasks by seed, and kernels that hand their work to it."""

from __future__ import annotations

from collections import Counter

from heald.api import OpSpec, hookimpl
from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue

HEALD_API = (1, 0)
tasks: Counter[int] = Counter()  # by the seed that config gives the queue
closed: list[int] = []  # seeds of closed queues


class CountingQueue(MultiThreadedWorkQueue):
    def __init__(self, config):
        super().__init__(config.threads)
        self.seed = config.seed

    def add_task(self, task):
        tasks[self.seed] += 1
        super().add_task(task)

    def add_blocking_task(self, task, allow_queuing):
        tasks[self.seed] += 1
        return super().add_blocking_task(task, allow_queuing)

    def close(self):
        closed.append(self.seed)
        super().close()


@hookimpl
def heald_work_queues(registry):
    registry.add("counting", CountingQueue)


@hookimpl
def heald_ops(registry):
    for name in ("Task", "Blocking", "Split"):
        registry.add(OpSpec(f"Work>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                            metadata=lambda _, x: x))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)


def register(kernels):
    @kernels.kernel("Work>Task", asynchronous=True, step=True)
    def task(b):
        return lambda step, x: step.enqueue(lambda: x + 1)

    @kernels.kernel("Work>Blocking", asynchronous=True, step=True)
    def blocking(b):
        return lambda step, x: step.enqueue_blocking(lambda: x + 1)

    @kernels.kernel("Work>Split", step=True)
    def split(b):
        def run(step, x, out):
            def part(index):
                out[index] = x[index] + 1
            step.parallel_for(len(x), part)
        return run
