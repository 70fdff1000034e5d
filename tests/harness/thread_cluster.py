"""A cluster in one process: each worker is an object, and each call a thread of its own."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from typing import Any

from heald.errors import Unavailable
from heald_ray.cluster import Cluster
from heald_ray.task_graphs import task_name
from heald_ray.worker import Worker


class ThreadCluster(Cluster):
    """Workers as threads. `kill` ends one as the death of a process would, and starts it again.

    `posted`: the number of calls between workers, by their method, source and destination.
    """

    def __init__(self, parts: Any, config: str) -> None:
        self._parts, self._config = dict(parts), config
        self.starts = Counter(list(parts))
        self.posted: Counter[tuple[str, int, int]] = Counter()
        self._lock = threading.Lock()
        self._running: dict[int, set[Future[Any]]] = {task: set() for task in parts}
        self.workers = {task: self._start(task, 1) for task in parts}

    def _start(self, task: int, start: int) -> Worker:
        def post(destination: int, method: str, args: Any) -> Future[Any]:
            if self.workers[task] is not worker:
                return Future()  # a dead process sends nothing
            return self.post(task, destination, method, args)

        worker = Worker(task, self._parts[task], self._config, post, start)
        return worker

    def post(self, task: int, destination: int, method: str, args: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        getattr(self.workers[destination], method)(*args)
        answer.set_result(None)
        with self._lock:
            self.posted[method, task, destination] += 1
        return answer

    def call(self, task: int, method: str, *args: Any) -> Future[Any]:
        call: Future[Any] = Future()
        worker = self.workers[task]
        with self._lock:
            self._running[task].add(call)

        def work() -> None:
            try:
                outcome, error = getattr(worker, method)(*args), None
            except BaseException as caught:  # noqa: BLE001 - the caller raises it
                outcome, error = None, caught
            with self._lock:
                if call not in self._running[task]:
                    return
                self._running[task].discard(call)
            if error is None:
                call.set_result(outcome)
            else:
                call.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return call

    def kill(self, task: int) -> None:
        with self._lock:
            lost, self._running[task] = self._running[task], set()
            self.starts[task] += 1
        dead, self.workers[task] = self.workers[task], self._start(task, self.starts[task])
        for call in lost:
            call.set_exception(Unavailable(f"{task_name(task)} died"))
        dead.close()

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
