"""Work queues: each task runs once, waits end as they should, and a closed or inherited queue refuses work.

Tasks are events and counters, so that a case needs no timing. A case waits PROMPT seconds for what should come at once.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import heald
from heald.api import AsyncValue, ConcurrentWorkQueue, WorkQueueConfig, errors
from heald.runtime.host import make_work_queue

from ..case import sentence
from ..hook_subject import PROMPT, HookSubject, expect_raises, run_within
from ..subject import whatever_comes
from ..verdict import NotApplicable, expect

MOMENT = 0.05  # seconds
METHODS = ("add_task", "add_blocking_task", "await_values", "quiesce", "close")
CALLS: dict[str, Callable[[ConcurrentWorkQueue], Any]] = {  # each refused by a queue that cannot serve
    "add_task": lambda queue: queue.add_task(int),
    "add_blocking_task": lambda queue: queue.add_blocking_task(int, True),
    "await_values": lambda queue: queue.await_values([AsyncValue()], PROMPT),
    "quiesce": lambda queue: queue.quiesce(PROMPT),
}


@contextmanager
def open_queue(on: HookSubject, threads: int = 2) -> Iterator[ConcurrentWorkQueue]:
    """A new queue, which is closed at the end."""
    with whatever_comes("the queue is made", expected="a work queue", rule="queue.factory"):
        queue = make_work_queue(heald.default_host().registries.work_queues, WorkQueueConfig(on.name, threads))
    missing = [name for name in METHODS if not callable(getattr(queue, name, None))]
    expect(not missing, "the queue is made", expected=f"an object with {', '.join(METHODS)}", got=f"without {missing}",
           rule="queue.factory")
    try:
        yield queue
    finally:
        with whatever_comes("close", expected="no exception", rule="queue.close"):
            run_within(2 * PROMPT, queue.close, "close", "queue.close")


def settle(queue: ConcurrentWorkQueue, what: str) -> None:
    """Wait until all tasks are done."""
    is_done = run_within(2 * PROMPT, lambda: queue.quiesce(PROMPT), f"quiesce after {what}", "queue.quiesce")
    expect(is_done is True, f"quiesce after {what}", expected=True, got=is_done, rule="queue.quiesce")


@sentence()
def the_parallelism_level_is_a_number_from_one_on(on: HookSubject) -> None:
    with open_queue(on) as queue:
        level = queue.parallelism_level
        expect(isinstance(level, int) and not isinstance(level, bool) and level >= 1, "parallelism_level",
               expected="an int, at least 1", got=repr(level), rule="queue.parallelism_level")


@sentence()
def every_task_runs_once(on: HookSubject) -> None:
    runs: Counter[int] = Counter()
    lock = threading.Lock()
    share = on.size(500, 100)

    def count(number: int) -> None:
        with lock:
            runs[number] += 1

    with open_queue(on) as queue:
        def add(first: int) -> None:
            for number in range(first, first + share):
                queue.add_task(lambda number=number: count(number))  # type: ignore[misc]

        threads = [threading.Thread(target=add, args=(turn * share,), daemon=True) for turn in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PROMPT)
        settle(queue, f"{3 * share} tasks of three threads")
    lost = [number for number in range(3 * share) if not runs[number]]
    doubled = [number for number, times in runs.items() if times > 1]
    expect(not lost, f"{3 * share} tasks were added", expected="every task runs",
           got=f"{len(lost)} never ran, the first is {lost[:1]}", rule="queue.tasks")
    expect(not doubled, f"{3 * share} tasks were added", expected="every task runs once",
           got=f"{len(doubled)} ran more than once, the first is {doubled[:1]}", rule="queue.tasks")


@sentence()
def tasks_that_tasks_add_run_too(on: HookSubject) -> None:
    depths: list[int] = []
    with open_queue(on) as queue:
        def add_next(depth: int) -> None:
            depths.append(depth)
            if depth < 20:
                queue.add_task(lambda: add_next(depth + 1))

        queue.add_task(lambda: add_next(1))
        settle(queue, "a chain of 20 tasks")
    expect(depths == list(range(1, 21)), "each task of a chain adds the next", expected="20 tasks, in order",
           got=depths, rule="queue.tasks")


@sentence()
def add_task_leaves_the_task_to_others(on: HookSubject) -> None:
    caller, inside, ran_inside = threading.get_ident(), [False], [False]

    def note() -> None:
        ran_inside[0] |= inside[0] and threading.get_ident() == caller

    with open_queue(on) as queue:
        for _ in range(20):
            inside[0] = True
            queue.add_task(note)
            inside[0] = False
        settle(queue, "20 tasks")
    expect(not ran_inside[0], "a task was added", expected="add_task returns before its thread runs the task",
           got="the task ran within add_task", rule="queue.add_task")


@sentence()
def quiesce_waits_for_the_last_task(on: HookSubject) -> None:
    ended = threading.Event()

    def end_late() -> None:
        time.sleep(MOMENT)
        ended.set()

    with open_queue(on) as queue:
        queue.add_task(end_late)
        settle(queue, "a task of 50 ms")
        expect(ended.is_set(), "quiesce returned True", expected="the task has ended", got="it still runs",
               rule="queue.quiesce")


@sentence()
def await_values_waits_for_its_values(on: HookSubject) -> None:
    values = [AsyncValue() for _ in range(10)]

    def emplace(value: AsyncValue) -> None:
        time.sleep(MOMENT / 10)
        value.emplace(1)

    with open_queue(on) as queue:
        for value in values:
            queue.add_task(lambda value=value: emplace(value))  # type: ignore[misc]
        is_done = queue.await_values(values, PROMPT)
        pending = sum(not value.is_available() for value in values)
    expect(is_done is True, "await_values of values that tasks emplace", expected=True, got=is_done,
           rule="queue.await_values")
    expect(not pending, "await_values returned True", expected="no pending value", got=f"{pending} of 10 are pending",
           rule="queue.await_values")


@sentence()
def await_values_sees_a_value_of_another_thread(on: HookSubject) -> None:
    value = AsyncValue()
    timer = threading.Timer(MOMENT, value.emplace, (1,))
    with open_queue(on) as queue:
        timer.start()
        start = time.monotonic()
        is_done = run_within(2 * PROMPT, lambda: queue.await_values([value], PROMPT), "await_values",
                             "queue.await_values")
        waited = time.monotonic() - start
    expect(is_done is True and value.is_available(), "a thread outside of the queue emplaced the value", expected=True,
           got=is_done, rule="queue.await_values")
    expect(waited < PROMPT / 2, f"the value came after {MOMENT} s", expected="await_values returns soon after",
           got=f"{waited:.1f} s", rule="queue.await_values")


@sentence()
def waits_with_a_timeout_return_false(on: HookSubject) -> None:
    may_end = threading.Event()
    with open_queue(on) as queue:
        is_done = run_within(PROMPT, lambda: queue.await_values([AsyncValue()], MOMENT), "await_values of a pending "
                             f"value, timeout {MOMENT} s", "queue.await_values")
        expect(is_done is False, f"await_values of a pending value, timeout {MOMENT} s", expected=False, got=is_done,
               rule="queue.await_values")
        expect(queue.await_values([], MOMENT) is True, "await_values of no values", expected=True, got=False,
               rule="queue.await_values")
        if queue.add_blocking_task(lambda: may_end.wait(PROMPT), False):
            is_idle = run_within(PROMPT, lambda: queue.quiesce(MOMENT), "quiesce while a task runs", "queue.quiesce")
            may_end.set()
            expect(is_idle is False, f"quiesce while a task runs, timeout {MOMENT} s", expected=False, got=is_idle,
                   rule="queue.quiesce")


@sentence()
def a_blocking_task_holds_up_no_other(on: HookSubject) -> None:
    may_end, passed = threading.Event(), threading.Event()
    with open_queue(on, threads=1) as queue:
        taken = [queue.add_blocking_task(lambda: may_end.wait(PROMPT), False) for _ in range(4)]
        if not any(taken):
            raise NotApplicable("it takes no blocking task that must start at once")
        queue.add_task(passed.set)
        value = AsyncValue()
        queue.add_task(lambda: value.emplace(1))
        queue.await_values([value], PROMPT / 2)
        came = passed.wait(PROMPT / 2)
        may_end.set()
        settle(queue, "blocking tasks")
    expect(came, f"{sum(taken)} blocking tasks wait", expected="a non-blocking task runs meanwhile",
           got="it does not", rule="queue.add_blocking_task")


@sentence()
def blocking_tasks_run_once_or_are_not_taken(on: HookSubject) -> None:
    runs: Counter[int] = Counter()
    with open_queue(on) as queue:
        answers = [queue.add_blocking_task(lambda n=n: runs.update([n]), n % 2 == 0)  # type: ignore[misc]
                   for n in range(40)]
        settle(queue, "40 blocking tasks")
    odd = [answer for answer in answers if not isinstance(answer, bool)]
    expect(not odd, "add_blocking_task", expected="True or False", got=odd[:1], rule="queue.add_blocking_task")
    wrong = [n for n, taken in enumerate(answers) if runs[n] != int(taken)]
    expect(not wrong, f"add_blocking_task(..., allow_queuing={wrong[:1] and wrong[0] % 2 == 0}) returned "
                      f"{wrong and answers[wrong[0]]}", expected="a taken task runs once, another never",
           got=f"it ran {wrong and runs[wrong[0]]} times", rule="queue.add_blocking_task")


@sentence()
def a_task_that_raises_is_reported_and_ends_nothing(on: HookSubject) -> None:
    reports: list[Any] = []
    ran = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError("planted by heald_conformance")

    before, threading.excepthook = threading.excepthook, reports.append
    try:
        with open_queue(on, threads=1) as queue:
            for _ in range(3):
                queue.add_task(fail)
            with whatever_comes("quiesce after a task that raised", expected="True", rule="queue.errors"):
                settle(queue, "a task that raised")
            queue.add_task(ran.set)
            settle(queue, "a task after one that raised")
    finally:
        threading.excepthook = before
    expect(ran.is_set(), "a task raised an exception", expected="later tasks run", got="they do not",
           rule="queue.errors")
    expect(len(reports) == 3, "three tasks raised exceptions", expected="three calls of threading.excepthook",
           got=len(reports), rule="queue.errors")


@sentence(over=lambda _: ["await_values", "quiesce"])
def a_task_cannot_wait_for_its_own_queue(on: HookSubject, method: str) -> None:
    outcomes: list[object] = []
    with open_queue(on) as queue:
        def wait() -> None:
            try:
                outcomes.append(CALLS[method](queue))
            except BaseException as error:  # noqa: BLE001 - the case judges it
                outcomes.append(error)

        queue.add_task(wait)
        queue.quiesce(2 * PROMPT)
    expect(outcomes and isinstance(outcomes[0], errors.FailedPrecondition), f"a task calls {method}",
           expected="FailedPrecondition", got=outcomes[:1] or "nothing came", rule="queue.in_task")


@sentence(over=lambda _: list(CALLS))
def a_closed_queue_refuses_work(on: HookSubject, method: str) -> None:
    with open_queue(on) as queue:
        queue.add_task(int)
        settle(queue, "a task")
        queue.close()
        expect_raises((errors.FailedPrecondition,), lambda: CALLS[method](queue), f"{method} of a closed queue",
                      "queue.close")


@sentence()
def close_drops_tasks_and_waits_for_none(on: HookSubject) -> None:
    may_end = threading.Event()
    late: list[int] = []
    with open_queue(on, threads=1) as queue:
        for _ in range(min(queue.parallelism_level, 64)):  # all threads of the queue have a task
            queue.add_task(lambda: may_end.wait(4 * PROMPT))
        time.sleep(MOMENT)
        for number in range(20):
            queue.add_task(lambda number=number: late.append(number))  # type: ignore[misc]
        try:
            run_within(PROMPT, queue.close, "close while a task does not end", "queue.close")
        finally:
            may_end.set()
        time.sleep(MOMENT)
    expect(not late, "close, while 20 tasks have not started", expected="none of them runs", got=f"{len(late)} ran",
           rule="queue.close")


@sentence()
def close_ends_the_threads(on: HookSubject) -> None:
    before = set(threading.enumerate())
    with open_queue(on) as queue:
        for _ in range(20):
            queue.add_task(int)
        queue.add_blocking_task(int, True)
        settle(queue, "21 tasks")
    end = time.monotonic() + PROMPT
    while (left := [t.name for t in set(threading.enumerate()) - before]) and time.monotonic() < end:
        time.sleep(MOMENT / 5)
    expect(not left, "the queue was closed", expected="its threads have ended", got=left, rule="queue.close")


@sentence(over=lambda _: list(CALLS))
def a_forked_child_is_refused_at_once(on: HookSubject, method: str) -> None:
    if not hasattr(os, "fork"):
        raise NotApplicable("this system has no fork")
    with open_queue(on) as queue:
        queue.add_task(int)
        settle(queue, "a task")
        outcome = outcome_in_child(lambda: CALLS[method](queue))
    expect(outcome == "FailedPrecondition", f"{method} in a forked child", expected="FailedPrecondition", got=outcome,
           rule="queue.fork")


def outcome_in_child(function: Callable[[], Any]) -> str:
    """The name of the exception that a function raises in a forked child, or the repr of its result."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: this is the point
        child = os.fork()
    if child == 0:
        text = "nothing"
        try:
            text = repr(function())[:60]
        except BaseException as error:  # noqa: BLE001 - the case judges it
            text = type(error).__name__
        finally:
            os.write(writer, text.encode())
            os._exit(0)
    os.close(writer)
    try:
        return run_within(PROMPT, lambda: os.read(reader, 200).decode(), "a call in a forked child", "queue.fork")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
