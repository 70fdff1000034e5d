"""Runs a session over two workers of Ray, and writes the facts that `tests/ray_sessions/test_ray_cluster.py` checks."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.api import Graph, Node, constant
from heald.errors import HealdError
from heald_saved_model import write_checkpoint

T0, T1 = "/job:worker/task:0", "/job:worker/task:1"
X = [1.0, 2.0, 3.0]
CONFIG = """
[cluster]
target = "ray"
workers = 2
checkpoint = "saved"
"""


def graph() -> Graph:
    typed = {"T": "float32"}
    place = {"dtype": "float32"}
    variables = [node for name in ("v", "unsaved") for node in (
        Node(name, "VarHandleOp", [], device=T1, attrs={**place, "shape": (3,), "shared_name": name, "container": ""}),
        Node(f"init_{name}", "AssignVariableOp", [name, "z"], attrs=place),
        Node(f"read_{name}", "ReadVariableOp", [name], attrs=place))]
    return Graph([
        Node("x", "Placeholder", attrs={"dtype": "float32", "shape": (3,)}),
        Node("y", "Neg", ["x"], device=T0, attrs=typed),
        Node("text", "AsString", ["y"], device=T1, attrs=typed), Node("z", "Exp", ["y"], device=T1, attrs=typed),
        Node("w", "Add", ["z", "y"], device=T0, attrs=typed), *variables,
        constant("large", np.arange(50_000, dtype=np.float32)).replace(device=T1)])  # beyond Ray's inline arguments


def error_of(call: Any) -> list[Any]:
    start = time.monotonic()
    try:
        call()
    except HealdError as error:
        return [type(error).__name__, str(error), time.monotonic() - start]
    return ["", "", time.monotonic() - start]


def kill_in_a_step(two: Any, task: int) -> list[Any]:
    """Kill a worker while steps run. Return the error of the step, and its seconds after the engine's notice."""
    noticed: list[float] = []
    two.lifelines.lines[task].add_done_callback(lambda _: noticed.append(time.monotonic()))
    threading.Timer(0.05, os.kill, [two.cluster.pids[task], signal.SIGKILL]).start()
    for _ in count():
        kind, text, _ = error_of(lambda: two.run("w", {"x": X}))
        if kind:
            return [kind, text, time.monotonic() - min(noticed, default=time.monotonic())]
    raise AssertionError


def facts() -> dict[str, Any]:
    gathered: dict[str, Any] = {}
    Path("cluster.toml").write_text(CONFIG, "utf-8")
    os.environ["HEALD_CONFIG"] = "cluster.toml"  # as `--config`; the workers inherit it, and have another folder
    with heald.Session(graph()) as two:
        names = ["w", "text", "z"]
        with heald.Session(Graph([node.replace(device="") for node in graph()]), target="local") as one:
            theirs = [array.tolist() for array in one.run(names, {"x": X})]
        gathered["equal"] = [array.tolist() for array in two.run(names, {"x": X})] == theirs
        two.run([], {"x": X}, targets=["init_v", "init_unsaved"])
        value = two.run("read_v")
        gathered["state"] = np.allclose(value, np.exp(np.negative(X)))
        write_checkpoint("saved", {"v": value})
        two.extend(Graph([Node("later", "Neg", ["z"], device=T1, attrs={"T": "float32"})]))
        time.sleep(1.5)  # Ray frees the arguments of a start each second
        gathered["killed"] = kill_in_a_step(two, 1)
        gathered["again"] = error_of(lambda: two.run("w", {"x": X}))
        gathered["extended"] = np.allclose(two.run("later", {"z": X}), np.negative(X))
        gathered["restored"] = two.run("read_v").tolist() == value.tolist()
        gathered["lost"] = error_of(lambda: two.run("read_unsaved"))
        gathered["elsewhere"] = error_of(lambda: heald.Session(graph(), target="ray:127.0.0.1:1"))
    return gathered


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(facts()), "utf-8")
