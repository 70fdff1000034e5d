"""Images per second of a network by one process, by one actor of Ray and by two.

    python benchmarks/ray_data.py mobilenetv2.pb [--rounds N] [--images N] [--batch N]

`heald run --engine ray` has such actors: Ray gives each one CPU, and sets OMP_NUM_THREADS=1. So the peer of an
actor is a process of one thread. A process of two threads has the same cores as two actors. Batches of random pixels
travel to the actors as NumPy arrays, and the outputs travel back; a process has its batches itself.

The works take turns, and a round has one turn of each. Rates are medians over the rounds. Ratios are medians of the
ratios of one round, with their 95 % interval by bootstrap.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import heald
import numpy as np
from eager_pairs import median_interval
from heald_ray.connection import open_connection
from heald_ray.predictor import model_arguments
from heald_ray.run_engine import BATCHES_PER_ACTOR, BatchRunner, BatchStep
from tabulate import tabulate

ACTORS = 2
HEADERS = ["work", "images/s", "against", "ratio", "95 %"]
PEERS = {"one actor": "one process, one thread", "two actors": "one actor"}  # beside the process of two threads
Work = Callable[[], float]  # the seconds of one turn


def make_batch(model: Any, batch: int) -> Any:
    """Return random pixels for the only input of a model."""
    (meta,) = model.inputs.values()
    return np.random.default_rng(0).random((meta.shape[0] or batch, *meta.shape[1:]), np.float32)


def run_turns(connection: Any, path: Path, batch: int, images: int) -> None:
    """The process of one work: each message is the start of a turn, and the answer is its seconds."""
    model: Any = heald.load(path)
    array = make_batch(model, batch)
    connection.send(len(array))
    while connection.recv():
        start = perf_counter()
        for _ in range(images // len(array)):
            model(array)
        connection.send(perf_counter() - start)


@contextmanager
def open_process(path: Path, batch: int, images: int, threads: int) -> Iterator[Work]:
    """Yield the work of a process of its own with so many threads."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    process = context.Process(target=run_turns, args=(theirs, path, batch, images), daemon=True)
    process.start()
    del os.environ["OMP_NUM_THREADS"]
    theirs.close()
    ours.recv()

    def work() -> float:
        ours.send(True)
        return float(ours.recv())

    try:
        yield work
    finally:
        ours.send(False)
        process.join()


@contextmanager
def open_actors(path: Path) -> Iterator[list[Any]]:
    """Yield actors that have loaded the model."""
    import ray

    with open_connection(cpus=ACTORS):
        kind: Any = ray.remote(BatchRunner).options(num_cpus=1)
        actors = [kind.remote() for _ in range(ACTORS)]
        ray.get([actor.load.remote(model_arguments(path)) for actor in actors])
        yield actors


def run_on_actors(actors: Sequence[Any], array: Any, images: int) -> float:
    """Run the batches on the actors, two under way for each, and return the seconds."""
    step = BatchStep(actors)
    with ThreadPoolExecutor(BATCHES_PER_ACTOR * len(actors)) as threads:
        start = perf_counter()
        for outputs in [threads.submit(step, array) for _ in range(images // len(array))]:
            outputs.result()
        return perf_counter() - start


def rows_of(times: dict[str, list[float]], images: int) -> list[list[str]]:
    """Return a row for each work, and one more for its second peer."""
    rows = []
    for name, of_work in times.items():
        rate = f"{images / median(of_work):.1f}"
        for peer in filter(None, [PEERS.get(name, ""), "one process, two threads"]):
            if peer != name:
                ratios = [theirs / ours for ours, theirs in zip(of_work, times[peer], strict=True)]
                low, high = median_interval(ratios)
                rows.append([name, rate, peer, f"{median(ratios):.2f}", f"{low:.2f} to {high:.2f}"])
            elif name not in PEERS:
                rows.append([name, rate, "", "", ""])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="10")
    parser.add_argument("--images", type=int, default=128, metavar="N", help="of a turn: 128")
    parser.add_argument("--batch", type=int, default=8, metavar="N", help="8")
    options = parser.parse_args()
    path = options.model.resolve()
    array = make_batch(heald.load(path), options.batch)
    images = options.images // len(array) * len(array)
    open_one = partial(open_process, path, options.batch, images)
    with open_one(1) as one_thread, open_one(2) as two_threads, open_actors(path) as actors:
        works: dict[str, Work] = {
            "one process, one thread": one_thread, "one process, two threads": two_threads,
            "one actor": lambda: run_on_actors(actors[:1], array, images),
            "two actors": lambda: run_on_actors(actors, array, images)}
        for work in works.values():
            work()
        rounds = [[work() for work in works.values()] for _ in range(options.rounds)]
    times = {name: [*of_work] for name, of_work in zip(works, zip(*rounds, strict=True), strict=True)}
    print(tabulate(rows_of(times, images), HEADERS, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
