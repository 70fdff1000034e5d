"""Whole applications with control flow, tables and variables: each run in heald, and compared with TensorFlow's
results.

    python benchmarks/applications.py FOLDER [--only WORD] [--errors]

application_models.py makes FOLDER, with a Python that has TensorFlow, and describes its files. Nothing is timed. A row
has one of three verdicts: `right`, `WRONG` with the output of the largest difference, or the error. Differences are in
standard deviations of TensorFlow's output. The losses of a training loop are compared step by step, relative to
TensorFlow's. Integers, booleans and strings must be equal. The command exits with 1 unless all rows are right.

--compiled: each form is compiled for the shapes of its inputs first, and a process of its own runs the .bef file. A
verdict names the rooms of graphs and the op set where that process imported them. Forms that run nodes for their effect
before their first step cannot be compiled.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import heald
import numpy as np
from heald.errors import HealdError
from tabulate import tabulate

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], dict[str, np.ndarray]]
ERROR_WIDTH = 100
COMPILED = """
import sys
import numpy as np
import heald
file, given, found, steps = sys.argv[1:]
with np.load(given) as arrays:
    feeds = {name: arrays[name].astype(object) if arrays[name].dtype.kind == "S" else arrays[name] for name in arrays}
model = heald.load(file)
runs = []
for _ in range(int(steps) or 1):
    run = model({name: feeds[name] for name in model.inputs})
    runs.append(run if isinstance(run, dict) else dict.fromkeys(model.outputs, run))
for name in model.outputs:
    array = np.stack([run[name] for run in runs]) if int(steps) else np.asarray(runs[0][name])
    feeds[name] = array.astype("S") if array.dtype == object else array
np.savez(found, **{name: feeds[name] for name in model.outputs})
print(*sorted({".".join(name.split(".")[:2]) for name in sys.modules
               if name.startswith(("heald.graphs.graph", "heald.graphs.protobuf"))}))
"""


def run_compiled(path: Path, form: Mapping[str, Any], feeds: Arrays, inputs_path: Path,
                 folder: Path) -> tuple[Run, list[str]]:
    """The application of this form, compiled and run once in a process of its own, and the modules of that process."""
    from heald.graphs.session import compile_model

    if "before" in form or "targets" in form:
        raise heald.errors.Unimplemented("it runs nodes for their effect")
    names = {tensor.removesuffix(":0"): name for name, tensor in form.get("feeds", {}).items()}
    fetches = {name: tensor.removesuffix(":0") for name, tensor in form.get("fetches", {}).items()}
    outputs = [*fetches.values()] or None
    model = heald.load(path, outputs=outputs)
    shapes = {name: feeds[names.get(name, name)].shape for name in model.inputs}
    heald.bef.dump(compile_model(path, inputs=shapes, outputs=outputs), folder / "model.bef")
    inputs = {name: feeds[names.get(name, name)] for name in model.inputs}
    np.savez(inputs_path,
             **{name: array.astype("S") if array.dtype == object else array for name, array in inputs.items()})
    command = [sys.executable, "-c", COMPILED, str(folder / "model.bef"), str(inputs_path), str(folder / "found.npz"),
               str(form.get("steps", 0))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    with np.load(folder / "found.npz") as file:
        stored = {name: file[name] for name in file}
    results = {**stored, **{name: stored[node] for name, node in fetches.items() if node in stored}}
    return (lambda _: results), done.stdout.split()


def open_form(path: Path, form: Mapping[str, Any]) -> Run:
    """The application of this form: a function from all its inputs to its outputs."""
    once = _signature(path) if "fetches" not in form else _session(path, form)
    steps = form.get("steps", 0)
    return (lambda feeds: _stack_runs([once(feeds) for _ in range(steps)])) if steps else once


def _stack_runs(runs: Sequence[Arrays]) -> dict[str, np.ndarray]:
    return {name: np.stack([run_outputs[name] for run_outputs in runs]) for name in runs[0]}


def _signature(path: Path) -> Run:
    model = heald.load(path)

    def run(feeds: Arrays) -> dict[str, np.ndarray]:
        outputs = model({name: feeds[name] for name in model.inputs})
        return outputs if isinstance(outputs, dict) else dict.fromkeys(model.outputs, outputs)

    return run


def _session(path: Path, form: Mapping[str, Any]) -> Run:
    session = heald.Session(heald.graphdef.load(path))
    for node in form.get("before", ()):
        session.run([], targets=[node])
    return lambda feeds: session.run(form["fetches"], {tensor: feeds[name] for name, tensor in form["feeds"].items()},
                                     targets=form.get("targets", ()))


def difference(ours: np.ndarray, theirs: np.ndarray, *, relative: bool) -> float:
    """The largest difference, relative to each element or in standard deviations of `theirs`.

    Infinite when shapes differ, or elements that must be equal. NaNs at the same places are equal.
    """
    ours = np.asarray(ours)
    if ours.shape != theirs.shape:
        return np.inf
    if theirs.dtype.kind not in "fc":
        same = ours.astype(object) if theirs.dtype.kind in "SO" else ours
        return 0.0 if np.array_equal(same, theirs.astype(same.dtype)) else np.inf
    if not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return np.inf
    scale = np.abs(theirs) if relative else (np.std(theirs) if theirs.size else 0.0) or 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        differences = np.where((ours == theirs) | np.isnan(theirs), 0.0,
                               np.abs(theirs.astype(np.float64) - ours) / scale)
    return float(differences.max(initial=0.0))


def verdict(run: Run, feeds: Arrays, expected: Arrays, tolerance: float, *, relative: bool) -> str:
    results = run(feeds)
    off = {name: difference(results[name], theirs, relative=relative) for name, theirs in expected.items()}
    worst = max(off, key=lambda name: off[name])
    return f"right ({off[worst]:.0e})" if off[worst] <= tolerance else f"WRONG: {worst} by {off[worst]:.1e}"


def arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The inputs and the outputs of an application. Strings are objects."""
    with np.load(path) as file:
        stored = {name: file[name].astype(object) if file[name].dtype.kind == "S" else file[name] for name in file}
    return tuple({name.partition("/")[2]: array
                  for name, array in stored.items() if name.startswith(side)}  # type: ignore[return-value]
                 for side in ("in/", "out/"))


def rows(folder: Path, *, full_errors: bool, is_compiled: bool = False) -> list[list[str]]:
    """The verdict on each form of the application in this folder; errors are cut unless `whole`."""
    case = json.loads((folder / "case.json").read_text())
    feeds, expected = arrays(folder / "arrays.npz")
    table = []
    for name, form in case["forms"].items():
        try:
            path, imported = folder / form["path"], list[str]()
            if is_compiled:
                with TemporaryDirectory() as aside:
                    run, imported = run_compiled(path, form, feeds, Path(aside, "given.npz"), Path(aside))
            else:
                run = open_form(path, form)
            said = verdict(run, feeds, expected, case["tolerance"], relative=bool(form.get("steps")))
            said += f", with {', '.join(imported)}" if imported else ""
        except HealdError as error:
            said = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - a fault of heald, which must raise only errors of its own
            said = f"UNTYPED: {type(error).__name__}: {error}"
        table.append([case["application"], name, said if full_errors else " ".join(said.split())[:ERROR_WIDTH]])
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="WORD", help="applications with this word in their folder's name")
    parser.add_argument("--errors", action="store_true", help="show errors whole")
    parser.add_argument("--compiled", action="store_true", help="compile each, and run the file in its own process")
    options = parser.parse_args()
    cases = sorted(options.folder.glob("*/case.json"))
    if not cases:
        parser.error(f"{options.folder} has no applications: with TensorFlow, python benchmarks/application_models.py "
                     f"{options.folder} makes them")
    table = [row for case in cases if options.only in case.parent.name
             for row in rows(case.parent, full_errors=options.errors, is_compiled=options.compiled)]
    print(tabulate(table, headers=["application", "form", "against TensorFlow"], disable_numparse=True))
    return int(not all(row[-1].startswith("right") for row in table))


if __name__ == "__main__":
    sys.exit(main())
