"""The gain of two threads over one: for independent costly tasks, and for work that must not get slower, a chain and
many cheap calls.

    python benchmarks/parallel.py

Tasks are NumPy kernels that release the GIL, about 200 us each, with BLAS told to use one thread. Sessions are run
until they have chosen a schedule (30 runs). Every figure is the median over interleaved pairs. `NumPy`: the gain of two
bare threads on the same calls, eight each, which is the machine's limit. The limit is low for tasks that are bound by
memory, and there is no gain without two idle cores.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import heald
import numpy as np
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from tabulate import tabulate
from timing import seconds, time_pairs

WIDTH = 16
TASK = 200e-6  # seconds
RUNS = 30  # runs until a session has chosen a schedule
TASKS: dict[str, tuple[str, Any, Callable[..., Any]]] = {
    "MatMul": ("MatMul", np.float32, np.matmul),
    "Exp, complex": ("Exp", np.complex64, np.exp),
    "Exp, limited by memory": ("Exp", np.float32, np.exp),
}


def placeholder(x: np.ndarray) -> Node:
    return Node("x", "Placeholder", attrs={"dtype": dtypes.of_numpy(x.dtype), "shape": ShapeAttr(x.shape)})


def wide(op: str, x: np.ndarray) -> tuple[Graph, str]:
    """The sums of WIDTH independent tasks over x, packed into one vector."""
    kind = {"T": dtypes.of_numpy(x.dtype)}
    axes = np.arange(x.ndim, dtype=np.int32)
    nodes = [placeholder(x), Node("axes", "Const", attrs={"dtype": dtypes.int32, "value": axes})]
    inputs, attrs = (["x", "x"], {"transpose_a": False, "transpose_b": False}) if op == "MatMul" else (["x"], {})
    for i in range(WIDTH):
        nodes.append(Node(f"task{i}", op, inputs, attrs=kind | attrs))
        summed = kind | {"Tidx": dtypes.int32, "keep_dims": False}
        nodes.append(Node(f"sum{i}", "Sum", [f"task{i}", "axes"], attrs=summed))
    nodes.append(Node("y", "Pack", [f"sum{i}" for i in range(WIDTH)], attrs=kind | {"N": WIDTH, "axis": 0}))
    return Graph(nodes), "y"


def chain(op: str, x: np.ndarray) -> tuple[Graph, str]:
    """WIDTH tasks, each on the result of the one before."""
    kind = {"T": dtypes.of_numpy(x.dtype)}
    nodes = [placeholder(x)] + [Node(f"n{i}", op, [f"n{i - 1}" if i else "x"], attrs=kind) for i in range(WIDTH)]
    return Graph(nodes), f"n{WIDTH - 1}"


def cheap(width: int, length: int, x: np.ndarray) -> tuple[Graph, str]:
    """`width` chains of `length` additions, joined by others."""
    kind = {"T": dtypes.of_numpy(x.dtype)}
    nodes = [placeholder(x)]
    for w in range(width):
        nodes += [Node(f"n{w}_{i}", "AddV2", [f"n{w}_{i - 1}" if i else "x", "x"], attrs=kind) for i in range(length)]
        nodes.append(Node(f"sum{w}", "AddV2", [f"sum{w - 1}" if w else "x", f"n{w}_{length - 1}"], attrs=kind))
    return Graph(nodes), f"sum{width - 1}"


def task(work: Callable[..., Any], dtype: Any) -> tuple[np.ndarray, Callable[[], object]]:
    """An argument with which `work` takes about 200 us on this machine, and that call."""
    is_product = work is np.matmul
    size = 200
    for _ in range(3):
        shape = (size, size) if is_product else (size * size // 10,)
        x = np.linspace(-1, 1, int(np.prod(shape))).astype(dtype).reshape(shape)
        inputs, out = (x, x) if is_product else (x,), np.empty_like(x)
        duration = min(seconds(lambda inputs=inputs, out=out: work(*inputs, out), 5) for _ in range(9))
        size = int(size * (TASK / duration) ** (1 / (3 if is_product else 2)))
    return x, lambda: work(*inputs, np.empty_like(x))


def gain(graph: Graph, fetch: str, x: np.ndarray) -> list[str]:
    """Times on one thread, on two, and the ratio. The tasks stand for different ones, so the pass that removes
    duplicates is off."""
    config = {"passes": {"disable": ["duplicates"]}}
    steps = [heald.Session(graph, {**config, "work_queue": {"threads": threads}}, device="CPU:0")
             .make_callable(fetch, ["x"]) for threads in (2, 1)]
    two, one = ([step(x) for _ in range(RUNS)][-1] for step in steps)
    assert np.array_equal(two, one)
    with np.errstate(all="ignore"):
        two_threads, one_thread, ratio = time_pairs(lambda: steps[0](x), lambda: steps[1](x), 10)
    return [f"{one_thread * 1e6:,.0f} us", f"{two_threads * 1e6:,.0f} us", f"{1 / ratio:.2f}"]


def bare_gain(call: Callable[[], object]) -> str:
    def repeat(count: int) -> None:
        for _ in range(count):
            call()

    with ThreadPoolExecutor(1) as other:
        def both() -> None:
            half = other.submit(repeat, WIDTH // 2)
            repeat(WIDTH // 2)
            half.result()

        return f"{1 / time_pairs(both, lambda: repeat(WIDTH), 10)[2]:.2f}"


def main() -> None:
    rows = []
    for name, (op, dtype, work) in TASKS.items():
        x, call = task(work, dtype)
        rows.append([f"{WIDTH} independent {name}", *gain(*wide(op, x), x), bare_gain(call)])
    rows.append([f"chain of {WIDTH} Tanh", *(gain(*chain("Tanh", x), x)), ""])
    tiny = np.ones((2, 2), np.float32)
    rows.append(["4 chains of 500 2x2 additions", *gain(*cheap(4, 500, tiny), tiny), ""])
    headers = ["work", "one thread", "two threads", "times as fast", "NumPy"]
    print(tabulate(rows, headers, colalign=("left", *["right"] * 4), disable_numparse=True))


if __name__ == "__main__":
    main()
