"""A step's cost for 1 to 1,000 workers by simulation, and the simulation's error against workers of Ray.

    python benchmarks/ray_simulation.py [--constants FILE.json] [--rounds N] [--seed N] [--skip-cluster]

1. Micro-measurements fix three constants, which go to FILE.json (`ray_constants.py`). A FILE that exists is read.
2. Steps of one and two workers are measured on Ray, and simulated with these constants.
3. `step_simulation.py` simulates steps of 1 to 1,000 workers, with stragglers, and runs with failures.

Random numbers depend on --seed alone. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from math import inf, isinf
from pathlib import Path
from statistics import mean, median

import heald
from heald_ray.connection import open_connection
from ray_constants import Measurements, call_graph, make_step, measure_constants
from ray_sessions import SIZES, exchange_graph
from step_simulation import PATTERNS, Constants, Failures, simulate_run, simulate_step, simulate_steps
from tabulate import tabulate
from timing import in_turn

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
WHOLE_WORKS = (0.1, 1.0, 10.0, 100.0)  # seconds of a step in one worker, which W workers share
SPREAD = 0.1  # the mean delay of a part, as a share of its seconds
SAMPLES = 20  # steps with stragglers, of which a figure is the mean
TENSOR_BYTES = 1e6
HOUR = 3600.0
FAILURES = Failures(life=30 * 24 * HOUR, restart=60.0, save=10.0, interval=600)
RUN_STEPS, RUN_SECONDS = 20_000, 1.0  # of a run with failures: the steps, and the work of each worker in a step
RATE_OF_CHECK = 10  # calls of a turn on the cluster


def print_table(title: str, headers: list[str], rows: list[list[str]]) -> None:
    print(f"\n{title}\n\n{tabulate(rows, headers, tablefmt='github', disable_numparse=True)}", flush=True)


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def read_or_measure(path: Path | None, rounds: int) -> Measurements:
    """Return the constants of a file, or measure them and write the file."""
    if path is not None and path.exists():
        values = json.loads(path.read_text("utf-8"))
        return Measurements(Constants(values["message"], values["byte"], values["barrier"]), values["work"])
    with open_connection(cpus=2):
        measured = measure_constants(rounds)
    if path is not None:
        path.write_text(json.dumps({**measured.constants._asdict(), "work": measured.work}, indent=1) + "\n", "utf-8")
    return measured


def check_cluster(measured: Measurements, rounds: int) -> Iterator[list[str]]:
    """Yield rows of steps on Ray, each with the simulation's time and error."""
    constants, work = measured
    with open_connection(cpus=2), heald.Session(call_graph(2), target="ray") as calls, \
                heald.Session(exchange_graph(SIZES["1 MB"]), target="ray") as exchange:
        steps = [make_step(calls, 1), make_step(calls, 2), exchange.make_callable("there")]
        times = in_turn(steps, [RATE_OF_CHECK] * len(steps), rounds)
    cases: list[tuple[str, str, int, float]] = [
        ("one worker", "no messages", 1, 0), ("two workers", "no messages", 2, 0),
        ("two workers, 1 MB from one to the other", "chain", 2, TENSOR_BYTES)]
    for (name, pattern, workers, tensor_bytes), of_step in zip(cases, times, strict=True):
        parts = [work / workers] * workers if pattern == "chain" else [work] * workers
        simulated = simulate_step(constants, PATTERNS[pattern](workers), parts, tensor_bytes)
        yield [name, duration(median(of_step)), duration(simulated), f"{simulated / median(of_step) - 1:+.0%}"]


def rows_of_patterns(measured: Measurements) -> Iterator[list[str]]:
    """Yield the cost of a step beside its work, for each number of workers."""
    for workers in WORKERS:
        times = [simulate_step(measured.constants, links(workers), [measured.work] * workers, size)
                 for links in PATTERNS.values() for size in (1e3, TENSOR_BYTES)]
        yield [f"{workers:,}", *(duration(time) for time in (times[0], *times[2:]))]


def mean_step(constants: Constants, workers: int, seconds: float, seed: int) -> float:
    """Return the mean seconds of a step with stragglers, whose workers share work of `seconds`."""
    steps = simulate_steps(constants, "no messages", workers, seconds / workers, spread=SPREAD, seed=seed)
    return mean(islice(steps, SAMPLES))


def rows_of_speed(constants: Constants, seed: int) -> Iterator[list[str]]:
    """Yield the speed of W workers against one, for several amounts of work."""
    alone = {seconds: mean_step(constants, 1, seconds, seed) for seconds in WHOLE_WORKS}
    for workers in WORKERS:
        speeds = [alone[seconds] / mean_step(constants, workers, seconds, seed) for seconds in WHOLE_WORKS]
        yield [f"{workers:,}", *(f"{speed:.1f}" for speed in speeds)]


def best_workers(constants: Constants, seconds: float, seed: int) -> tuple[int, int]:
    """Return the number of workers with the shortest step, and the largest that is half as fast as it could be."""
    counts = [round(10 ** (power / 16)) for power in range(16 * 3 + 1)]
    times = {workers: mean_step(constants, workers, seconds, seed) for workers in counts}
    efficient = [workers for workers in counts if times[1] / times[workers] >= workers / 2]
    return min(times, key=times.__getitem__), max(efficient)


def rows_of_failures(constants: Constants, seed: int) -> Iterator[list[str]]:
    """Yield the share of useful time of a run, for each number of workers."""
    for workers in WORKERS:
        mean_seconds = mean_step(constants, workers, RUN_SECONDS * workers, seed)
        row = [f"{workers:,}", f"{mean_seconds:.3f} s"]
        for interval in (60, 600, 6000):
            failures = FAILURES._replace(interval=interval)
            time = simulate_run(iter(lambda: mean_seconds, inf), RUN_STEPS, workers, failures, seed)  # noqa: B023
            row.append("no progress" if isinf(time) else f"{RUN_STEPS * RUN_SECONDS / time:.0%}")
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--constants", type=Path, metavar="FILE.json", help="written, or read where it exists")
    parser.add_argument("--rounds", type=int, default=40, metavar="N", help="of measurements in turn: 40")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="0")
    parser.add_argument("--skip-cluster", action="store_true", help="no steps on Ray")
    options = parser.parse_args()
    measured = read_or_measure(options.constants, options.rounds)
    constants = measured.constants
    print_table("Constants", ["message", "byte", "barrier", "work of an empty step"], [[
        f"{constants.message * 1e6:.0f} us", f"{constants.byte * 1e9:.3f} ns", f"{constants.barrier * 1e6:.0f} us",
        f"{measured.work * 1e6:.0f} us"]])
    if not options.skip_cluster:
        print_table("Steps on Ray", ["step", "Ray", "simulation", "error"], [*check_cluster(measured, options.rounds)])
    sizes = [f"{pattern}, {size}" for pattern in [*PATTERNS][1:] for size in ("1 kB", "1 MB")]
    print_table("Step without work", ["workers", "no messages", *sizes], [*rows_of_patterns(measured)])
    works = [f"{seconds:g} s" for seconds in WHOLE_WORKS]
    print_table("Speed against one worker", ["workers", *works], [*rows_of_speed(constants, options.seed)])
    ends = [best_workers(constants, seconds, options.seed) for seconds in WHOLE_WORKS]
    print_table("End of scaling", ["workers", *works], [
        ["at the shortest step", *(f"{best:,}" for best, _ in ends)],
        ["at half of the ideal speed", *(f"{efficient:,}" for _, efficient in ends)]])
    print_table("Useful time with failures", ["workers", "step", *(f"saved each {n:,} steps" for n in (60, 600, 6000))],
                [*rows_of_failures(constants, options.seed)])


if __name__ == "__main__":
    main()
