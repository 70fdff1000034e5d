"""Two installations of heald against each other: eager ops in turn, and the 95 % interval of the median ratio.

    python benchmarks/eager.py --against PYTHON [--seconds 30]

PYTHON has the installation before a change; the one that runs the benchmark has it after. Each installation runs the
works in a process of its own, a turn each, and the order alternates. The interval is that of the median of the ratios
after/before, by bootstrap. An upper end of 1.04 or less says that a change costs nothing.

As a program this module is one such process: it reads names of works, and prints the seconds of a call.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic, perf_counter
from typing import Any

TURN_SECONDS = 0.02
FEWEST_PAIRS, MOST_PAIRS = 20, 400
SAMPLES = 1000  # of the bootstrap
NARROW = 0.02  # the width of an interval that needs no more pairs


def make_works() -> dict[str, Callable[[], Any]]:
    """The works by their rows in the table."""
    import heald
    import numpy as np

    execute, ops, ones = heald.execute, heald.ops, np.ones
    a, one = heald.TensorHandle(ones((2, 2), np.float32)), heald.TensorHandle(ones((), np.float32))
    add, matmul, relu, mul = ops.add_v2, ops.matmul, ops.relu, ops.mul

    def product_with_small_ops(side: int) -> Callable[[], Any]:
        square = heald.TensorHandle(ones((side, side), np.float32))

        def run() -> Any:
            y = matmul(square, square)
            for _ in range(10):
                y = add(y, one)
            return y.numpy()

        return run

    def element_wise_chain(count: int) -> Callable[[], Any]:
        x = heald.TensorHandle(ones(count, np.float32))

        def run() -> Any:
            y = mul(x, x)
            for _ in range(4):
                y = relu(add(mul(y, one), one))
            return y.numpy()

        return run

    return {
        "2x2 add, execute": lambda: execute("AddV2", a, a),
        "2x2 add, bound": lambda: add(a, a),
        "2x2 add, operator": lambda: a + a,
        "2x2 matmul, bound": lambda: matmul(a, a),
        "2x2 add of an array, execute": lambda: execute("AddV2", a, 1.5),
        "200 us product, ten small ops, read": product_with_small_ops(200),
        "long product, ten small ops, read": product_with_small_ops(900),
        "13 element-wise ops on 1M elements, read": element_wise_chain(1 << 20),
        "13 element-wise ops on 16M elements, read": element_wise_chain(1 << 24),
    }


class Installation:
    """A process that runs the works of one installation."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen([python, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        self.names: list[str] = json.loads(self._ask(None))

    def seconds(self, name: str) -> float:
        """The seconds of a call, over one turn."""
        return float(self._ask(name))

    def _ask(self, name: str | None) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if name is not None:
            self._process.stdin.write(f"{json.dumps(name)}\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args[0]} runs no eager ops")  # type: ignore[index]
        return line

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def median_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by bootstrap."""
    random = Random(0)  # noqa: S311 - a statistic is not secret
    medians = sorted(median(random.choices(ratios, k=len(ratios))) for _ in range(SAMPLES))
    return medians[round(0.025 * SAMPLES)], medians[round(0.975 * SAMPLES) - 1]


def measure_pairs(before: Installation, after: Installation, name: str, seconds: float) -> list[tuple[float, float]]:
    """Seconds of a work before and after, in pairs, until the interval is narrow or the time is over."""
    pairs: list[tuple[float, float]] = []
    end = monotonic() + seconds
    before.seconds(name), after.seconds(name)
    while len(pairs) < FEWEST_PAIRS or (len(pairs) < MOST_PAIRS and monotonic() < end):
        if len(pairs) % 2:
            earlier = before.seconds(name)
            pairs.append((earlier, after.seconds(name)))
        else:
            later = after.seconds(name)
            pairs.append((before.seconds(name), later))
        low, high = median_interval([y / x for x, y in pairs]) if len(pairs) % FEWEST_PAIRS == 0 else (0.0, 1.0)
        if high - low < NARROW:
            break
    return pairs


def compare_installations(python: str, seconds: float, names: Sequence[str] = ()) -> list[list[str]]:
    """A row for each work whose row contains one of the names: least times, median ratio, interval and pairs."""
    before, after = Installation(python), Installation(sys.executable)
    rows = []
    for name in after.names:
        if names and not any(part in name for part in names):
            continue
        pairs = measure_pairs(before, after, name, seconds)
        ratios = [y / x for x, y in pairs]
        low, high = median_interval(ratios)
        rows.append([name, f"{min(x for x, _ in pairs) * 1e6:.2f} us", f"{min(y for _, y in pairs) * 1e6:.2f} us",
                     f"{median(ratios):.3f}", f"{low:.3f} to {high:.3f}", str(len(pairs))])
    before.close()
    after.close()
    return rows


def serve_works() -> None:
    """Run the works that standard input names, one a line."""
    works = make_works()
    print(json.dumps([*works]), flush=True)
    for line in sys.stdin:
        work = works[json.loads(line)]
        work()
        calls, start = 0, perf_counter()
        while calls == 0 or perf_counter() - start < TURN_SECONDS:
            for _ in range(max(1, calls)):  # the clock is read a few times in a turn
                work()
            calls = 2 * calls or 1
        print((perf_counter() - start) / calls, flush=True)


if __name__ == "__main__":
    serve_works()
