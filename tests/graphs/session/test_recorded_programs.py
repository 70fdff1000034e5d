"""Programs of several runs in one session, with TensorFlow 2.21's results, or its errors by their code.

Each folder of data/programs holds a graph, its arrays, and the runs in order: feeds, fetches and targets. "$TMP" in a
fed path stands for the folder of the test. Every program gives the same with the passes and kernel packs that are
installed, and node by node with the reference kernels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from heald import graphdef
from heald.errors import HealdError

PROGRAMS = Path(__file__).parents[2] / "data" / "programs"
CONFIGS: dict[str, dict[str, Any]] = {
    "optimized": {},
    "as written": {"plugins": {"block": ["onednn", "simplify"]}, "passes": {"disable": ["fusion"]}},
}


def value(recorded: Any, arrays: Any, folder: Path) -> Any:
    if isinstance(recorded, str):
        return arrays[recorded]
    strings = np.empty(len(recorded["string"]), object)
    strings[:] = [text.replace("$TMP", str(folder)).encode("latin1") for text in recorded["string"]]
    return strings.reshape(recorded["shape"])


def is_tensor(name: str) -> bool:
    """A fetched op without a port gives None in TensorFlow."""
    return ":" in name


def check(got: Any, want: Any, tolerance: list[float], which: str) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype), which
    if want.dtype == object:
        assert got.tolist() == want.tolist(), which
    else:
        rtol, atol = tolerance
        np.testing.assert_allclose(got, want, rtol, atol, err_msg=which)


def check_partial_run(session: heald.Session, run: Any, arrays: Any, tolerance: list[float], folder: Path) -> None:
    handle = session.partial_run_setup(run["partial_run"]["fetches"], run["partial_run"]["feeds"])
    for number, call in enumerate(run["steps"]):
        feeds = {tensor: value(recorded, arrays, folder) for tensor, recorded in call["feeds"].items()}
        for got, want in zip(session.partial_run(handle, call["fetches"], feeds), call["out"], strict=True):
            check(got, value(want, arrays, folder), tolerance, f"call {number}")


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", sorted(folder.name for folder in PROGRAMS.iterdir()))
def test_a_program_gives_what_tensorflow_gave(name: str, config: str, tmp_path: Path) -> None:
    case = json.loads((PROGRAMS / name / "case.json").read_text("utf-8"))
    graph = graphdef.load(PROGRAMS / name / "graph.pb")
    fallback = {"placement": {"fallback": "allow" if case.get("soft_placement", True) else "error"}}
    settings = CONFIGS[config] | fallback | {"plugin": {"cpu": {"count": case["devices"]["CPU"]}},
                                             "files": {"read": [str(tmp_path)], "write": [str(tmp_path)]}}
    with np.load(PROGRAMS / name / "data.npz") as arrays, heald.Session(graph, settings) as session:
        assert case["runs"]
        for number, step in enumerate(case["runs"]):
            if "partial_run" in step:
                check_partial_run(session, step, arrays, case["tol"], tmp_path)
                continue
            fetches = [f for f in step["fetches"] if is_tensor(f)]
            targets = [*step["targets"], *(f for f in step["fetches"] if not is_tensor(f))]
            feeds = {tensor: value(recorded, arrays, tmp_path) for tensor, recorded in step["feeds"].items()}
            if "error" in step:
                with pytest.raises(HealdError) as caught:
                    session.run(fetches, feeds, targets=targets)
                assert caught.value.code == step["error"]["code"], (number, step["error"], caught.value)
                continue
            expected = [value(out, arrays, tmp_path)
                        for out, f in zip(step["out"], step["fetches"], strict=True) if is_tensor(f)]
            for got, want in zip(session.run(fetches, feeds, targets=targets), expected, strict=True):
                check(got, want, case["tol"], f"run {number}")


@pytest.mark.parametrize("name", ["place_gpu_hard", "place_gpu_soft"])
def test_a_program_for_a_gpu_runs_where_config_maps_its_requests_to(name: str) -> None:
    """TensorFlow refuses the first program, and runs the second one on the CPU."""
    case = json.loads((PROGRAMS / name / "case.json").read_text("utf-8"))
    step, config = case["runs"][0], {"placement": {"remap": {"GPU:*": "SIM:0"}, "fallback": "error"}}
    graph = graphdef.load(PROGRAMS / name / "graph.pb")
    requests = {node.name for node in graph if "GPU" in node.device and node.op not in ("Const", "Placeholder")}
    with np.load(PROGRAMS / name / "data.npz") as arrays:
        feeds = {tensor: arrays[recorded] for tensor, recorded in step["feeds"].items()}
        with heald.Session(graph, {"placement": {"fallback": "allow"}}) as session:
            mapped = session.run(step["fetches"], feeds)
        with heald.Session(graph, config) as session:
            results = session.run(step["fetches"], feeds)
            placed = {row["node"] for row in session.placement().table() if row["assigned"] == "SIM:0"}
        expected = [arrays[out] for out in step["out"]] if "out" in step else mapped
    assert requests <= placed
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, want, *case["tol"])
