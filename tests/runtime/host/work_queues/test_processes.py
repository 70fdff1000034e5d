"""Work queues and the process: its end, Ctrl-C, fork."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from heald.errors import FailedPrecondition
from heald.runtime.values.async_value import AsyncValue

ENOUGH = 10.0  # seconds; a test that takes longer hangs
PREAMBLE = """
import signal, sys, threading, time
from heald.runtime.values.async_value import AsyncValue
from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue
from heald.runtime.host.work_queues.seeded import SeededWorkQueue
from heald.runtime.host.work_queues.single_threaded import SingleThreadedWorkQueue
signal.signal(signal.SIGINT, signal.default_int_handler)  # which the background jobs of a shell ignore
queue = MultiThreadedWorkQueue(2)
started = threading.Barrier(3)
def stuck(work=lambda: time.sleep(1000)):
    started.wait()
    while True:
        work()
def loop():
    for i in range(100): i * i
"""
ENDS = {
    "idle": "queue.add_task(print); queue.add_blocking_task(print, allow_queuing=True); queue.quiesce()",
    "closed": "queue.add_task(print); queue.quiesce(); queue.close()",
    "stuck": "queue.add_task(stuck); queue.add_blocking_task(stuck, allow_queuing=True); started.wait()",
    "busy": "queue.add_task(lambda: stuck(loop)); queue.add_task(lambda: stuck(loop)); started.wait()",
    "closed while stuck": "queue.add_task(stuck); queue.add_task(stuck); started.wait(); queue.close()",
    "adding for ever": "again = lambda: queue.add_task(again)\nagain(); again()",
    "closed while tasks add tasks": "again = lambda: queue.add_task(again)\nagain(); again(); queue.close()",
    "a thread waits": "threading.Thread(target=queue.await_values, args=([AsyncValue()],), daemon=True).start()",
    "sys.exit": "queue.add_task(stuck); queue.add_task(stuck); started.wait(); sys.exit(0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_at_once_and_silently_whatever_its_workers_do(end: str) -> None:
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "error", "-c", PREAMBLE + ENDS[end]], capture_output=True, text=True,
                          timeout=ENOUGH, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - start < 2


WAITS = {
    "await_values": "queue.await_values([AsyncValue()])",
    "quiesce": "queue.add_blocking_task(lambda: time.sleep(1000), allow_queuing=True); queue.quiesce()",
    "single_threaded": "SingleThreadedWorkQueue().await_values([AsyncValue()])",
    "seeded": "SeededWorkQueue(1).await_values([AsyncValue()])",
    "a task of the waiting thread": "one = SingleThreadedWorkQueue(); one.add_task(stuck2); one.quiesce()",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_reaches_a_waiting_main_thread_within_a_second(wait: str) -> None:
    code = PREAMBLE + f"""
def stuck2():
    while True:
        loop()
print("waiting", flush=True)
try:
    {WAITS[wait]}
except KeyboardInterrupt:
    value = AsyncValue()
    queue.add_task(lambda: value.emplace(1))
    print("interrupted", queue.await_values([value], 5))
"""
    with subprocess.Popen([sys.executable, "-W", "error", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process, contextlib.ExitStack() as ends:
        ends.callback(process.kill)  # before it is waited for
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.05)  # it begins to wait
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=ENOUGH)
    assert (errors, said, process.returncode) == ("", "interrupted True\n", 0)
    assert time.monotonic() - start < 1.5  # 0.5 of it at the end, for the task that is still blocked


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # Python 3.12: that is the point
def test_a_forked_child_is_refused_at_once(queue: Any) -> None:
    queue.add_task(lambda: None)
    queue.quiesce(ENOUGH)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = []
        for call in (lambda: queue.add_task(print), lambda: queue.add_blocking_task(print, allow_queuing=True),
                     lambda: queue.await_values([AsyncValue()]), queue.quiesce, queue.close):
            try:
                call()
                said.append("nothing")
            except FailedPrecondition as error:
                said.append("forked" if "forked" in str(error) else "else")
        os.write(writing, " ".join(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "forked forked forked forked nothing"
    os.waitpid(child, 0)
    events: list[int] = []
    queue.add_task(lambda: events.append(1))
    assert queue.quiesce(ENOUGH)  # the parent goes on
    assert events == [1]
