"""The works of a session, against TensorFlow's Session: creation and extension, runs of every kind, queues, variables
and checkpoints.

    python benchmarks/session.py [--rounds N] [--tensorflow PYTHON] [--only TEXT]

TensorFlow does the same works (session_works.py) on the same GraphDef files in a process of its own, in turn with
heald; both by their defaults. PYTHON is that of an environment with tensorflow-cpu; heald never needs it. Results are
compared before they are timed. Ratios are medians over the rounds. A session is created from the bytes of a GraphDef,
which each runtime parses. Checkpoints are written to a temporary folder and read at once, so
the reads come from the system's cache.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import heald
import numpy as np
from run_pre_placement_passes import write_graphs
from session_works import BYTES, WORKS
from tabulate import tabulate
from tensorflow_process import TensorFlow, TensorFlowError
from timing import ratio

INSTALL = "TensorFlow is left out: in an environment of its own, pip install tensorflow-cpu, then --tensorflow PYTHON"


class Heald:
    """heald, as a client of session_works."""

    def __init__(self, folder: Path) -> None:
        self._files = {"read": [str(folder)], "write": [str(folder)]}

    def session(self, graph: Path, devices: int = 1) -> heald.Session:
        config: dict[str, Any] = {"files": self._files, "plugin": {"cpu": {"count": devices}}}
        return heald.Session(heald.graphdef.load(graph), config)

    def act(self, session: heald.Session, target: str) -> None:
        session.run((), targets=(target,))

    def extend(self, session: heald.Session, graph: Path) -> None:
        session.extend(heald.graphdef.load(graph))


def row(name: str, folder: Path, peer: TensorFlow | None, rounds: int) -> list[str]:
    result, ours = WORKS[name](Heald(folder), folder)
    if peer is None:
        return [name, *figures(name, [ours() for _ in range(rounds)])]
    expected, theirs = peer.work(name, folder)
    np.testing.assert_allclose(result, expected, 1e-6, err_msg=name)
    our_times, others = zip(*[(ours(), theirs()) for _ in range(rounds)], strict=True)
    return [name, *figures(name, our_times), *figures(name, others), f"{ratio(others, our_times):.2f}"]


def figures(name: str, times: tuple[float, ...] | list[float]) -> list[str]:
    time = median(times)
    if name in BYTES:
        return [f"{BYTES[name] / time / 1e9:.2f} GB/s"]
    return [f"{time * 1e6:.1f} us" if time < 1e-3 else f"{time * 1e3:.1f} ms"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="15")
    parser.add_argument("--tensorflow", default=sys.executable, metavar="PYTHON", help="the Python that runs heald")
    parser.add_argument("--only", default="", metavar="TEXT", help="works whose name has this text")
    options = parser.parse_args()
    names = [name for name in WORKS if options.only in name]
    with TemporaryDirectory() as text:
        folder = Path(text).resolve()
        write_graphs(folder)
        try:
            peer = TensorFlow(options.tensorflow, folder)
        except TensorFlowError:
            print(f"{INSTALL}\n")
            table = [row(name, folder, None, options.rounds) for name in names]
        else:
            with peer:
                table = [row(name, folder, peer, options.rounds) for name in names]
    print(tabulate(table, ["work", "heald", "TensorFlow", "TensorFlow/heald"][:len(table[0])], disable_numparse=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
