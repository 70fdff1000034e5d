"""Typical uses of a session, as works that heald and TensorFlow run alike: the same GraphDef files, the same calls.

Needs NumPy alone. A client makes sessions and extends them; the methods `run`, `make_callable`, `partial_run_setup` and
`partial_run` of a session have the same names and arguments in heald and in tf.compat.v1.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from timing import seconds

X = np.full((2, 2), 0.5, np.float32)
LONG = 1000  # nodes of the long graph, in chains of CHAIN
CHAIN = 10
EXTENSIONS, ADDED = 60, 100  # graphs to extend by, and the nodes of each
ELEMENTS = 1000  # of a queue's batch
ALTERNATING = 20  # additions, of which each is on the other device than the one before it
LARGE, SMALL = (16, 4 << 20), (2000, 64)  # tensors of a checkpoint, float32 elements of each


class Client(Protocol):
    """A runtime."""

    def session(self, graph: Path, devices: int = 1) -> Any:
        """Return a session of a GraphDef, with so many CPU devices."""

    def act(self, session: Any, target: str) -> None:
        """Run a node for its effect."""

    def extend(self, session: Any, graph: Path) -> None:
        """Add the nodes of a GraphDef, which use none of the session's."""


class Opened(NamedTuple):
    """A work that is ready: the array that both runtimes must agree on, and a function that does the work for a while
    and returns the seconds of one time."""

    result: np.ndarray
    turn: Callable[[], float]


Work = Callable[[Client, Path], Opened]


def create(client: Client, folder: Path) -> Opened:
    def turn() -> float:
        start = perf_counter()
        session = client.session(folder / "long.pb")
        client.act(session, "start")
        took = perf_counter() - start
        session.close()
        return took

    session = client.session(folder / "long.pb")
    return Opened(session.run("sum:0", {"x:0": X}), turn)


def extend(client: Client, folder: Path) -> Opened:
    session = client.session(folder / "long.pb")
    client.act(session, "start")
    graphs = enumerate(sorted(folder.glob("more*.pb")))

    def turn() -> float:
        number, graph = next(graphs)
        start = perf_counter()
        client.extend(session, graph)
        client.act(session, f"more{number}/start")
        return perf_counter() - start

    turn()
    return Opened(session.run("more0/sum:0", {"more0/x:0": X}), turn)


def first_run(client: Client, folder: Path) -> Opened:
    session = client.session(folder / "long.pb")
    total = session.run("sum:0", {"x:0": X})
    fetches = (f"chain{i}/add{j}:0" for j in reversed(range(CHAIN)) for i in range(LONG // CHAIN))

    def turn() -> float:
        fetch = next(fetches)
        return seconds(lambda: session.run(fetch, {"x:0": X}), 1)

    return Opened(total, turn)


def run(graph: str, fetch: str, repeat: int, devices: int = 1) -> Work:
    def work(client: Client, folder: Path) -> Opened:
        session = client.session(folder / graph, devices)
        feeds = {"x:0": X}
        return Opened(session.run(fetch, feeds), lambda: seconds(lambda: session.run(fetch, feeds), repeat))

    return work


def callable_(graph: str, fetch: str, repeat: int, devices: int = 1) -> Work:
    def work(client: Client, folder: Path) -> Opened:
        step = client.session(folder / graph, devices).make_callable(fetch, ["x:0"])
        return Opened(step(X), lambda: seconds(lambda: step(X), repeat))

    return work


def partial_run(client: Client, folder: Path) -> Opened:
    session = client.session(folder / "partial.pb")

    def run_in_parts() -> np.ndarray:
        handle = session.partial_run_setup(["a:0", "b:0", "c:0"], ["x:0", "y:0", "z:0"])
        a = session.partial_run(handle, "a:0", {"x:0": X})
        b = session.partial_run(handle, "b:0", {"y:0": a})
        return np.asarray(session.partial_run(handle, "c:0", {"z:0": b}))

    return Opened(run_in_parts(), lambda: seconds(run_in_parts, 50))


def queue_of_one(client: Client, folder: Path) -> Opened:
    session = client.session(folder / "queue.pb")

    def both() -> np.ndarray:
        client.act(session, "enqueue")
        return np.asarray(session.run("dequeue:0"))

    return Opened(both(), lambda: seconds(both, 100))


def queue_of_many(client: Client, folder: Path) -> Opened:
    session = client.session(folder / "queue.pb")

    def both() -> np.ndarray:
        client.act(session, "enqueue_many")
        return np.asarray(session.run("dequeue_many:0"))

    return Opened(both(), lambda: seconds(both, 10) / ELEMENTS)


def counter(client: Client, folder: Path) -> Opened:
    session = client.session(folder / "counter.pb")
    client.act(session, "initialize")
    for _ in range(10):
        client.act(session, "increment")
    return Opened(session.run("value:0"), lambda: seconds(lambda: client.act(session, "increment"), 100))


def _checkpoint(client: Client, folder: Path, size: str) -> tuple[Any, Path]:
    session, written = client.session(folder / f"{size}.pb"), folder / size
    client.act(session, "initialize")
    shutil.rmtree(written, ignore_errors=True)
    written.mkdir()
    client.act(session, "save")
    client.act(session, "restore")
    return session, written


def write(size: str) -> Work:
    def work(client: Client, folder: Path) -> Opened:
        session, written = _checkpoint(client, folder, size)

        def turn() -> float:
            shutil.rmtree(written)
            written.mkdir()
            return seconds(lambda: client.act(session, "save"), 1)

        return Opened(session.run("value:0"), turn)

    return work


def read(size: str) -> Work:
    def work(client: Client, folder: Path) -> Opened:
        session, _ = _checkpoint(client, folder, size)
        return Opened(session.run("value:0"), lambda: seconds(lambda: client.act(session, "restore"), 1))

    return work


WORKS: dict[str, Work] = {
    f"create, {LONG:,} nodes, run one": create,
    f"extend by {ADDED} nodes, run one": extend,
    f"first run of a fetch, {LONG:,} nodes": first_run,
    "run, 10 nodes": run("short.pb", "sum:0", 300),
    f"run, {LONG:,} nodes": run("long.pb", "sum:0", 20),
    "make_callable, 10 nodes": callable_("short.pb", "sum:0", 300),
    "partial run in three calls": partial_run,
    f"{ALTERNATING} additions, two devices in turn": callable_("devices.pb", "sum:0", 100, devices=2),
    "enqueue and dequeue one element": queue_of_one,
    f"the same, {ELEMENTS:,} at once, of each": queue_of_many,
    "add 1 to a variable": counter,
    "write a checkpoint, 256 MiB": write("large"),
    "read it": read("large"),
    "write a checkpoint, 2,000 small tensors": write("small"),
    "read it again": read("small"),
}
BYTES = {"write a checkpoint, 256 MiB": 4 * LARGE[0] * LARGE[1], "read it": 4 * LARGE[0] * LARGE[1]}
