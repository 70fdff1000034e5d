"""The time from a cancellation at a random point, or from a deadline, to the end of the run.

    python benchmarks/cancellation.py [--folder DIR] [--runs 200]

`DIR` has resnet50.pb and mobilenetv2.pb, as benchmarks/networks.py makes them; a missing network is left out. Another
thread cancels the token after a random part of a run's time. A cancellation took effect if the run raised and, by its
trace, no kernel began after `cancel` had returned. `behind` is the time from the end of the kernel that was running at
the cancellation until the run raised. A deadline of a third of a run's time (10 ms at most) is measured likewise. Runs
`without trace` take the flat path that tests nothing per call; their time counts from the cancellation.
"""

from __future__ import annotations

import argparse
import random
import threading
from pathlib import Path
from statistics import median
from time import perf_counter_ns, sleep
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.errors import Cancelled, DeadlineExceeded
from tabulate import tabulate
from tqdm import tqdm

ROOT = Path(__file__).parent.parent
MS = 1e6  # ns
CLOCKS_APART = 500_000  # ns, at most, that a step's own clock begins after this program's


class Case(NamedTuple):
    name: str
    file: Path
    batch: int


class Ended(NamedTuple):
    """The end of a stopped run.

    `raised`: True for the right error; `late`: kernels that began after the cancellation; `behind`: ns from the end of
    the kernel that was running then.
    """

    raised: bool
    late: int
    behind: float


def run(model: heald.Model, x: Any, options: heald.RunOptions) -> tuple[Exception | None, int, list[Any]]:
    """The exception of a run, the time of its end in ns, and the events of its trace."""
    metadata, (feed,) = heald.RunMetadata(), model.fed.values()
    error: Exception | None = None
    try:
        model.session.run(list(model.fetched.values()), {feed: x}, options=options, metadata=metadata)
    except (Cancelled, DeadlineExceeded) as caught:
        error = caught
    return error, perf_counter_ns(), [] if metadata.trace is None else metadata.trace.events


def cancel_run(model: heald.Model, x: Any, delay: float, *, trace: bool) -> Ended | None:
    """The end of a run that another thread cancels after `delay` seconds; None if the run had ended before."""
    token, cancel_times = heald.CancelToken(), []

    def cancel() -> None:
        sleep(delay)
        token.cancel()
        cancel_times.append(perf_counter_ns())

    thread = threading.Thread(target=cancel)
    thread.start()
    error, over, events = run(model, x, heald.RunOptions(cancel=token, trace=trace))
    thread.join()
    if error is None and over < cancel_times[0]:
        return None
    return end_of_run(error, Cancelled, cancel_times[0], over, events)


def end_of_run(error: Exception | None, kind: type[Exception], cancel_time: int, over: int, events: list[Any]) -> Ended:
    last = max((event.end_ns for event in events if event.start_ns <= cancel_time), default=cancel_time)
    return Ended(isinstance(error, kind), sum(event.start_ns > cancel_time for event in events),
                 over - max(last, cancel_time))


def row(what: str, case: Case, run_seconds: float, endings: list[Ended]) -> list[object]:
    right = sum(e.raised and not e.late for e in endings)
    behind = sorted(e.behind / MS for e in endings)
    return [f"{case.name}, batch {case.batch}", what, f"{run_seconds * 1e3:.3g}", f"{right} of {len(endings)}",
            f"{median(behind):.3f}", f"{behind[int(len(behind) * 0.99)]:.3f}", f"{behind[-1]:.3f}"]


def measure(case: Case, runs: int, rng: random.Random) -> list[list[object]]:
    model = heald.load(case.file)
    (meta,) = model.inputs.values()
    shape = (case.batch, *(d or 1 for d in (meta.shape or ())[1:]))
    x = np.random.default_rng(1).random(shape, np.float32).astype(meta.dtype.numpy)
    times = []
    for _ in range(20):
        start = perf_counter_ns()
        model(x)
        times.append(perf_counter_ns() - start)
    run_seconds = median(times[10:]) / 1e9
    rows = []
    for what, trace in (("cancelled", True), ("cancelled, without trace", False)):
        endings: list[Ended] = []
        with tqdm(total=runs, desc=f"{case.name} {what}", leave=False) as bar:
            while len(endings) < runs:
                one = cancel_run(model, x, rng.random() * run_seconds * 0.95, trace=trace)
                if one is not None:
                    endings.append(one)
                    bar.update()
        rows.append(row(what, case, run_seconds, endings))
    timeout = min(0.01, run_seconds / 3)
    endings = []
    for _ in range(runs):
        start = perf_counter_ns()
        error, over, events = run(model, x, heald.RunOptions(timeout=timeout, trace=True))
        endings.append(end_of_run(error, DeadlineExceeded, start + int(timeout * 1e9) + CLOCKS_APART, over, events))
    rows.append(row(f"deadline of {timeout * 1e3:.2g} ms", case, run_seconds, endings))
    model.session.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "networks")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    cases = [Case("ResNet50", args.folder / "resnet50.pb", 16), Case("MobileNetV2", args.folder / "mobilenetv2.pb", 1),
             Case("digits", ROOT / "examples" / "digits" / "frozen.pb", 540)]
    rng = random.Random(args.seed)  # noqa: S311 - no secrets
    rows = [r for case in cases if case.file.exists() for r in measure(case, args.runs, rng)]
    print(tabulate(rows, ["network", "", "ms a run", "took effect", "behind ms: median", "p99", "most"],
                   disable_numparse=True))


if __name__ == "__main__":
    main()
