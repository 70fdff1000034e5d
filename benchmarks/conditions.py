"""Networks under the conditions of a service: in a loop, after a pause, beside a busy neighbour, in two streams.

    python benchmarks/conditions.py FOLDER [--networks NAME ...] [--turns N] [--threads N] [--page]

FOLDER has NAME.pb, NAME.npz with an array x0, and NAME.onnx, as networks.py and inference.py make them. Each runtime
has a process of its own (runtime_process.py) with its own form of the network. In a turn one runtime after the other
does the same, while the others sleep. A cell is the median over the turns of a runtime's median in a turn; a ratio is
the median over the turns of heald's time by the other's.

- loop: run follows run.
- pause: 0.1 s of sleep before each run, so that threads and caches are cold.
- neighbour: run follows run, and another process keeps one core busy.
- start: from the start of the process to the first result, from heald's compiled model and the others' files.
- streams: runs a second of two threads that run at the same time, each run on one thread. For these the runtimes are
  opened again, with one thread; the ratio is the other's number by heald's.

--page writes docs/conditions.md, and renews the README's section. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import heald
import inference
import inference_table
import numpy as np
from tabulate import tabulate
from tqdm import tqdm

HERE = Path(__file__).parent
FORMS = {"heald": ".pb", "tensorflow": ".pb", "onnxruntime": ".onnx", "openvino": ".onnx"}
PAUSE, STREAMS, STARTS = 0.1, 2, 5  # seconds; streams; starts at most
IN_README = ("mobilenetv2", "resnet50", "encoder", "lstm", "gru")
BEGIN, END = "<!-- conditions: made by benchmarks/conditions.py -->", "<!-- end of conditions -->"
RUNS = {"loop": 60, "pause": 8, "neighbour": 60}  # at most; fewer where they take longer than a turn
TURN_SECONDS = 0.4
BUSY = "while True: pass"
# Bytecode is written, as pip writes it for the packages that it installs.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Runtime:
    """A runtime's process. Raises OSError if it does not come up."""

    def __init__(self, name: str, network: Path, threads: int, form: str | None = None) -> None:
        self.name = name
        model, arrays = network.with_suffix(form or FORMS[name]), network.with_suffix(".npz")
        started = perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "runtime_process.py"), name, str(model), str(arrays), str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
        if self._process.stdout is None or not self._process.stdout.readline():
            raise OSError(f"{name} does not run {model}")
        self.start_seconds = perf_counter() - started

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, request: str, count: int, seconds: float) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{request} {count} {seconds}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """One core is busy with Python inside the block."""
    with subprocess.Popen([sys.executable, "-c", BUSY]) as process:
        try:
            yield
        finally:
            process.kill()


def open_all(network: Path, names: Sequence[str], threads: int, stack: ExitStack) -> list[Runtime]:
    runtimes = []
    for name in names:
        try:
            runtimes.append(stack.enter_context(Runtime(name, network, threads)))
        except OSError as error:
            tqdm.write(str(error), file=sys.stderr)
    return runtimes


def measure(network: Path, names: Sequence[str], options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """For each condition and runtime a number of each turn: seconds of a run, or runs a second."""
    measured: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        runtimes = open_all(network, names, options.threads, stack)
        counts = {runtime.name: max(3, int(TURN_SECONDS / median(runtime.ask("runs", 5, 0)))) for runtime in runtimes}
        for condition, most in RUNS.items():
            with busy_neighbour() if condition == "neighbour" else ExitStack():
                for _ in range(options.turns):
                    for runtime in runtimes:
                        runtime.ask("runs", 2, 0)
                        times = runtime.ask("runs", min(most, counts[runtime.name]),
                                            PAUSE if condition == "pause" else 0)
                        measured.setdefault(condition, {}).setdefault(runtime.name, []).append(median(times))
    for _ in range(min(options.turns, STARTS)):
        for name in measured["loop"]:
            with Runtime(name, network, options.threads, compiled_form(name, network)) as runtime:
                measured.setdefault("start", {}).setdefault(name, []).append(runtime.start_seconds)
    with ExitStack() as stack:
        runtimes = open_all(network, names, 1, stack)
        for _ in range(options.turns):
            for runtime in runtimes:
                rate = runtime.ask("streams", STREAMS, TURN_SECONDS)
                measured.setdefault("streams", {}).setdefault(runtime.name, []).append(rate)
    return measured


def compiled_form(name: str, network: Path) -> str | None:
    """The suffix of the form that starts first: heald's compiled model, which is made here."""
    if name != "heald":
        return None
    compiled = network.with_suffix(".bef")
    if not compiled.exists():
        model = heald.load(network)
        (fed,) = model.inputs
        dims = ",".join(str(n) for n in np.load(network.with_suffix(".npz"))["x0"].shape)
        subprocess.run([sys.executable, "-m", "heald", "compile", str(network), "-o", str(compiled), "--input",
                        f"{fed}:{dims}"], check=True, capture_output=True)
    return ".bef"


def row(network: str, condition: str, turns: dict[str, list[float]], names: Sequence[str]) -> list[str]:
    """The cells of a network under a condition."""
    is_rate = condition == "streams"
    ours = turns["heald"]
    cells = [inference_table.TITLES[network], condition + (", runs/s" if is_rate else ", ms")]
    cells += [f"{median(turns[name]) * (1 if is_rate else 1e3):.3g}" if name in turns else "" for name in names]
    for name in names[1:]:
        pairs = zip(ours, turns.get(name, ()), strict=False)
        ratios = [theirs / mine if is_rate else mine / theirs for mine, theirs in pairs]
        cells.append(f"{median(ratios):.2f}" if ratios else "")
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", nargs="+", default=list(inference.NAMES), metavar="NAME")
    parser.add_argument("--turns", type=int, default=9, metavar="N", help="9")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="2")
    parser.add_argument("--page", action="store_true", help="write docs/conditions.md")
    options = parser.parse_args()
    names = [name for name in FORMS if find_spec(name) is not None]
    titles = [inference_table.RUNTIMES[name] for name in names]
    head = ["network", "condition", *titles, *(f"heald / {title}" for title in titles[1:])]
    rows, shown = [], []
    for network in tqdm(options.networks, disable=None):
        measured = measure(options.folder / f"{network}.pb", names, options)
        rows_of_network = [row(network, condition, turns, names) for condition, turns in measured.items()]
        rows += rows_of_network
        shown += rows_of_network if network in IN_README else []
    print(tabulate(rows, head, disable_numparse=True))
    if options.page:
        (inference.ROOT / "docs" / "conditions.md").write_text(page(head, rows, options))
        readme = inference.ROOT / "README.md"
        before, _, after_begin = readme.read_text().partition(BEGIN)
        after = after_begin.partition(END)[2]
        readme.write_text(f"{before}{BEGIN}\n{section(head, shown)}\n{END}{after}")
    return 0


def section(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return (f"The same networks in service, each runtime in a process of its own, 2 threads "
            f"([all numbers and their conditions](docs/conditions.md)):\n\n"
            f"{tabulate(rows, head, tablefmt='pipe', disable_numparse=True)}\n\n"
            f"{inference_table.machine(inference.machine())}.")


def page(head: Sequence[str], rows: Sequence[Sequence[str]], options: argparse.Namespace) -> str:
    words = str(__doc__).partition("A cell is")
    table = tabulate(rows, head, tablefmt="pipe", disable_numparse=True)
    return (f"# Networks in service\n\nMeasured on {inference_table.machine(inference.machine())}: batch 1, "
            f"{options.threads} threads, {options.turns} turns. "
            f"`python benchmarks/conditions.py FOLDER --page` measures again.\n\n{table}\n\n"
            f"A cell is{words[2].partition('--page')[0].rstrip()}\n")


if __name__ == "__main__":
    sys.exit(main())
