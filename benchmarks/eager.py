"""Eager ops against their peers: small ops, large ones, donated buffers, a network op by op.

    python benchmarks/eager.py [--tensorflow PYTHON] [--torch PYTHON]
    python benchmarks/eager.py --against PYTHON [--seconds 30] [--only NAME]

`execute` is `heald.execute("AddV2", a, b)`, `bound` is `heald.ops.add_v2` fetched once. TensorFlow (`tf.raw_ops`) and
torch run in processes of their own, in turn with heald. Every figure of 2x2 float32 is the median of the rounds.
`--against` compares with another installation of heald: eager_pairs.py says how.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import heald
import numpy as np
from eager_pairs import compare_installations
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from tabulate import tabulate
from timing import least, seconds, time_pairs

DIGITS = Path(__file__).parent.parent / "examples" / "digits"
ROUNDS, REPEAT = 15, 20_000
PEERS = {
    "tf.raw_ops": """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
a, b = tf.ones([2, 2]), tf.ones([2, 2])
add, matmul = (lambda: tf.raw_ops.AddV2(x=a, y=b)), (lambda: tf.raw_ops.MatMul(a=a, b=b))
""",
    "torch": """
import torch
a, b = torch.ones(2, 2), torch.ones(2, 2)
add, matmul = (lambda: torch.add(a, b)), (lambda: torch.matmul(a, b))
""",
}
SERVE = """
import json, sys
from time import perf_counter
def seconds(f, n):
    start = perf_counter()
    for _ in range(n):
        f()
    return (perf_counter() - start) / n
print("ready", flush=True)
for line in sys.stdin:
    name, n = json.loads(line)
    f = {"add": add, "matmul": matmul}[name]
    seconds(f, n // 4)
    print(seconds(f, n), flush=True)
"""


class Peer:
    """A runtime in a process of its own, which times its ops when it is asked."""

    def __init__(self, name: str, python: str) -> None:
        self._process = subprocess.Popen([python, "-c", PEERS[name] + SERVE], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self._read() != "ready":
            raise SystemExit(f"{python} has no {name}")

    def seconds(self, op: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps([op, REPEAT])}\n")
        self._process.stdin.flush()
        return float(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def small(peers: dict[str, Peer]) -> list[list[str]]:
    """Rows of 2x2 float32: heald, its peers and NumPy, in turn."""
    array = np.ones((2, 2), np.float32)
    a, b, out = heald.TensorHandle(array), heald.TensorHandle(array), np.empty_like(array)
    execute, rows = heald.execute, []
    for name, op, bound, function in (("add", "AddV2", heald.ops.add_v2, np.add),
                                      ("matmul", "MatMul", heald.ops.matmul, np.matmul)):
        ours: dict[str, list[float]] = {"execute": [], "bound": [], "NumPy": [], **{peer: [] for peer in peers}}
        works = {"execute": lambda op=op: execute(op, a, b), "bound": lambda bound=bound: bound(a, b),
                 "NumPy": lambda function=function: function(array, array, out)}
        for _ in range(ROUNDS):
            for key, work in works.items():
                seconds(work, REPEAT // 4)
                ours[key].append(seconds(work, REPEAT))
            for key, peer in peers.items():
                ours[key].append(peer.seconds(name))
        for key in ("execute", "bound"):
            row = [f"2x2 {name}, {key}", f"{median(ours[key]) * 1e6:.2f} us"]
            for other in ("tf.raw_ops", "torch", "NumPy"):
                times = ours.get(other)
                row.append("-" if times is None else f"{median(times) * 1e6:.2f} us, "
                           f"{median(x / y for x, y in zip(ours[key], times, strict=True)):.2f}")
            rows.append(row)
    return rows


def large() -> list[str]:
    """A row of an addition of 1M elements."""
    x = np.ones(1 << 20, np.float32)
    a = heald.TensorHandle(x)
    add = heald.ops.add_v2
    ours, numpy, ratio = time_pairs(lambda: add(a, a), lambda: np.add(x, x), 20)
    return ["add of 1M elements, bound", f"{ours * 1e6:.0f} us", "-", "-", f"{numpy * 1e6:.0f} us, {ratio:.2f}"]


def product_with_small_ops() -> list[str]:
    """A row of a product of some 200 us, ten small ops on its result, and a read: all of them are too short to be
    deferred."""
    x = np.ones((200, 200), np.float32)
    a, one = heald.TensorHandle(x), heald.TensorHandle(np.ones((), np.float32))
    matmul, add = heald.ops.matmul, heald.ops.add_v2

    def ours() -> Any:
        y = matmul(a, a)
        for _ in range(10):
            y = add(y, one)
        return y.numpy()

    def theirs() -> Any:
        y = np.matmul(x, x)
        for _ in range(10):
            y = np.add(y, x[0, 0])
        return y

    heald_seconds, numpy_seconds, ratio = time_pairs(ours, theirs, 20)
    return ["200x200 matmul, ten adds, read", f"{heald_seconds * 1e6:.0f} us", "-", "-",
            f"{numpy_seconds * 1e6:.0f} us, {ratio:.2f}"]


def donation_peak() -> str:
    """The peak of a chain of 1,000 additions on 100 MB, in buffers, in a process of its own."""
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np, heald
heald.execute("AddV2", np.ones(4, np.float32), 1)
with open("/proc/self/statm") as memory:
    base = int(memory.read().split()[1]) * resource.getpagesize() // 1024  # the peak so far may be higher
x = heald.execute("Fill", [25_000_000], np.float32(0))
for _ in range(1000):
    x = heald.execute("AddV2", x, 1, donate=(0,))
assert x.numpy()[-1] == 1000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) * 1024 / 100e6)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return f"{float(done.stdout):.2f} buffers at most"


def network() -> str:
    """The digits network, one image: op by op against the session."""
    graph = heald.graphdef.load(DIGITS / "frozen.pb")
    image = np.load(DIGITS / "test.npz")["image"][:1]
    session = heald.Session(graph)
    step = session.make_callable("logits:0", ["image:0"])
    calls, constants = [], {}
    for name, node in graph.nodes.items():
        if node.op == "Const":
            constants[name] = heald.TensorHandle(node.attrs["value"].array())
        elif node.op not in ("Placeholder", "NoOp"):
            attrs = {key: value for key, value in node.attrs.items() if not key.startswith("_")}
            calls.append((name, node.op, [source for source, _, _ in node.inputs], attrs))
        if name == "logits":
            break

    def one_by_one() -> Any:
        values = {**constants, "image": heald.TensorHandle(image)}
        for name, op, inputs, attrs in calls:
            values[name] = heald.execute(op, *[values[i] for i in inputs], attrs=attrs)
        return values["logits"].numpy()

    assert np.allclose(one_by_one(), step(image), atol=1e-3)
    ours, theirs = least(one_by_one, lambda: step(image))
    return f"{ours * 1e6:.0f} us by {len(calls)} ops, {theirs * 1e6:.0f} us by the session, {ours / theirs:.1f}"


def functions() -> list[str]:
    """Composite ops: one addition against the bound op, and the digits network as one function against the session."""
    array = np.ones((2, 2), np.float32)
    a, add = heald.TensorHandle(array), heald.ops.add_v2
    nodes = [Node(name, "Placeholder", attrs={"dtype": dtypes.float32}) for name in ("x", "y")]
    one = heald.function(heald.Graph([*nodes, Node("sum", "AddV2", ["x", "y"], attrs={"T": dtypes.float32})]))
    ours, bound, ratio = time_pairs(lambda: one(a, a), lambda: add(a, a), REPEAT)
    rows = [f"2x2 add, {ours * 1e6:.2f} us as a function, {bound * 1e6:.2f} us bound, {ratio:.2f}"]
    graph = heald.graphdef.load(DIGITS / "frozen.pb")
    image = np.load(DIGITS / "test.npz")["image"][:1]
    step = heald.Session(graph).make_callable("logits:0", ["image:0"])
    network = heald.function(graph, "image", "logits")
    handle = heald.TensorHandle(image)
    assert np.array_equal(network(handle).numpy(), step(image))
    ours, theirs = least(lambda: network(handle).numpy(), lambda: step(image))
    rows.append(f"digits network, {ours * 1e6:.0f} us as a function, {theirs * 1e6:.0f} us by the session, "
                f"{ours / theirs:.1f}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("tensorflow", "torch"):
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"a Python that has {name}")
    parser.add_argument("--against", metavar="PYTHON", help="a Python that has heald before a change")
    parser.add_argument("--seconds", type=float, default=30, help="of each row of --against")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="rows of --against: part of a name")
    options = parser.parse_args()
    if options.against:
        rows = compare_installations(options.against, options.seconds, options.only)
        print(tabulate(rows, headers=["work", "before", "after", "median ratio", "95 % interval", "pairs"]))
        return
    pythons = {"tf.raw_ops": options.tensorflow, "torch": options.torch}
    peers = {name: Peer(name, python) for name, python in pythons.items() if python}
    rows = [*small(peers), large(), product_with_small_ops()]
    print(tabulate(rows, headers=["work", "heald", "tf.raw_ops", "torch", "NumPy"]))
    print(f"\nchain of 1,000 additions on 100 MB with donate: {donation_peak()}")
    print(f"digits network: {network()}")
    for row in functions():
        print(f"function: {row}")


if __name__ == "__main__":
    main()
