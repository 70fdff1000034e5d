"""Independent kernels on two devices of one session: the time of a run, with traces on and off.

    python benchmarks/device_concurrency.py

Each device has one kernel of 50 ms that releases the GIL. Two devices that work at the same time take 50 ms
together; in turns they take 100 ms. `first`: the first run of a shape, which links. `worst`: the slowest of the next
60 runs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import heald
import numpy as np
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from tabulate import tabulate

RUNS = 60
PLUGIN = """
from time import sleep
from heald.api import OpSpec, hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Bench>Sleep", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"], metadata=lambda _, x: x))

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)

def register(kernels):
    @kernels.kernel("Bench>Sleep")
    def bind(b):
        def run(x, out):
            sleep(0.05)
            out[...] = x
        return run
"""


def main() -> None:
    attrs = {"T": dtypes.float32}
    nodes = [Node("x", "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr((None,))})]
    nodes += [Node(f"y{i}", "Bench>Sleep", ["x"], attrs=attrs, device=f"/device:CPU:{i}") for i in (0, 1)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(folder, "sleeping_plugin.py")
        plugin.write_text(PLUGIN, "utf-8")
        for trace in (False, True):
            options = heald.RunOptions(trace=True) if trace else None
            config = {"plugins": {"load": [str(plugin)]}, "plugin": {"cpu": {"count": 2}}}
            with heald.Session(Graph(nodes), config) as session:
                session.run(["y0", "y1"], {"x": np.ones(1, np.float32)}, options=options)
                times = []
                for _ in range(RUNS + 1):
                    started = perf_counter()
                    session.run(["y0", "y1"], {"x": np.ones(2, np.float32)}, options=options)
                    times.append(perf_counter() - started)
            first, *others = (f"{seconds * 1e3:.0f} ms" for seconds in (times[0], np.median(times[1:]), max(times[1:])))
            rows.append(["on" if trace else "off", first, *others])
    print(tabulate(rows, ["trace", "first", "median", "worst"], disable_numparse=True))


if __name__ == "__main__":
    main()
