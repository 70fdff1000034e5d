"""The cost of heald beside the kernels: one node, chains of 2x2 additions, alternating batch sizes, start-up.

    python benchmarks/overhead.py

`event-driven`: the additions wait for a kernel that is declared asynchronous, though it completes at once.

Every figure is the median over interleaved pairs, as a ratio against plain NumPy or against the same work of heald in
the same run. Two CPU-bound processes on the machine are enough to spoil absolute times; the ratios suffer less.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import heald
import numpy as np
from chains import heald_chain, numpy_chain
from heald.api import KernelPackRegistrar, Kernels, OpRegistrar, OpSpec, available, hookimpl
from tabulate import tabulate
from timing import time_pairs

HEALD_API = (1, 0)
DIGITS = Path(__file__).parent.parent / "examples" / "digits"


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
    registry.add(OpSpec("Bench>Now", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"], metadata=lambda _, x: x))


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.kernels("CPU", register)


def register(kernels: Kernels) -> None:
    kernels.kernel("Bench>Now", asynchronous=True)(lambda _: available)


def additions(length: int, behind: str | None = None) -> list[object]:
    step, bare = heald_chain(length, behind), numpy_chain(length)
    assert np.array_equal(step(), bare())
    ours, numpy, ratio = time_pairs(step, bare, max(20_000 // length, 5) if behind is None else 1)
    what = f"{length:,} chained 2x2 additions" + ("" if behind is None else ", event-driven")
    return [what, f"{ours * 1e6:.2f} us", f"{numpy * 1e6:.2f} us", f"{ratio:.2f}", f"{(ours - numpy) * 1e6:+.2f} us"]


def alternating_batches() -> list[object]:
    """Runs that switch between batch 1 and 7, against the same runs without switching."""
    model = heald.load(DIGITS / "frozen.pb", outputs=["logits"], device="CPU:0")
    images = np.load(DIGITS / "test.npz")["image"]
    one, seven = images[:1].copy(), images[:7].copy()
    model(one), model(seven)

    def switching() -> None:
        for _ in range(10):
            model(one)
            model(seven)

    def apart() -> None:
        for _ in range(10):
            model(one)
        for _ in range(10):
            model(seven)

    a, b, ratio = time_pairs(switching, apart, 5)
    return ["digits, batch 1 and 7 in turn / apart", f"{a * 1e6:.0f} us", f"{b * 1e6:.0f} us", f"{ratio:.2f}", ""]


def start_up(code: str, against: str) -> list[object]:
    """A fresh interpreter that runs `code`, against one that runs `against`."""
    def run(text: str) -> float:
        start = perf_counter()
        subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL)
        return perf_counter() - start

    pairs = [(run(code), run(against)) for _ in range(15)]
    a, b = median(x for x, _ in pairs), median(y for _, y in pairs)
    return [f"start: {code[:40]}", f"{a * 1e3:.0f} ms", f"{b * 1e3:.0f} ms", f"{median(x / y for x, y in pairs):.2f}",
            f"{(a - b) * 1e3:+.0f} ms"]


def main() -> None:
    heald.register(sys.modules[__name__])
    rows = [additions(n) for n in (1, 100, 1000, 10_000)]
    rows += [additions(n, "Bench>Now") for n in (1000, 10_000)]
    rows.append(alternating_batches())
    rows.append(start_up("import heald", "pass"))
    rows.append(start_up("import heald.cli; heald.cli.main(['--version'])", "pass"))
    print(tabulate(rows, headers=["work", "heald", "against", "ratio", "difference"], disable_numparse=True))
    print("\nagainst: the same NumPy calls in a bare loop; the same runs without switching; an empty interpreter")


if __name__ == "__main__":
    main()
