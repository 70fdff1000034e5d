"""The constants of `step_simulation.py`, by measurements that run no step over the cluster.

`message` and `byte` are of calls of an actor. `barrier` is the sum of two parts: Ray's for a call that is sent and an
answer that is there, and that of the session's own code, over workers that answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from heald.api import Graph, Node
from heald_ray.call_message import pack_call
from heald_ray.cluster import Cluster
from heald_ray.ray_answer import RayAnswer, wait_for_answers
from heald_ray.session import ClusterSession
from heald_ray.tensor_message import pack_tensors
from heald_ray.worker import Worker
from step_simulation import Constants
from timing import seconds

ELEMENTS = 250  # of a feed: 1 kB
CALLS_OF_TURN = 5
MANY = 8  # workers, or calls
THREADS = 72  # of an actor, as of a worker of a session with its default of steps in flight
ARRAY = np.zeros(ELEMENTS, np.float32)
LARGE = np.zeros(250_000, np.float32)  # 1 MB: `byte` is that of tensors of this size


class Measurements(NamedTuple):
    """`work`: the seconds of heald's own code in a step of one worker, without any call."""

    constants: Constants
    work: float


class Sink:
    """An actor that takes a call and answers with its first value."""

    def take(self, first: bytes, *_: bytes) -> bytes:
        return first


class LocalWorkers(Cluster):
    """Workers in this process, which run their part within the call."""

    def __init__(self, parts: Mapping[int, bytes], config: bytes) -> None:
        self._workers = {task: Worker(task, part, config, lambda *_: Future()) for task, part in parts.items()}

    def call(self, task: int, method: str, *args: Any) -> Future[Any]:
        call: Future[Any] = Future()
        if method == "run":  # any other call has no end
            call.set_result(self.answer(task, args))
        return call

    def answer(self, task: int, args: Sequence[Any]) -> Any:
        return self._workers[task].run(*args)

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


class AnsweringWorkers(LocalWorkers):
    """Workers that give a recorded answer, and run nothing."""

    def answer(self, task: int, args: Sequence[Any]) -> Any:  # noqa: ARG002 - as in the class above
        return [True, pack_tensors([ARRAY])]


def call_graph(workers: int) -> Graph:
    """A graph with an identity of a feed on each worker."""
    return Graph([node for task in range(workers) for node in (
        Node(f"x{task}", "Placeholder", attrs={"dtype": "float32", "shape": (ELEMENTS,)},
             device=f"/job:worker/task:{task}"),
        Node(f"y{task}", "Identity", [f"x{task}"], attrs={"T": "float32"}, device=f"/job:worker/task:{task}"))])


def make_step(session: Any, workers: int) -> Callable[[], Any]:
    """Return the step that feeds and fetches 1 kB on each of the first workers of a session with `call_graph`."""
    run = session.make_callable([f"y{task}" for task in range(workers)], [f"x{task}" for task in range(workers)])
    return lambda: run(*[ARRAY] * workers)


def measure_constants(rounds: int) -> Measurements:
    """Measure on the connected cluster. Each figure is a median over rounds in which the measurements take turns."""
    import ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers find no module beside this one
    actor: Any = ray.remote(Sink).options(num_cpus=0, max_concurrency=THREADS).remote()
    local, one, many = (ClusterSession(call_graph(workers), kind, workers) for kind, workers in (
        (LocalWorkers, 1), (AnsweringWorkers, 1), (AnsweringWorkers, MANY)))
    works = {"call": lambda: finish([send(actor, ARRAY)]), "large call": lambda: finish([send(actor, LARGE)]),
             "local": make_step(local, 1), "one": make_step(one, 1), "many": make_step(many, MANY)}
    times: dict[str, list[float]] = {name: [] for name in (*works, "ends")}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work, CALLS_OF_TURN))
        times["ends"].append(seconds_of_ends(actor))
    ray.kill(actor)
    for session in (local, one, many):
        session.close()
    return _constants({name: median(of_work) for name, of_work in times.items()})


def send(actor: Any, array: Any) -> RayAnswer:
    """Send a call with an array, as a session does."""
    return RayAnswer(actor.take.remote(*pack_call(["run", pack_tensors([array])])), 0)


def finish(calls: Sequence[RayAnswer]) -> None:
    """Wait for answers and take them, as a session does."""
    left = set(calls)
    while left:
        left -= wait_for_answers(left, None)


def seconds_of_ends(actor: Any) -> float:
    """Return the seconds that this process pays for a call: for sending it, and for an answer that is there."""
    import ray

    calls: list[Any] = []
    sending = seconds(lambda: calls.append(send(actor, ARRAY)), MANY)
    ray.wait([call.answer_ref for call in calls], num_returns=MANY)
    return sending + seconds(lambda: finish(calls), 1) / MANY


def _constants(medians: Mapping[str, float]) -> Measurements:
    of_session = (medians["many"] - medians["one"]) / (MANY - 1)
    message = (medians["call"] - medians["ends"]) / 2
    byte = (medians["large call"] - medians["call"]) / LARGE.nbytes
    return Measurements(Constants(message, byte, medians["ends"] + of_session), medians["local"] - of_session)
