"""Laws that all built-in work queues keep."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from harness.elsewhere import run_in_thread
from heald.errors import FailedPrecondition
from heald.runtime.values.async_value import AsyncValue, available

ENOUGH = 10.0  # seconds; a test that takes longer hangs
MOMENT = 0.02


def test_every_task_runs_exactly_once(queue: Any) -> None:
    events: list[int] = []
    for i in range(1000):
        queue.add_task(lambda i=i: events.append(i))
    assert queue.quiesce(ENOUGH)
    assert sorted(events) == list(range(1000))


def test_four_threads_add_tasks_and_wait_for_them(queue: Any) -> None:
    events: list[tuple[int, int]] = []

    def produce(which: int) -> None:
        for i in range(5000):
            queue.add_task(lambda i=i: events.append((which, i)))
        if which % 2:
            assert queue.quiesce(ENOUGH)

    producers = [threading.Thread(target=produce, args=(which,)) for which in range(4)]
    for thread in producers:
        thread.start()
    for thread in producers:
        thread.join(ENOUGH)
    assert queue.quiesce(ENOUGH)
    assert sorted(events) == [(which, i) for which in range(4) for i in range(5000)]


@pytest.mark.parametrize("wait", [lambda work: work(), run_in_thread], ids=["main thread", "another thread"])
def test_tasks_that_add_tasks_are_waited_for(queue: Any, wait: Callable[..., Any]) -> None:
    events: list[int] = []

    def branch(depth: int) -> None:
        events.append(depth)
        if depth < 8:
            queue.add_task(lambda: branch(depth + 1))
            queue.add_blocking_task(lambda: branch(depth + 1), allow_queuing=True)

    def run() -> bool:
        queue.add_task(lambda: branch(0))
        return bool(queue.quiesce(ENOUGH))

    assert wait(run)
    assert len(events) == 2 ** 9 - 1


def test_quiet_means_that_nothing_runs(queue: Any) -> None:
    for _ in range(200):
        events: list[int] = []
        queue.add_task(lambda events=events: queue.add_blocking_task(
            lambda: queue.add_task(lambda: events.append(1)), allow_queuing=True))
        assert queue.quiesce(ENOUGH)
        assert events == [1]


def test_waiting_for_values_runs_the_tasks_that_complete_them(queue: Any) -> None:
    values = [AsyncValue() for _ in range(100)]
    for i, value in enumerate(values):
        queue.add_task(lambda i=i, value=value: value.emplace(i))
    assert queue.await_values(values, ENOUGH)
    assert [value.get() for value in values] == list(range(100))
    assert queue.await_values([*values, available(1)])
    assert queue.await_values([])


def test_values_that_other_threads_complete_end_the_wait(queue: Any) -> None:
    value = AsyncValue()
    timer = threading.Timer(MOMENT, value.emplace, [1])
    timer.start()
    assert queue.await_values([value], ENOUGH)
    timer.join()


def test_a_task_that_comes_while_a_thread_waits_is_run(queue: Any) -> None:
    value = AsyncValue()
    timer = threading.Timer(MOMENT, lambda: queue.add_task(lambda: value.emplace(1)))
    timer.start()
    assert queue.await_values([value], ENOUGH)
    timer.join()


def test_several_threads_wait_and_all_get_their_values(queue: Any) -> None:
    def one() -> bool:
        for _ in range(100):
            value, chained = AsyncValue(), AsyncValue()
            value.and_then(lambda chained=chained: queue.add_task(lambda: chained.emplace(None)))
            queue.add_task(lambda value=value: value.emplace(None))
            if not queue.await_values([chained], ENOUGH):
                return False
        return True

    results: list[bool] = []
    waiters = [threading.Thread(target=lambda: results.append(one())) for _ in range(4)]
    for thread in waiters:
        thread.start()
    results.append(one())
    for thread in waiters:
        thread.join(ENOUGH)
    assert results == [True] * 5


def test_a_wait_ends_at_its_timeout(queue: Any) -> None:
    start = time.monotonic()
    assert queue.await_values([AsyncValue()], MOMENT) is False
    assert queue.await_values([AsyncValue()], 0) is False
    assert queue.await_values([AsyncValue()], -1) is False
    queue.add_task(lambda: time.sleep(2 * MOMENT))
    queue.add_task(lambda: None)
    assert queue.quiesce(MOMENT) in (False, True)  # a task that runs on the waiting thread is not cut short
    assert time.monotonic() - start < 1
    assert queue.quiesce(ENOUGH) is True
    assert queue.quiesce(0) is True


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
@pytest.mark.parametrize("blocking", [False, True])
def test_the_exception_of_a_task_goes_to_the_handler_and_ends_no_thread(
    make: Callable[..., Any], kind: type[BaseException], blocking: bool
) -> None:
    faults: list[BaseException] = []
    queue = make(on_error=faults.append)
    events: list[int] = []

    def fail() -> None:
        raise kind("on purpose")

    def run() -> None:
        for i in range(20):
            if blocking:
                queue.add_blocking_task(fail, allow_queuing=True)
            else:
                queue.add_task(fail)
            queue.add_task(lambda i=i: events.append(i))
        assert queue.quiesce(ENOUGH)

    run_in_thread(run)  # in the main thread a KeyboardInterrupt would be the user's
    assert [type(fault) for fault in faults] == [kind] * 20
    assert sorted(events) == list(range(20))


def test_a_handler_that_fails_ends_nothing_either(make: Callable[..., Any], monkeypatch: Any) -> None:
    hooked: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: hooked.append(args.exc_type))

    def handler(error: BaseException) -> None:
        raise SystemExit from error

    queue = make(on_error=handler)
    queue.add_task(lambda: 1 / 0)
    events: list[int] = []
    queue.add_task(lambda: events.append(1))
    assert queue.quiesce(ENOUGH)
    assert (hooked, events) == ([SystemExit], [1])


def test_the_default_handler_is_the_excepthook_of_threads(queue: Any, monkeypatch: Any) -> None:
    hooked: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", hooked.append)
    queue.add_task(lambda: 1 / 0)
    assert queue.quiesce(ENOUGH)
    assert [args.exc_type for args in hooked] == [ZeroDivisionError]


@pytest.mark.parametrize("wait", [lambda work: work(), run_in_thread], ids=["main thread", "another thread"])
@pytest.mark.parametrize("blocking", [False, True])
def test_a_task_cannot_wait_for_the_queue_that_runs_it(
    queue: Any, wait: Callable[..., Any], blocking: bool
) -> None:
    caught: list[str] = []

    def task() -> None:
        for call in (lambda: queue.await_values([AsyncValue()]), queue.quiesce):
            with pytest.raises(FailedPrecondition, match="a task waits for the work queue that runs it") as error:
                call()
            caught.append(str(error.value))

    def run() -> bool:
        if blocking:
            queue.add_blocking_task(task, allow_queuing=True)
        else:
            queue.add_task(task)
        return bool(queue.quiesce(ENOUGH))

    assert wait(run)
    assert len(caught) == 2
    assert wait(lambda: queue.await_values([available(1)]))  # the thread that ran it may wait again


def test_a_closed_queue_refuses_tasks_and_waits(queue: Any) -> None:
    queue.add_task(lambda: None)
    assert queue.quiesce(ENOUGH)
    queue.close()
    queue.close()
    for call in (lambda: queue.add_task(print), lambda: queue.add_blocking_task(print, allow_queuing=True),
                 lambda: queue.add_blocking_task(print, allow_queuing=False),
                 lambda: queue.await_values([]), queue.quiesce):
        with pytest.raises(FailedPrecondition, match="the work queue has been closed"):
            call()


def test_close_ends_the_waits_of_others(queue: Any) -> None:
    closer = threading.Timer(MOMENT, queue.close)
    closer.start()
    with pytest.raises(FailedPrecondition, match="closed"):
        queue.await_values([AsyncValue()], ENOUGH)
    closer.join()


def test_a_queue_keeps_nothing_of_its_tasks(queue: Any) -> None:
    class Payload:
        pass

    for add in (queue.add_task, lambda task: queue.add_blocking_task(task, allow_queuing=True)):
        payload = Payload()
        reference = weakref.ref(payload)
        add(lambda payload=payload: payload)
        del payload
        assert queue.quiesce(ENOUGH)
        assert reference() is None


def test_the_exception_that_a_closed_queue_raises_in_a_running_task_is_not_reported(make: Callable[..., Any]) -> None:
    faults: list[BaseException] = []
    queue = make(on_error=faults.append)
    refused = threading.Event()

    def task() -> None:
        queue.close()
        try:
            queue.add_task(task)
        finally:
            refused.set()

    queue.add_task(task)
    with pytest.raises(FailedPrecondition, match="closed"):
        queue.await_values([AsyncValue()], ENOUGH)
    assert refused.wait(ENOUGH)
    assert faults == []
