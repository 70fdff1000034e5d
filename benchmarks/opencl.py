"""OPENCL:0 against NumPy, or heald's CPU:0: launches, copies, arrays that it reads in place, kernels, small runs,
networks.

    python benchmarks/opencl.py [--folder DIR]    (make opencl-cpu prints the environment for PoCL)

`launch`: an AddV2 of 256 elements, enqueued 100 times and then waited for. `run`: a session's whole step of n such
nodes, none fused, and the time that each node adds. `chain`: five elementwise ops over 1M elements. Products have 512
in every dimension; their right operand is packed in each run, or was packed before. benchmarks/networks.py makes the
networks in DIR.

Both sides run in turns, and the least time of each counts. A ratio below 1 means that OPENCL:0 is faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract.device import STREAM
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald_kernel_text import (
    INPUT,
    OPENCL_CPU,
    OPENCL_GPU,
    OUTPUT,
    SCRATCH,
    SIZE,
    Literal,
    Plan,
    Step,
    elementwise,
    matmul,
)
from networks import load
from tabulate import tabulate
from timing import Work, least

COUNT = 256
LAUNCHES = 100
SIDE = 512
SIZES = (4 << 10, 1 << 20, 64 << 20)
SOURCE = """kernel void add(global const float *x, global const float *y, global float *out, const ulong n) {
    size_t i = get_global_id(0); if (i < n) out[i] = x[i] + y[i]; }"""


def row(name: str, ours: float, theirs: float, note: Callable[[float], str] = lambda _: "") -> list[str]:
    return [name, *(f"{time * 1e6:,.1f} us{note(time)}" for time in (ours, theirs)), f"{ours / theirs:.2f}"]


def wait(device: Any) -> None:
    device.synchronize(device.record(STREAM))


def launches(device: Any) -> list[list[str]]:
    x, y, out = (device.allocate(COUNT * 4) for _ in range(3))
    launch = device.native.kernel(SOURCE, "add").attached((COUNT,), (64,), x, y, out, np.uint64(COUNT))
    a, b = np.ones(COUNT, "f4"), np.ones(COUNT, "f4")

    def enqueue(count: int) -> None:
        for _ in range(count):
            launch()
        wait(device)

    many, one, plain = least(partial(enqueue, LAUNCHES), partial(enqueue, 1), lambda: np.add(a, b, out=a))
    return [row("launch", many / LAUNCHES, plain), row("launch and wait", one, plain)]


def copies(device: Any, nbytes: int) -> list[list[str]]:
    host, other, buffer = np.ones(nbytes, "u1"), np.empty(nbytes, "u1"), device.allocate(nbytes)

    def there() -> None:
        device.copy_in(host, buffer, STREAM)
        wait(device)

    def back() -> None:
        device.copy_out(buffer, other, STREAM)
        wait(device)

    copied_in, copied_out, plain = least(there, back, lambda: np.copyto(other, host))
    rows = [row(f"{name} {nbytes >> 10:,} KiB", time, plain, lambda t: f", {nbytes / t / 1e9:.1f} GB/s")
            for name, time in (("copy in", copied_in), ("copy out", copied_out))]
    device.free(buffer)
    if device.wrap(host) is not None:
        (wrapped,) = least(lambda: device.free(device.wrap(host)))
        rows.append(row(f"wrap {nbytes >> 10:,} KiB instead", wrapped, plain))
    return rows


def attach_plan(device: Any, plan: Plan, inputs: Sequence[np.ndarray], nbytes: int) -> list[Work]:
    """The plan's launches over these inputs and an output of so many bytes."""
    buffers = {INPUT: [device.allocate(x.nbytes) for x in inputs], OUTPUT: [device.allocate(nbytes)],
               SCRATCH: [device.allocate(n) for n in plan.scratch]}
    for x, buffer in zip(inputs, buffers[INPUT], strict=True):
        device.copy_in(x, buffer, STREAM)
    return [device.native.kernel(text.source, text.name, "-cl-std=CL1.2").attached(
        text.global_size, text.local_size,
        *[np.int64(a.value) if a.kind == SIZE else buffers[a.kind][a.value] for a in text.arguments])
        for text in plan.launches]


def call(device: Any, works: Sequence[Work]) -> None:
    for work in works:
        work()
    wait(device)


def chain(device: Any) -> list[list[str]]:
    """The kernel alone, over buffers; and a session's step, which fuses the nodes, with feeds and result."""
    x, y = np.random.default_rng(0).random((2, 1 << 20), np.float32)
    out = np.empty_like(x)
    steps = (Step("AddV2", (0, 1)), Step("Mul", (2, 1)), Step("Sub", (3, 0)), Step("Maximum", (4, Literal(0.5))),
             Step("Square", (5,)))
    works = attach_plan(device, elementwise(target(device), steps, [(dtypes.float32, x.shape)] * 2), [x, y], x.nbytes)

    def plain() -> None:
        np.add(x, y, out=out)
        np.multiply(out, y, out=out)
        np.subtract(out, x, out=out)
        np.maximum(out, 0.5, out=out)
        np.square(out, out=out)

    floats = {"T": dtypes.float32}
    nodes = [Node(name, "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr(x.shape)}) for name in "xy"]
    nodes.append(Node("half", "Const", attrs={"dtype": dtypes.float32, "value": np.array(0.5, np.float32)}))
    nodes += [Node(name, op, inputs, attrs=floats, device="OPENCL:0") for name, op, inputs in (
        ("a", "AddV2", "xy"), ("b", "Mul", "ay"), ("c", "Sub", "bx"), ("d", "Maximum", ["c", "half"]),
        ("e", "Square", "d"))]
    step = partial(heald.Session(Graph(nodes)).make_callable("e", ["x", "y"]), x, y)
    plain()
    assert np.allclose(step(), out)
    kernel, run, numpy = least(partial(call, device, works), step, plain)
    return [row("chain of five", kernel, numpy), row("run of a chain of five", run, numpy)]


def products(device: Any) -> list[list[str]]:
    """One more launch than the product's own packs the right operand."""
    a, b = np.random.default_rng(0).random((2, SIDE, SIDE), np.float32)
    out = np.empty_like(a)
    works = attach_plan(device, matmul(target(device), dtypes.float32, a.shape, b.shape), [a, b], a.nbytes)
    all_launches, packed, plain = least(partial(call, device, works), partial(call, device, works[-1:]),
                                        lambda: np.matmul(a, b, out=out))
    return [row(name, time, plain, lambda t: f", {2 * SIDE**3 / t / 1e9:.0f} GFLOP/s")
            for name, time in ((f"product of {SIDE}", all_launches), ("the same, packed before", packed))]


def target(device: Any) -> Any:
    return OPENCL_CPU if device.native.on_cpu else OPENCL_GPU


def runs(counts: Sequence[int]) -> list[list[str]]:
    attrs = {"T": dtypes.float32}

    def step(count: int, device: str) -> Work:
        nodes = [Node("n0", "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr((COUNT,))})]
        nodes += [Node(f"n{i}", "AddV2", [f"n{i - 1}", "n0"], attrs=attrs, device=device) for i in range(1, count + 1)]
        session = heald.Session(Graph(nodes), {"passes": {"disable": ["fusion"]}})
        return partial(session.make_callable(f"n{count}", ["n0"]), np.ones(COUNT, "f4"))

    times = {n: least(step(n, "OPENCL:0"), step(n, "CPU:0"), turns=40) for n in counts}
    some, many = counts[-2:]
    per_run = [(more - less) / (many - some) for less, more in zip(times[some], times[many], strict=True)]
    return [*(row(f"run of {n}", *times[n]) for n in counts), row("each launch of a run", *per_run)]


def networks(folder: Path) -> list[list[str]]:
    rows = []
    for path in sorted(folder.glob("*.pb")):
        x = np.load(path.with_suffix(".npz"))["x0"]
        works = [partial(load(path, [device]), x) for device in ("OPENCL:0", "CPU:0")]
        rows.append(row(path.stem, *least(*works, turns=3)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="of networks; none are timed without it")
    options = parser.parse_args()
    try:
        device = runtime().host.open("OPENCL:0")
    except heald.errors.HealdError as error:
        print(f"left out: {error}")
        return
    print(f"OPENCL:0 is {device.attributes['model']}, {device.attributes['platform']}")
    rows = [*launches(device), *(r for nbytes in SIZES for r in copies(device, nbytes)), *chain(device),
            *products(device), *runs((1, 10, 100)), *(networks(options.folder) if options.folder else [])]
    print(tabulate(rows, ["", "OPENCL:0", "NumPy, or CPU:0", "ratio"], disable_numparse=True))


if __name__ == "__main__":
    main()
