"""The multi-threaded queue."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from harness.elsewhere import run_in_thread
from heald.errors import InvalidArgument, ResourceExhausted
from heald.runtime.contract.work_queue import WorkQueueConfig
from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue
from heald.runtime.values.async_value import AsyncValue, available

ENOUGH = 10.0  # seconds; a test that takes longer hangs
MOMENT = 0.02


def test_threads_start_with_the_first_task_and_no_more_than_asked_for(threads: Callable[..., Any]) -> None:
    before = set(threading.enumerate())
    queue = threads(3)
    assert queue.await_values([available(1)])
    assert queue.quiesce()
    assert set(threading.enumerate()) <= before
    for _ in range(1000):
        queue.add_task(lambda: None)
    assert queue.quiesce(ENOUGH)
    assert 1 <= len(set(threading.enumerate()) - before) <= 3
    assert queue.parallelism_level == 3


def test_as_many_tasks_as_threads_run_at_a_time(threads: Callable[..., Any]) -> None:
    queue = threads(3)
    barrier = threading.Barrier(3, timeout=ENOUGH)
    for _ in range(3):
        queue.add_task(barrier.wait)  # ends only when all three are running
    assert queue.quiesce(ENOUGH)
    assert not barrier.broken


def test_the_main_thread_runs_no_task(threads: Callable[..., Any]) -> None:
    queue = threads()
    where: set[int] = set()
    for _ in range(2000):
        queue.add_task(lambda: where.add(threading.get_ident()))
    assert queue.quiesce(ENOUGH)
    assert threading.get_ident() not in where


def test_another_thread_runs_its_own_tasks_while_it_waits_and_no_others(threads: Callable[..., Any]) -> None:
    queue = threads(1)
    started, go_on = threading.Event(), threading.Event()
    where: dict[str, int] = {}

    def hold() -> None:
        started.set()
        go_on.wait(ENOUGH)

    def run() -> int:
        value = AsyncValue()
        queue.add_task(lambda: where.setdefault("own", threading.get_ident()))
        queue.add_task(lambda: value.emplace(None))
        assert queue.await_values([value], ENOUGH)
        assert queue.quiesce(MOMENT) is False
        return threading.get_ident()

    queue.add_task(hold)
    assert started.wait(ENOUGH)  # the only worker is busy
    queue.add_task(lambda: where.setdefault("foreign", threading.get_ident()))
    me = run_in_thread(run)
    assert where == {"own": me}
    go_on.set()
    assert queue.quiesce(ENOUGH)
    assert "foreign" in where


def test_blocking_tasks_get_threads_of_their_own_and_hold_up_no_others(threads: Callable[..., Any]) -> None:
    queue = threads()
    go_on = threading.Event()
    running = threading.Barrier(21, timeout=ENOUGH)

    def block() -> None:
        running.wait()
        go_on.wait(ENOUGH)

    for _ in range(20):
        assert queue.add_blocking_task(block, allow_queuing=False)
    running.wait()  # all twenty run at once
    value = AsyncValue()
    queue.add_task(lambda: value.emplace(1))
    assert queue.await_values([value], ENOUGH)
    assert queue.quiesce(MOMENT) is False
    go_on.set()
    assert queue.quiesce(ENOUGH)


def test_blocking_tasks_beyond_the_thread_limit_queue_or_are_refused(threads: Callable[..., Any]) -> None:
    queue = threads(blocking_threads=2)
    running, go_on = threading.Barrier(3, timeout=ENOUGH), threading.Event()
    events: list[str] = []

    def block() -> None:
        running.wait()
        go_on.wait(ENOUGH)

    for _ in range(2):
        assert queue.add_blocking_task(block, allow_queuing=False)
    running.wait()
    assert queue.add_blocking_task(lambda: events.append("queued"), allow_queuing=True)
    assert queue.add_blocking_task(lambda: events.append("refused"), allow_queuing=False) is False
    go_on.set()
    assert queue.quiesce(ENOUGH)
    assert events == ["queued"]


def test_idle_blocking_threads_end_and_come_again(threads: Callable[..., Any]) -> None:
    before = set(threading.enumerate())
    queue = threads(idle_seconds=MOMENT / 10, blocking_threads=1)
    events: list[int] = []
    for i in range(300):  # tasks meet threads that are about to leave
        queue.add_blocking_task(lambda i=i: events.append(i), allow_queuing=True)
        if i % 10 == 0:
            time.sleep(MOMENT / 10)
    assert queue.quiesce(ENOUGH)
    assert events == list(range(300))
    end = time.monotonic() + ENOUGH
    while set(threading.enumerate()) - before and time.monotonic() < end:
        time.sleep(MOMENT / 10)
    assert set(threading.enumerate()) <= before
    assert queue.quiesce(ENOUGH)


def test_a_system_that_starts_no_thread_is_a_typed_error(threads: Callable[..., Any], monkeypatch: Any) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    queue = threads()
    events: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        for add in (queue.add_task, lambda task: queue.add_blocking_task(task, allow_queuing=True)):
            with pytest.raises(ResourceExhausted, match="can't start new thread"):
                add(lambda: events.append("refused"))
        assert queue.quiesce(ENOUGH)  # the refused task is gone
    queue.add_task(lambda: events.append("taken"))
    queue.add_blocking_task(lambda: events.append("taken"), allow_queuing=True)
    assert queue.quiesce(ENOUGH)
    assert events == ["taken", "taken"]


def test_a_queue_that_is_dropped_takes_its_threads_along() -> None:
    before = set(threading.enumerate())
    for _ in range(20):
        queue = MultiThreadedWorkQueue(2)
        for _ in range(10):
            queue.add_task(lambda: None)
        queue.add_blocking_task(lambda: None, allow_queuing=True)
        assert queue.quiesce(ENOUGH)
        del queue
    gc.collect()
    assert set(threading.enumerate()) <= before


def test_close_does_not_wait_for_a_stuck_task_and_drops_tasks_not_begun(threads: Callable[..., Any]) -> None:
    queue = threads(1)
    go_on, started = threading.Event(), threading.Event()
    events: list[int] = []

    def stuck() -> None:
        started.set()
        go_on.wait(ENOUGH)

    queue.add_task(stuck)
    queue.add_task(lambda: events.append(1))
    assert started.wait(ENOUGH)
    start = time.monotonic()
    queue.close()
    assert time.monotonic() - start < 1
    go_on.set()
    assert events == []


def test_the_number_of_threads_is_at_least_one() -> None:
    with pytest.raises(InvalidArgument, match="threads must be from 1 to 4096, not 0"):
        WorkQueueConfig(threads=0)
