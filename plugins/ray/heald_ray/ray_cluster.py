"""RayCluster: the workers of a session as named actors of Ray, and the factory of the target "ray".

Ray starts a dead actor again with the arguments of its start, and repeats no call. Messages between workers are calls
of actors. A worker waits for the answers to its messages before its part of a step ends, so a lost message is an error
of the step.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any
from uuid import uuid4

from heald.api import Graph
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, Unavailable
from heald.runtime.service import runtime

from .call_message import pack_call, unpack_call
from .cluster import Cluster
from .connection import LOCAL, check_address, connect
from .ray_answer import RayAnswer, first_line, wait_for_answers
from .session import ClusterSession
from .task_graphs import task_name
from .tensor_message import pack_error, unpack_error
from .worker import Worker

THREADS_BESIDE_STEPS = 8  # calls of a worker beside its steps: its lifeline, deliveries, aborts, questions
START_SECONDS = 60
# Ray drops longer arguments of a constructor after its first run, and the worker could not start again. So the cluster
# keeps a larger graph in Ray's store, and its constructor takes a list of a reference, which Ray leaves as it is.
LARGEST_ARGUMENT_BYTES = 64 << 10
# Milliseconds that Ray waits for the reason of a death before it tells the death: 1000 by default.
WAIT_FOR_REASONS = "RAY_timeout_ms_task_wait_for_death_info", "100"


def make_session(graph: Graph, config: Any, *, target: str, device: str | None) -> ClusterSession:
    """Return a session over workers of Ray. `target`: "ray", which starts a cluster here, or "ray:HOST:PORT".

    Raises the errors of `connect` and of a config that cannot be read.
    """
    if device is not None:
        raise InvalidArgument("a session of several workers takes no device", hint="request devices in the graph")
    callers_runtime = runtime.runtime(config)
    cluster = callers_runtime.config.cluster
    _, _, place_of_cluster = target.partition(":")
    address = check_address(target if place_of_cluster.startswith("//") else place_of_cluster or LOCAL)
    os.environ.setdefault(*WAIT_FOR_REASONS)  # Ray reads it at its import
    import ray

    if not ray.is_initialized():
        connect(address)
    elif address not in (LOCAL, ray.get_runtime_context().gcs_address):
        raise FailedPrecondition(f"this process is connected to another cluster than {address}",
                                 hint="call ray.shutdown() first")
    return ClusterSession(graph, lambda parts, text: RayCluster(parts, text, cluster.max_steps), cluster.workers,
                          callers_runtime.config, cluster.max_steps)


class RayWorker:
    """The actor: a Worker that reaches the others by their names."""

    def __init__(self, cluster: str, task: int, graph: bytes | list[Any], config: str) -> None:
        import ray

        self._ray, self._cluster = ray, cluster
        self._peers: dict[int, Any] = {}
        context: Any = ray.get_runtime_context()
        start = 2 if context.was_current_actor_reconstructed else 1
        self._fault: bytes | None = None
        try:
            text = graph if isinstance(graph, bytes) else ray.get(graph[0])
            self._worker = Worker(task, text, config, self._post, start)
        except HealdError as error:
            self._fault = pack_error(error.at(device=task_name(task)))

    def call(self, *message: Any) -> Any:
        """Call a method of the worker: one method of the actor serves all."""
        method, *args = unpack_call(message)
        outcome = getattr(self._worker, method)(*args) if self._fault is None else [False, self._fault]
        result = pack_call(outcome, pieces=False)
        return result if len(result) > 1 else result[0]

    def ping(self) -> list[Any]:
        """Return [True, process id] or [False, the error of the start]."""
        return [True, os.getpid()] if self._fault is None else [False, self._fault]

    def _post(self, task: int, method: str, args: tuple[Any, ...]) -> Future[Any]:
        if task not in self._peers:
            self._peers[task] = self._ray.get_actor(_actor_name(self._cluster, task))
        return RayAnswer(self._peers[task].call.remote(*pack_call([method, *args])), task)


def _actor_name(cluster: str, task: int) -> str:
    return f"{cluster}{task_name(task)}"


class RayCluster(Cluster):
    """Starts an actor for each task. Raises the error of a worker's start, or Unavailable."""

    def __init__(self, parts: Mapping[int, bytes], config: str, most_steps: int) -> None:
        import ray

        self._ray, name = ray, uuid4().hex
        actor: Any = ray.remote(RayWorker)
        self._graphs = {task: part if len(part) <= LARGEST_ARGUMENT_BYTES else [ray.put(part)]
                        for task, part in parts.items()}
        self._actors: dict[int, Any] = {
            task: actor.options(name=_actor_name(name, task), max_restarts=-1, max_task_retries=0, num_cpus=0,
                                max_concurrency=most_steps + THREADS_BESIDE_STEPS).remote(name, task, part, config)
            for task, part in self._graphs.items()}
        try:
            outcomes = ray.get([worker.ping.remote() for worker in self._actors.values()], timeout=START_SECONDS)
        except Exception as error:  # noqa: BLE001 - Ray raises many types
            self.close()
            raise Unavailable(f"the workers did not start: {first_line(error)}") from None
        for succeeded, result in outcomes:
            if not succeeded:
                self.close()
                raise unpack_error(result)
        self.pids = [pid for _, pid in outcomes]

    def call(self, task: int, method: str, *args: Any) -> Future[Any]:
        """Call a method of a worker. The future has its result, or Unavailable where the worker died."""
        return RayAnswer(self._actors[task].call.remote(*pack_call([method, *args])), task)

    def wait(self, calls: Collection[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait until a call is done, for at most `seconds`. Return the calls that are done."""
        return wait_for_answers(calls, seconds)

    def close(self) -> None:
        """End all workers. A second call does nothing."""
        actors, self._actors, self._graphs = self._actors, {}, {}
        for worker in actors.values():
            self._ray.kill(worker)
