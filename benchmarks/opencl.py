"""What OPENCL:0 costs beside NumPy: a launch, a copy, an array that it reads where it is, a small run.

    python benchmarks/opencl.py     (make opencl-cpu prints the environment for PoCL)

`launch`: an AddV2 of 256 elements, enqueued 100 times and then waited for. `run`: a session's whole step of n such.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import weft
from tabulate import tabulate
from weft import dtypes
from weft.attr_value import ShapeAttr
from weft.graph import Graph, Node
from weft.running.attached import STREAM
from weft.runtime import runtime

COUNT = 256
LAUNCHES = 100
SIZES = (4 << 10, 1 << 20, 64 << 20)
SOURCE = """kernel void add(global const float *x, global const float *y, global float *out, const ulong n) {
    size_t i = get_global_id(0); if (i < n) out[i] = x[i] + y[i]; }"""


def seconds(work: Callable[[], Any], repeat: int = 20) -> float:
    """The least of some times, after one that does not count."""
    work()
    times = []
    for _ in range(repeat):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def launches(device: Any) -> list[list[object]]:
    x, y, out = (device.allocate(COUNT * 4) for _ in range(3))
    launch = partial(device.native.kernel(SOURCE, "add"), (COUNT,), (64,), x, y, out, np.uint64(COUNT))

    def wait() -> None:
        device.synchronize(device.record(STREAM))

    def many() -> None:
        for _ in range(LAUNCHES):
            launch()
        wait()

    def one() -> None:
        launch()
        wait()

    a, b = np.ones(COUNT, "f4"), np.ones(COUNT, "f4")
    plain = seconds(lambda: np.add(a, b, out=a))
    return [["launch", f"{seconds(many) / LAUNCHES * 1e6:.2f} us", f"{plain * 1e6:.2f} us"],
            ["launch and wait", f"{seconds(one) * 1e6:.1f} us", ""]]


def copies(device: Any, nbytes: int) -> list[list[object]]:
    host, other, buffer = np.ones(nbytes, "u1"), np.empty(nbytes, "u1"), device.allocate(nbytes)

    def there() -> None:
        device.copy_in(host, buffer, STREAM)
        device.synchronize(device.record(STREAM))

    def back() -> None:
        device.copy_out(buffer, other, STREAM)
        device.synchronize(device.record(STREAM))

    plain = seconds(lambda: np.copyto(other, host))
    rows = [[f"{name} {nbytes >> 10:,} KiB", speed(nbytes, seconds(copy)), speed(nbytes, plain)]
            for name, copy in (("copy in", there), ("copy out", back))]
    device.free(buffer)
    if device.wrap(host) is not None:
        taken = seconds(lambda: device.free(device.wrap(host)))
        rows.append([f"wrap {nbytes >> 10:,} KiB instead", f"{taken * 1e6:.2f} us", ""])
    return rows


def speed(nbytes: int, time: float) -> str:
    return f"{time * 1e6:,.1f} us, {nbytes / time / 1e9:.2f} GB/s"


def run(count: int) -> list[object]:
    attrs = {"T": dtypes.float32}

    def step(device: str) -> Callable[[], Any]:
        nodes = [Node("n0", "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr((COUNT,))})]
        nodes += [Node(f"n{i}", "AddV2", [f"n{i - 1}", "n0"], attrs=attrs, device=device) for i in range(1, count + 1)]
        return partial(weft.Session(Graph(nodes)).make_callable(f"n{count}", ["n0"]), np.ones(COUNT, "f4"))

    return [f"run of {count}", f"{seconds(step('OPENCL:0')) * 1e6:,.1f} us", f"{seconds(step('CPU:0')) * 1e6:,.1f} us"]


def main() -> None:
    try:
        device = runtime().host.open("OPENCL:0")
    except weft.errors.WeftError as error:
        print(f"left out: {error}")
        return
    print(f"OPENCL:0 is {device.attributes['model']}, {device.attributes['platform']}")
    rows = [*launches(device), *(row for nbytes in SIZES for row in copies(device, nbytes)), *map(run, (1, 10, 100))]
    print(tabulate(rows, ["", "OPENCL:0", "NumPy, or CPU:0"], disable_numparse=True))


if __name__ == "__main__":
    main()
