"""The queues that run tasks on the thread that waits: single-threaded and seeded."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from heald.runtime.host.work_queues.seeded import SeededWorkQueue
from heald.runtime.host.work_queues.single_threaded import SingleThreadedWorkQueue
from heald.runtime.values.async_value import AsyncValue


def test_single_threaded_is_first_in_first_out_and_starts_nothing_of_itself() -> None:
    queue = SingleThreadedWorkQueue()
    seen: list[Any] = []
    for i in range(50):
        queue.add_task(lambda i=i: seen.append(i))
        assert queue.add_blocking_task(lambda i=i: seen.append(-i), allow_queuing=True)
        assert not queue.add_blocking_task(lambda: seen.append("never"), allow_queuing=False)
    queue.add_task(lambda: queue.add_task(lambda: seen.append(threading.get_ident())))
    assert seen == []
    assert queue.quiesce()
    assert seen == [sign * i for i in range(50) for sign in (1, -1)] + [threading.get_ident()]
    assert queue.parallelism_level == 1


def test_single_threaded_runs_no_more_than_is_waited_for() -> None:
    queue = SingleThreadedWorkQueue()
    value, seen = AsyncValue(), []
    queue.add_task(lambda: value.emplace(1))
    queue.add_task(lambda: seen.append("later"))
    assert queue.await_values([value])
    assert seen == []


def test_a_keyboard_interrupt_in_the_main_thread_ends_the_wait() -> None:
    queue = SingleThreadedWorkQueue()

    def interrupted() -> None:
        raise KeyboardInterrupt

    queue.add_task(interrupted)
    seen: list[int] = []
    queue.add_task(lambda: seen.append(1))
    with pytest.raises(KeyboardInterrupt):
        queue.quiesce()
    assert queue.quiesce()
    assert seen == [1]


def schedule(seed: int) -> list[int]:
    """The order in which a seeded queue runs thirty tasks, most of which are added by others."""
    queue = SeededWorkQueue(seed)
    seen: list[int] = []

    def task(i: int) -> None:
        seen.append(i)
        if i < 10:
            queue.add_task(lambda: task(i + 10))
            queue.add_blocking_task(lambda: task(i + 20), allow_queuing=True)

    for i in range(10):
        queue.add_task(lambda i=i: task(i))
    queue.quiesce()
    return seen


def test_seeded_gives_one_order_a_seed_and_many_over_seeds() -> None:
    assert schedule(1) == schedule(1)
    orders = {tuple(schedule(seed)) for seed in range(50)}
    assert len(orders) == 50
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(30))}


def test_seeded_reaches_every_order_of_a_few_tasks() -> None:
    orders = set()
    for seed in range(200):
        queue = SeededWorkQueue(seed)
        seen: list[int] = []
        for i in range(3):
            queue.add_task(lambda i=i, seen=seen: seen.append(i))
        queue.quiesce()
        orders.add(tuple(seen))
    assert len(orders) == 6
