"""What two threads gain over one: independent costly tasks, and what must not get slower, a chain and many cheap calls.

    python benchmarks/parallel.py

Tasks are NumPy kernels that release the GIL, about 200 us each, with BLAS told to use one thread. Sessions are run
until they have found out how to run (30 runs). Every figure is the median over interleaved pairs; the machine has to
have two cores to spare.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

import numpy as np
import weft
from tabulate import tabulate
from timing import paired, seconds
from weft.attr_value import ShapeAttr
from weft.graph import Graph, Node

FLOAT, INT = weft.api.dtypes.float32, weft.api.dtypes.int32
WIDTH = 16
TASK = 200e-6  # seconds


def placeholder(*shape: int) -> Node:
    return Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": ShapeAttr(shape)})


def unary(name: str, op: str, source: str) -> Node:
    return Node(name, op, [source], attrs={"T": FLOAT})


def product(name: str, a: str, b: str) -> Node:
    return Node(name, "MatMul", [a, b], attrs={"T": FLOAT, "transpose_a": False, "transpose_b": False})


def wide(op: str, size: int) -> tuple[Graph, str, np.ndarray]:
    """The largest element of each of WIDTH independent tasks over x, packed into one vector."""
    shape = (size, size) if op == "MatMul" else (size,)
    axes = np.arange(len(shape), dtype=np.int32)
    nodes = [placeholder(*shape), Node("axes", "Const", attrs={"dtype": INT, "value": axes})]
    for i in range(WIDTH):
        nodes.append(product(f"task{i}", "x", "x") if op == "MatMul" else unary(f"task{i}", op, "x"))
        nodes.append(Node(f"max{i}", "Max", [f"task{i}", "axes"], attrs={"T": FLOAT, "Tidx": INT, "keep_dims": False}))
    attrs = {"T": FLOAT, "N": WIDTH, "axis": 0}
    nodes.append(Node("y", "Pack", [f"max{i}" for i in range(WIDTH)], attrs=attrs))
    return Graph(nodes), "y", np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def chain(length: int, size: int) -> tuple[Graph, str, np.ndarray]:
    """tanh(tanh(...x))."""
    nodes = [placeholder(size)] + [unary(f"n{i}", "Tanh", f"n{i - 1}" if i else "x") for i in range(length)]
    return Graph(nodes), f"n{length - 1}", np.linspace(0, 1, size, dtype=np.float32)


def cheap(width: int, length: int) -> tuple[Graph, str, np.ndarray]:
    """`width` chains of tiny additions, joined by others."""
    nodes = [placeholder(2, 2)]
    for w in range(width):
        for i in range(length):
            source = f"n{w}_{i - 1}" if i else "x"
            nodes.append(Node(f"n{w}_{i}", "AddV2", [source, "x"], attrs={"T": FLOAT}))
        nodes.append(Node(f"sum{w}", "AddV2", [f"sum{w - 1}" if w else "x", f"n{w}_{length - 1}"], attrs={"T": FLOAT}))
    return Graph(nodes), f"sum{width - 1}", np.ones((2, 2), np.float32)


def size_of_task(op: str, size: int) -> int:
    """How large x has to be for a task of about 200 us on this machine, from what one of this size takes."""
    x = np.linspace(0, 1, size * size, dtype=np.float32).reshape(size, size)
    out = np.empty_like(x)
    work = (lambda: np.matmul(x, x, out)) if op == "MatMul" else (lambda: getattr(np, op.lower())(x, out))
    factor = TASK / min(seconds(work, 5) for _ in range(9))
    return int(size * factor ** (1 / 3)) if op == "MatMul" else int(size * size * factor)


def row(what: str, graph: Graph, fetch: str, x: np.ndarray) -> list[str]:
    steps = [weft.Session(graph, {"work_queue": {"threads": threads}}, device="CPU:0").make_callable(fetch, ["x"])
             for threads in (2, 1)]
    for step in steps:
        for _ in range(30):
            result = step(x)
    assert np.array_equal(steps[0](x), result)
    two, one, ratio = paired(lambda: steps[0](x), lambda: steps[1](x), 10)
    return [what, f"{one * 1e6:,.0f} us", f"{two * 1e6:,.0f} us", f"{1 / ratio:.2f}"]


def main() -> None:
    rows = []
    for op, size in (("Exp", 300), ("Tanh", 300), ("MatMul", 200)):
        size = size_of_task(op, size)
        rows.append(row(f"{WIDTH} independent {op} of 200 us, joined", *wide(op, size)))
    rows.append(row(f"chain of {WIDTH} Tanh of 200 us", *chain(WIDTH, size_of_task("Tanh", 300))))
    rows.append(row("4 chains of 500 2x2 additions, joined", *cheap(4, 500)))
    headers = ["work", "one thread", "two threads", "times as fast"]
    print(tabulate(rows, headers, colalign=("left", *["right"] * 3), disable_numparse=True))


if __name__ == "__main__":
    main()
