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
    events: list[Any] = []
    for i in range(50):
        queue.add_task(lambda i=i: events.append(i))
        assert queue.add_blocking_task(lambda i=i: events.append(-i), allow_queuing=True)
        assert not queue.add_blocking_task(lambda: events.append("never"), allow_queuing=False)
    queue.add_task(lambda: queue.add_task(lambda: events.append(threading.get_ident())))
    assert events == []
    assert queue.quiesce()
    assert events == [sign * i for i in range(50) for sign in (1, -1)] + [threading.get_ident()]
    assert queue.parallelism_level == 1


def test_single_threaded_runs_no_more_than_is_waited_for() -> None:
    queue = SingleThreadedWorkQueue()
    value, events = AsyncValue(), []
    queue.add_task(lambda: value.emplace(1))
    queue.add_task(lambda: events.append("later"))
    assert queue.await_values([value])
    assert events == []


def test_a_keyboard_interrupt_in_the_main_thread_ends_the_wait() -> None:
    queue = SingleThreadedWorkQueue()

    def raise_interrupt() -> None:
        raise KeyboardInterrupt

    queue.add_task(raise_interrupt)
    events: list[int] = []
    queue.add_task(lambda: events.append(1))
    with pytest.raises(KeyboardInterrupt):
        queue.quiesce()
    assert queue.quiesce()
    assert events == [1]


def schedule(seed: int) -> list[int]:
    """The order in which a seeded queue runs thirty tasks, most of which are added by others."""
    queue = SeededWorkQueue(seed)
    events: list[int] = []

    def task(i: int) -> None:
        events.append(i)
        if i < 10:
            queue.add_task(lambda: task(i + 10))
            queue.add_blocking_task(lambda: task(i + 20), allow_queuing=True)

    for i in range(10):
        queue.add_task(lambda i=i: task(i))
    queue.quiesce()
    return events


def test_seeded_gives_one_order_a_seed_and_many_over_seeds() -> None:
    assert schedule(1) == schedule(1)
    orders = {tuple(schedule(seed)) for seed in range(50)}
    assert len(orders) == 50
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(30))}


def test_seeded_reaches_every_order_of_a_few_tasks() -> None:
    orders = set()
    for seed in range(200):
        queue = SeededWorkQueue(seed)
        events: list[int] = []
        for i in range(3):
            queue.add_task(lambda i=i, events=events: events.append(i))
        queue.quiesce()
        orders.add(tuple(events))
    assert len(orders) == 6
