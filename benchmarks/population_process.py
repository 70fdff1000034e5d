"""Runs one model of the population in heald, in a process of its own, and prints the verdict as JSON.

    python benchmarks/population_process.py FOLDER/NAME

The calls run in turn on one loaded model, and each output is compared with TensorFlow's answer. The verdict has:

    state       works, wrong, error (a typed error of heald) or fault (an error of another type)
    reason      the output that differs, or the error
    difference  the largest |ours - theirs| / (1 + |theirs|) of numbers with a fraction
    seconds     median of a call
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import heald
import numpy as np
from heald.errors import HealdError
from population_arrays import read_calls

TOLERANCES = {"float32": 1e-4, "half": 2e-2}  # absolute, and of TensorFlow's value
HALF_TYPES = ("float16", "bfloat16")
TIMED_SECONDS = 0.5
MOST_RUNS = 200

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], Arrays]


def open_model(folder: Path, case: Mapping[str, Any]) -> Run:
    """The model as its user loads it: a function from inputs to outputs."""
    path = folder / case["path"]
    if "before" in case:
        return _open_session(path, case)
    if case.get("feeds") is None:
        model = heald.load(path, signature=case["signature"])
        return lambda call: _by_name(model, model(dict(call)))
    fetches = {name: tensor.removesuffix(":0") for name, tensor in case["fetches"].items()}
    inputs = {name: tensor.removesuffix(":0") for name, tensor in case["feeds"].items()}
    model = heald.load(path, inputs=[*inputs.values()], outputs=[*fetches.values()])

    def run(call: Arrays) -> Arrays:
        feeds = {inputs[name]: array for name, array in call.items()}
        results = _by_name(model, model(feeds))
        return {name: results[tensor] for name, tensor in fetches.items()}

    return run


def _by_name(model: Any, results: Any) -> Arrays:
    return results if isinstance(results, dict) else dict.fromkeys(model.outputs, results)


def _open_session(path: Path, case: Mapping[str, Any]) -> Run:
    session = heald.Session(heald.graphdef.load(path))
    for node in case["before"]:
        session.run([], targets=[node])
    return lambda call: session.run(
        case["fetches"], {case["feeds"][name]: array for name, array in call.items()}, targets=case["targets"])


def compare(ours: Any, theirs: np.ndarray, tolerance: str) -> tuple[float, str]:
    """The largest relative difference, and the reason why an output is wrong, which is empty for a right one."""
    ours = np.asarray(ours)
    if ours.shape != theirs.shape:
        return np.inf, f"shape {list(ours.shape)} for {list(theirs.shape)}"
    is_text = theirs.dtype.kind == "O"
    if not is_text and ours.dtype != theirs.dtype:
        return np.inf, f"type {ours.dtype} for {theirs.dtype}"
    if theirs.dtype.kind not in "fcV":
        unequal = int(np.sum(ours.astype(object) != theirs)) if is_text else int(np.sum(ours != theirs))
        return 0.0, f"{unequal} of {theirs.size} differ" if unequal else ""
    bound = TOLERANCES["half" if theirs.dtype.name in HALF_TYPES else tolerance]
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    return _compare_numbers(ours.astype(wide), theirs.astype(wide), bound)


def _compare_numbers(ours: np.ndarray, theirs: np.ndarray, bound: float) -> tuple[float, str]:
    with np.errstate(invalid="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        share = np.where(same, 0.0, np.abs(ours - theirs) / (1 + np.abs(theirs)))
    share = np.where(np.isnan(share), np.inf, share)
    worst = float(share.max(initial=0.0))
    return worst, f"{int(np.sum(share > bound))} of {theirs.size} differ, by {worst:.1e}" if worst > bound else ""


def compare_calls(run: Run, calls: Sequence[Arrays], answers: Sequence[Arrays], tolerance: str) -> dict[str, Any]:
    worst = 0.0
    for number, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        results = run(call)
        for name, theirs in answer.items():
            difference, reason = compare(results[name], theirs, tolerance)
            worst = max(worst, difference)
            if reason:
                return {"state": "wrong", "reason": f"call {number}, {name}: {reason}", "difference": worst}
    return {"state": "works", "reason": "", "difference": worst}


def time_calls(run: Run, calls: Sequence[Arrays]) -> float:
    times: list[float] = []
    end = perf_counter() + TIMED_SECONDS
    while len(times) < 3 or (perf_counter() < end and len(times) < MOST_RUNS):
        start = perf_counter()
        run(calls[len(times) % len(calls)])
        times.append(perf_counter() - start)
    return median(times)


def check_model(folder: Path) -> dict[str, Any]:
    case = json.loads((folder / "case.json").read_text())
    calls, answers = read_calls(folder / "inputs.npz"), read_calls(folder / "answers.npz")
    try:
        run = open_model(folder, case)
        verdict = compare_calls(run, calls, answers, case["tolerance"])
        if verdict["state"] == "works":
            verdict["seconds"] = time_calls(run, calls)
    except HealdError as error:
        return {"state": "error", "reason": f"{type(error).__name__}: {error}"}
    except Exception as error:  # noqa: BLE001 - a fault of heald, which must raise only errors of its own
        return {"state": "fault", "reason": f"{type(error).__name__}: {error}"}
    return verdict


if __name__ == "__main__":
    print(json.dumps(check_model(Path(sys.argv[1]))))
