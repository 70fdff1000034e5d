"""Runs a session over two workers of Ray, and writes the facts that `tests/ray_sessions/test_ray_cluster.py` checks."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.api import Graph, Node
from heald.errors import HealdError

T0, T1 = "/job:worker/task:0", "/job:worker/task:1"
X = [1.0, 2.0, 3.0]


def graph() -> Graph:
    typed = {"T": "float32"}
    place = {"dtype": "float32"}
    return Graph([
        Node("x", "Placeholder", attrs={"dtype": "float32", "shape": (3,)}),
        Node("y", "Neg", ["x"], device=T0, attrs=typed),
        Node("text", "AsString", ["y"], device=T1, attrs=typed), Node("z", "Exp", ["y"], device=T1, attrs=typed),
        Node("w", "Add", ["z", "y"], device=T0, attrs=typed),
        Node("v", "VarHandleOp", [], device=T1,
             attrs={"dtype": "float32", "shape": (3,), "shared_name": "v", "container": ""}),
        Node("init", "AssignVariableOp", ["v", "z"], attrs=place), Node("old", "ReadVariableOp", ["v"], attrs=place),
    ])


def error_of(call: Any) -> list[Any]:
    start = time.monotonic()
    try:
        call()
    except HealdError as error:
        return [type(error).__name__, str(error), time.monotonic() - start]
    return ["", "", time.monotonic() - start]


def facts() -> dict[str, Any]:
    gathered: dict[str, Any] = {}
    with heald.Session(graph(), target="ray") as two:
        names = ["w", "text", "z"]
        with heald.Session(Graph([node.replace(device="") for node in graph()])) as one:
            theirs = [array.tolist() for array in one.run(names, {"x": X})]
        gathered["equal"] = [array.tolist() for array in two.run(names, {"x": X})] == theirs
        two.run([], {"x": X}, targets=["init"])
        gathered["state"] = np.allclose(two.run("old"), np.exp(np.negative(X)))
        os.kill(two.cluster.pids[1], signal.SIGKILL)
        gathered["killed"] = error_of(lambda: two.run("w", {"x": X}))
        for _ in range(100):  # Ray starts the worker again
            if not error_of(lambda: two.run("z", {"x": X}))[0]:
                break
            time.sleep(0.1)
        gathered["again"] = error_of(lambda: two.run("w", {"x": X}))
        gathered["lost"] = error_of(lambda: two.run("old"))
        gathered["elsewhere"] = error_of(lambda: heald.Session(graph(), target="ray:127.0.0.1:1"))
    return gathered


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(facts()), "utf-8")
