"""The cost of a task in each work queue, against concurrent.futures.ThreadPoolExecutor with as many threads.

    python benchmarks/queues.py

The task does nothing. In batches of 1,000, the time is from adding it until it is known to be done; alone, it is from
adding it until its value is available. Every figure is the median over interleaved pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue
from heald.runtime.host.work_queues.seeded import SeededWorkQueue
from heald.runtime.host.work_queues.single_threaded import SingleThreadedWorkQueue
from heald.runtime.values.async_value import AsyncValue
from tabulate import tabulate
from timing import time_pairs

THREADS = 2
BATCH = 1000
QUEUES: dict[str, Callable[[], Any]] = {
    "multi_threaded": lambda: MultiThreadedWorkQueue(THREADS),
    "single_threaded": SingleThreadedWorkQueue,
    "seeded": lambda: SeededWorkQueue(0),
}


def nothing() -> None:
    pass


def row(what: str, ours: Callable[[], object], futures: Callable[[], object], tasks: int, repeat: int) -> list[str]:
    a, b, ratio = time_pairs(ours, futures, repeat)
    return [what, f"{a / tasks * 1e9:.0f} ns", f"{b / tasks * 1e9:.0f} ns", f"{ratio:.3f}", f"{1 / ratio:.0f}x"]


def rows(name: str, executor: ThreadPoolExecutor) -> list[list[str]]:
    queue = QUEUES[name]()

    def batch() -> None:
        for _ in range(BATCH):
            queue.add_task(nothing)
        queue.quiesce()

    def batch_of_futures() -> None:
        wait([executor.submit(nothing) for _ in range(BATCH)])

    def alone() -> None:
        value = AsyncValue()
        queue.add_task(lambda: value.emplace(None))
        queue.await_values([value])

    measured = [row(f"{name}, {BATCH} tasks", batch, batch_of_futures, BATCH, 5),
                row(f"{name}, one task and its value", alone, lambda: executor.submit(nothing).result(), 1, 200)]
    queue.close()
    return measured


def main() -> None:
    with ThreadPoolExecutor(THREADS) as executor:
        table = [line for name in QUEUES for line in rows(name, executor)]
    print(tabulate(table, headers=["work", "heald", "futures", "ratio", "less"], disable_numparse=True))


if __name__ == "__main__":
    main()
