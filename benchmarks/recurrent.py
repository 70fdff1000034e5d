"""Recurrent layers and dynamic_rnn, timed against TensorFlow and ONNX Runtime in processes of their own.

    python benchmarks/recurrent.py FOLDER --peer-python PYTHON [--only WORD] [--rounds N] [--forms FORM ...]

recurrent_models.py makes FOLDER, with a Python that has TensorFlow. PYTHON is that of an environment with
tensorflow-cpu, and with onnxruntime for the layers that have a model.onnx. All take turns; ratios are medians over the
rounds. The forms of heald are the frozen graph, the SavedModel and a .bef file that is compiled from the frozen graph.
TensorFlow runs the frozen graph by make_callable, on all cores. Each result must be TensorFlow's within 1e-5.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import heald
import numpy as np
from control_flow import Timed, in_rounds, text_of
from heald.errors import HealdError
from heald.graphs.session import compile_model
from tabulate import tabulate
from tensorflow_process import TensorFlow
from timing import ratio, seconds

CLOSE = 1e-5
FORMS = ("frozen", "SavedModel", "bef")
ONNX_RUNTIME = """
import json, sys, time
import numpy as np, onnxruntime
path, arrays, result = sys.argv[1:]
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
with np.load(arrays) as file:
    feeds = {entry.name: file["in/" + entry.name.split(":")[0]] for entry in session.get_inputs()}
np.save(result, session.run(None, feeds)[0])
print("ready", flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    for _ in range(int(line)):
        session.run(None, feeds)
    print((time.perf_counter() - start) / int(line), flush=True)
"""


class OnnxRuntime:
    """ONNX Runtime in a process of its own, with one model. It ends with its requests."""

    def __init__(self, python: str, case: Path, folder: Path) -> None:
        result = folder / "onnx.npy"
        self._process = subprocess.Popen(
            [python, "-c", ONNX_RUNTIME, str(case / "model.onnx"), str(case / "arrays.npz"), str(result)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not self._answer():
            raise OSError(f"{python} does not run {case / 'model.onnx'}")
        self.result: np.ndarray = np.load(result)

    def __enter__(self) -> OnnxRuntime:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            pass

    def time(self, repeat: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{repeat}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def model_of(form: str, case: Path, description: Mapping[str, Any], folder: Path) -> Any:
    """The model of a form, ready to be called."""
    fetches = [fetch.removesuffix(":0") for fetch in description["forms"]["frozen"]["fetches"].values()]
    if form == "frozen":
        return heald.load(case / "frozen.pb", outputs=fetches)
    if form == "SavedModel":
        return heald.load(case / "saved_model")
    with np.load(case / "arrays.npz") as arrays:
        names = {tensor.removesuffix(":0"): name for name, tensor in description["forms"]["frozen"]["feeds"].items()}
        shapes = {node: arrays[f"in/{name}"].shape for node, name in names.items()}
    heald.bef.dump(compile_model(case / "frozen.pb", inputs=shapes, outputs=fetches), folder / "model.bef")
    return heald.load(folder / "model.bef")


def heald_run(model: Any, case: Path, description: Mapping[str, Any]) -> Callable[[], np.ndarray]:
    names = {tensor.removesuffix(":0"): name for name, tensor in description["forms"]["frozen"]["feeds"].items()}
    with np.load(case / "arrays.npz") as arrays:
        feeds = {name: arrays[f"in/{names.get(name, name)}"] for name in model.inputs}

    def run() -> np.ndarray:
        results = model(feeds)
        return next(iter(results.values())) if isinstance(results, dict) else results

    return run


def rows(case: Path, python: str, rounds: int, forms: Sequence[str]) -> Iterator[list[str]]:
    """A row for each form."""
    description = json.loads((case / "case.json").read_text())
    with np.load(case / "arrays.npz") as file:
        arrays = dict(file)
    frozen = description["forms"]["frozen"]
    feeds = {tensor.removesuffix(":0"): arrays[f"in/{name}"] for name, tensor in frozen["feeds"].items()}
    with TemporaryDirectory() as folder, TensorFlow(python, Path(folder)) as tensorflow:
        expected, theirs = tensorflow.open((case / "frozen.pb").read_bytes(), *frozen["fetches"].values(), feeds,
                                           one_thread=False)
        peers = [theirs]
        if (case / "model.onnx").exists():
            onnx = OnnxRuntime(python, case, Path(folder))
            np.testing.assert_allclose(onnx.result, expected, 0, CLOSE)
            peers.append(onnx.time)
        for form in forms:
            try:
                run = heald_run(model_of(form, case, description, Path(folder)), case, description)
                difference = float(np.abs(run() - expected).max())
            except HealdError as error:
                yield [case.name, form, f"{type(error).__name__}: {str(error)[:60]}"]
                continue
            yield [case.name, form, *_cells(run, peers, rounds), f"{difference:.0e}"]


def _cells(run: Callable[[], np.ndarray], peers: Sequence[Timed], rounds: int) -> list[str]:
    ours, *others = in_rounds([lambda repeat: seconds(run, repeat), *peers], rounds)
    cells = [text_of(median(ours))]
    for times in others:
        cells += [text_of(median(times)), f"{ratio(ours, times):.2f}"]
    return cells + ["", ""] * (2 - len(others))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--peer-python", required=True, metavar="PYTHON")
    parser.add_argument("--only", default="", metavar="WORD", help="cases with this word in their folder's name")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="15")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, metavar="FORM", help=" ".join(FORMS))
    options = parser.parse_args()
    table = []
    for case in sorted(options.folder.glob("*/case.json")):
        if options.only in case.parent.name:
            table += [*rows(case.parent, options.peer_python, options.rounds, options.forms)]
            print(*table[-len(options.forms)], sep=" | ", file=sys.stderr)
    print(f"Load of the machine: {os.getloadavg()[0]:.1f}.")
    headers = ["layer", "form", "heald", "TensorFlow", "ratio", "ONNX Runtime", "ratio", "difference"]
    print(tabulate(table, headers, disable_numparse=True))
    wrong = [row for row in table if len(row) < len(headers) or float(row[-1]) > CLOSE]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
