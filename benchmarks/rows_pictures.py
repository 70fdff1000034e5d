"""`heald run` over a folder of pictures: decoding alone, running alone, and both at once.

    python benchmarks/rows_pictures.py [--pictures N] [--sizes WxH[,WxH ...]] [--batch N] [--rounds R] [--device NAME]

The pictures are made by the script: JPEGs of smooth colours and noise. They run through MobileNetV2 with random
weights, 224x224. The three works take turns, and a work's time is its least over the rounds. The bound is the largest
of decoding alone, running alone, and the CPU seconds of both by the cores; the ratio is both at once over it. `CPU`
is the CPU seconds of both at once over the sum of each alone: threads that wait in a loop show there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import heald
import numpy as np
from heald_tools.rows.feed import feeds_of
from heald_tools.rows.input_rows import find_rows
from heald_tools.rows.predict import predict
from heald_tools.rows.preprocessing import PRESETS, Preprocessing
from heald_tools.rows.request import Model, Request
from PIL import Image
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from builders.mobilenet import mobilenet

SIDE = 224


class Cost(NamedTuple):
    """Seconds of the wall clock, and of all processors."""

    wall: float
    cpu: float


def make_pictures(folder: Path, count: int, width: int, height: int) -> None:
    """JPEGs of smooth colours with noise, which decode about as slowly as photographs."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:height, 0:width]
    noise = rng.normal(0, 12, (height, width, 3))
    for index in range(count):
        waves = np.stack([np.sin(rows / rng.uniform(9, 90)), np.cos(columns / rng.uniform(9, 90)),
                          np.sin((rows + columns) / rng.uniform(9, 90))], -1)
        pixels = (128 + 80 * waves + np.roll(noise, index, axis=0)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{index:05}.jpg", quality=90)


def request_for(folder: Path, model: Path, output: Path) -> Request:
    return Request(model, {"x": f"{folder}/"}, {}, str(output), "",
                   preprocessing=Preprocessing(numbers=PRESETS["tf"]))


def decode(model: Model, request: Request) -> None:
    rows = find_rows(model, request)
    for _ in feeds_of(rows.batches, rows.bindings):
        pass


def run(model: Model, count: int) -> None:
    batch = model.inputs["x"].shape[0]
    array = np.random.default_rng(0).random((batch, SIDE, SIDE, 3), np.float32)
    for _ in range(-(-count // batch)):
        model.step(array)


def cost_of(work: Callable[[], Any]) -> Cost:
    wall, cpu = perf_counter(), process_time()
    work()
    return Cost(perf_counter() - wall, process_time() - cpu)


def measure(works: Sequence[Callable[[], Any]], rounds: int) -> list[Cost]:
    """The least costs of works in turn."""
    costs = [[cost_of(work) for work in works] for _ in range(rounds)]
    return [Cost(min(cost.wall for cost in of_work), min(cost.cpu for cost in of_work))
            for of_work in zip(*costs, strict=True)]


def row_of(size: str, count: int, costs: Sequence[Cost]) -> list[Any]:
    decoding, running, both = costs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    by_cores = (decoding.cpu + running.cpu) / cores
    bound = max(decoding.wall, running.wall, by_cores)
    return [size, count, decoding.wall, running.wall, by_cores, both.wall, both.wall / bound,
            both.cpu / (decoding.cpu + running.cpu)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--sizes", default="224x224,1000x750")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", help="of heald.load")
    args = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = folder / "mobilenet.pb"
        heald.graphdef.dump(mobilenet(SIDE, batch=args.batch), graph)
        loaded: Any = heald.load(graph, device=args.device)
        step = loaded.session.make_callable(list(loaded.fetched.values()), loaded.fed)
        model = Model(loaded.inputs, tuple(loaded.outputs), step)
        run(model, 1)
        for size in args.sizes.split(","):
            width, height = map(int, size.split("x"))
            pictures = folder / size
            pictures.mkdir()
            make_pictures(pictures, args.pictures, width, height)
            request = request_for(pictures, graph, folder / "out.npz")
            works = [partial(decode, model, request), partial(run, model, args.pictures),
                     partial(predict, model, request)]
            table.append(row_of(size, args.pictures, measure(works, args.rounds)))
            print(tabulate(table, ["size", "pictures", "decode s", "run s", "CPU/cores s", "both s", "ratio", "CPU"],
                           floatfmt=".2f"), flush=True)


if __name__ == "__main__":
    main()
