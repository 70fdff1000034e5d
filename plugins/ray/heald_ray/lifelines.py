"""Lifelines: the deaths of a session's workers, and the renewal of workers that have started again.

A lifeline is a call that a worker answers never. Its failure is the engine's notice that the worker died.
"""

# The theory of deaths
#
# - The notice of a death ends every step in flight that has a part on the worker, whichever messages it waits for.
#   A message that a dead worker took is of a step that began before the death, so the notice ends that step too.
# - A worker whose death was noticed is lost. The first step that needs it renews it and then begins.
# - A renewal attaches the next lifeline before it tells the worker its graph. So the lifeline is as old as the renewal
#   or older, and the death of a renewed worker is always noticed.
# - A renewal may reach a living worker, and any number of times: a worker is renewed once.

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from time import monotonic
from typing import Any

from heald.errors import Unavailable

from .cluster import Cluster
from .task_graphs import task_name

RENEWAL_SECONDS = 30.0  # seconds that a step waits for a worker to start again
PAUSE_SECONDS = 0.05  # seconds between two questions to a worker that starts

Check = Callable[[], None]  # raises the error of a caller that waits no longer


class Lifelines:
    """Watches the workers of a cluster. Several threads may call.

    `lines`: The present lifeline of each worker.
    `renew`: Calls a worker that started again, to tell it its graph. The call fails while the worker does not answer.
    """

    def __init__(self, cluster: Cluster, tasks: Iterable[int], renew: Callable[[int], Future[Any]]) -> None:
        self._cluster, self._renew = cluster, renew
        self._lock = threading.Lock()
        self.lost: set[int] = set()
        self.lines: dict[int, Future[Any]] = {}
        self._steps: dict[int, tuple[frozenset[int], Future[None]]] = {}
        self._renewals = {task: threading.Lock() for task in tasks}
        for task in self._renewals:
            self._attach(task)

    def begin(self, step: int, tasks: Iterable[int], check: Check) -> Future[None]:
        """Return the death of a step: a future that fails when one of these workers dies. Lost workers are renewed."""
        needed = frozenset(tasks)
        while True:
            self.renew_lost(needed, check)
            with self._lock:
                if self.lost.isdisjoint(needed):
                    death: Future[None] = Future()
                    self._steps[step] = needed, death
                    return death

    def end(self, step: int) -> None:
        with self._lock:
            self._steps.pop(step, None)

    def renew_lost(self, tasks: Iterable[int], check: Check) -> None:
        """Wait until these workers have started again. Raises the errors of `check`, and Unavailable after a while."""
        for task in self.lost.intersection(tasks):
            while not self._renewals[task].acquire(timeout=PAUSE_SECONDS):
                check()
            try:
                self._renew_one(task, check)
            finally:
                self._renewals[task].release()

    def mark_lost(self, task: int) -> None:
        """Note a worker that gave no answer. It is renewed before the next step."""
        with self._lock:
            self.lost.add(task)

    def _renew_one(self, task: int, check: Check) -> None:
        end = monotonic() + RENEWAL_SECONDS
        while task in self.lost:
            self._attach(task)
            call = self._renew(task)
            _wait(call, check)
            if call.exception() is not None:
                check()
                if monotonic() >= end:
                    raise Unavailable(f"{task_name(task)} did not start again within {RENEWAL_SECONDS:g} s",
                                      device=task_name(task))
                threading.Event().wait(PAUSE_SECONDS)
                continue
            with self._lock:
                if not self.lines[task].done():
                    self.lost.discard(task)

    def _attach(self, task: int) -> None:
        line = self.lines[task] = self._cluster.call(task, "live")
        line.add_done_callback(lambda _: self._on_end(task, line))

    def _on_end(self, task: int, line: Future[Any]) -> None:
        if self.lines.get(task) is not line or line.exception() is None:
            return  # a newer lifeline is attached, or the worker closed
        with self._lock:
            self.lost.add(task)
            deaths = [death for tasks, death in self._steps.values() if task in tasks]
        error: Any = line.exception()
        for death in deaths:
            if not death.done():
                death.set_exception(Unavailable(getattr(error, "message", str(error)), device=task_name(task)))


def _wait(call: Future[Any], check: Check) -> None:
    """Wait for a call. Raises the errors of `check`."""
    is_done = threading.Event()
    call.add_done_callback(lambda _: is_done.set())
    while not is_done.wait(PAUSE_SECONDS):
        check()
