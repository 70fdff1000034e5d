"""Steps of a session over workers of Ray, against plain actor calls of the same number, sizes and order.

    python benchmarks/ray_sessions.py [--pairs N] [--large-pairs N] [--only TEXT]

A step between two workers is a call to each, and a call for each tensor that one sends to the other. The peer makes the
same calls between two actors, which send NumPy arrays as arguments, and wait for each other as workers do. A worker and
an actor keep the tensor that they send. The fetched result is one element.

Rows with "by reference" have a peer of fewer calls: the result of one actor's call is an argument of the other's.

A pair is a turn of each, and the order alternates. Times are medians of a step. The interval is that of the median of
the ratios heald/Ray, by bootstrap. The cluster starts on this machine, and ends with the benchmark.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from queue import SimpleQueue
from statistics import median
from typing import Any, NamedTuple

import heald
import numpy as np
from eager_pairs import median_interval
from heald.api import Graph, Node, constant
from heald_ray.connection import open_connection
from tabulate import tabulate
from timing import seconds

Step = Callable[[], Any]
HEADERS = ["step", "calls", "heald", "Ray", "heald/Ray", "95 %"]
WORKERS = [f"/job:worker/task:{task}" for task in range(2)]  # of a session, by default
SIZES = {"1 kB": 250, "500 kB": 125_000, "1 MB": 250_000, "100 MB": 25_000_000}  # elements of four bytes
CALLS_OF_TURN = {"1 kB": 20, "500 kB": 10, "1 MB": 10, "100 MB": 1}
WARM_UP_TURNS = 3
THREADS_OF_ACTOR = 10


class Comparison(NamedTuple):
    """A step of heald and its peer. `calls`: of actors in each of them; `turn`: the steps of a turn."""

    name: str
    calls: str
    heald: Step
    ray: Step
    turn: int


class Exchange:
    """An actor that sends its array to another, as its orders say."""

    def __init__(self, elements: int) -> None:
        import ray

        self._ray = ray
        self._array = np.zeros(elements, np.float32)
        self._arrived: SimpleQueue[Any] = SimpleQueue()

    def meet(self, other: Any) -> None:
        self._other = other

    def deliver(self, array: Any) -> None:
        self._arrived.put(array)

    def echo(self, array: Any) -> Any:
        return array

    def produce(self) -> Any:
        return self._array

    def head(self, array: Any) -> Any:
        return array[:1].copy()

    def step(self, orders: str) -> Any:
        """Send and receive in the order of the letters "s" and "r", and return an element of the last array."""
        answers, array = [], None
        for order in orders:
            if order == "s":
                answers.append(self._other.deliver.remote(self._array if array is None else array))
            else:
                array = self._arrived.get()
        self._ray.get(answers)
        return None if array is None else self.head(array)


def exchange_graph(elements: int) -> Graph:
    """A graph whose worker 0 keeps a constant, which worker 1 needs for "there", and sends back for "back"."""
    attrs = {"T": "float32", "Index": "int32"}
    first, second = WORKERS
    return Graph([
        constant("zero", np.array([0], np.int32)), constant("one", np.array([1], np.int32)),
        constant("tensor", np.ones(elements, np.float32)).replace(device=first),
        Node("there", "Slice", ["tensor", "zero", "one"], attrs=attrs, device=second),
        Node("returned", "Identity", ["tensor"], attrs={"T": "float32"}, device=second),
        Node("back", "Slice", ["returned", "zero", "one"], attrs=attrs, device=first),
    ])


def call_graph() -> Graph:
    """A graph with an identity of a feed on each worker."""
    typed = {"T": "float32"}
    return Graph([node for task, device in enumerate(WORKERS) for node in (
        Node(f"x{task}", "Placeholder", attrs={"dtype": "float32", "shape": (250,)}, device=device),
        Node(f"y{task}", "Identity", [f"x{task}"], attrs=typed, device=device))])


@contextmanager
def open_actors(elements: int) -> Iterator[list[Any]]:
    """Yield two actors that know each other."""
    import ray

    kind: Any = ray.remote(Exchange).options(num_cpus=0, max_concurrency=THREADS_OF_ACTOR)
    actors = [kind.remote(elements) for _ in WORKERS]
    try:
        ray.get([actor.meet.remote(other) for actor, other in zip(actors, actors[::-1], strict=True)])
        yield actors
    finally:
        for actor in actors:
            ray.kill(actor)


@contextmanager
def compare_calls() -> Iterator[list[Comparison]]:
    """Yield steps that feed and fetch 1 kB on each of their workers, which send nothing to each other."""
    import ray

    with heald.Session(call_graph(), target="ray") as session, open_actors(1) as actors:
        array = np.zeros(250, np.float32)
        one, two = session.make_callable("y0", ["x0"]), session.make_callable(["y0", "y1"], ["x0", "x1"])
        yield [Comparison("one worker, no message", "1", partial(one, array),
                          lambda: ray.get(actors[0].echo.remote(array)), 20),
               Comparison("two workers, no message", "2", partial(two, array, array),
                          lambda: ray.get([actor.echo.remote(array) for actor in actors]), 20)]


@contextmanager
def compare_exchanges(size: str) -> Iterator[list[Comparison]]:
    """Yield steps that send a tensor of this size from one worker to the other, and back."""
    import ray

    elements, turn = SIZES[size], CALLS_OF_TURN[size]
    with heald.Session(exchange_graph(elements), target="ray") as session, open_actors(elements) as actors:
        first, second = actors
        there, back = session.make_callable("there"), session.make_callable("back")
        yield [
            Comparison(f"{size} there", "3", there,
                       lambda: ray.get([first.step.remote("s"), second.step.remote("r")])[1], turn),
            Comparison(f"{size} there, by reference", "3, 2", there,
                       lambda: ray.get(second.head.remote(first.produce.remote())), turn),
            Comparison(f"{size} there and back", "4", back,
                       lambda: ray.get([first.step.remote("sr"), second.step.remote("rs")])[0], turn)]


def measure(comparison: Comparison, pairs: int) -> list[str]:
    """Return the row of a comparison."""
    for _ in range(WARM_UP_TURNS):
        seconds(comparison.heald, comparison.turn)
        seconds(comparison.ray, comparison.turn)
    ours, theirs = [], []
    for pair in range(pairs):
        for work, times in ((comparison.heald, ours), (comparison.ray, theirs))[::-1 if pair % 2 else 1]:
            times.append(seconds(work, comparison.turn))
    ratios = [x / y for x, y in zip(ours, theirs, strict=True)]
    low, high = median_interval(ratios)
    return [comparison.name, comparison.calls, f"{median(ours) * 1e3:.2f} ms", f"{median(theirs) * 1e3:.2f} ms",
            f"{median(ratios):.2f}", f"{low:.2f} to {high:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=50, metavar="N", help="50")
    parser.add_argument("--large-pairs", type=int, default=20, metavar="N", help="of 100 MB: 20")
    parser.add_argument("--only", default="", metavar="TEXT", help="steps whose name has this text")
    options = parser.parse_args()
    rows = []
    with open_connection(cpus=len(WORKERS)):
        for group in (compare_calls(), *(compare_exchanges(size) for size in SIZES)):
            with ExitStack() as stack:
                for comparison in stack.enter_context(group):
                    if options.only in comparison.name:
                        is_large = comparison.name.startswith("100 MB")
                        rows.append(measure(comparison, options.large_pairs if is_large else options.pairs))
    print(tabulate(rows, HEADERS, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
