"""Plugins written against version 1.0 of heald.api work unchanged: the examples of that time, kept as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "tests" / "data" / "plugins_of_1_0"
RUN = """
import importlib, sys
import numpy as np
import heald

name, device = sys.argv[1:]
assert importlib.import_module(name).__file__.startswith(sys.path[1]), sys.path
test = np.load("examples/digits/test.npz")
config = {"placement": {"fallback": "allow"}}
if name == "heald_example":  # no distribution announces it any more
    config["plugins"] = {"load": ["heald_example.plugin"], "block": ["example_device"]}
model = heald.load("examples/digits/frozen.pb", outputs=["digit"], device=device, config=config)
digits = model(test["image"])
assert sys.modules[f"{name}.device"].__file__.startswith(sys.path[1])
assert device in {row["assigned"] for row in model.placement().table()}
print(int((digits == test["label"]).sum()))
"""


@pytest.mark.parametrize(("package", "device"), [("heald_example", "EXAMPLE:0"), ("heald_sim", "SIM:0")])
def test_a_device_plugin_of_1_0_runs_the_digits(package, device):
    path = os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", RUN, package, device], capture_output=True, text=True, check=False,
                          cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "529\n"


FOLDING = """
import numpy as np
import heald
from heald.api import Graph, Node

heald.register("heald_pads.plugin")
graph = Graph([
    Node("x", "Placeholder", attrs={"dtype": "float32", "shape": (1, 4, 4, 1)}),
    Node("p", "Const", attrs={"dtype": "int32", "value": np.int32([[0, 0], [1, 1], [1, 1], [0, 0]])}),
    Node("pad", "Pad", ["x", "p"], attrs={"T": "float32", "Tpaddings": "int32"}),
    Node("w", "Const", attrs={"dtype": "float32", "value": np.ones((3, 3, 1, 1), np.float32)}),
    Node("y", "Conv2D", ["pad", "w"], attrs={"T": "float32", "strides": [1, 1, 1, 1], "padding": "VALID"}),
])
session = heald.Session(graph, config={"passes": {"disable": ["pads"]}})
final = [*session.graphs_by_pass(["y"], ["x"])][-1]
print("pad" in final[1].nodes, session.run("y", {"x": np.ones((1, 4, 4, 1), np.float32)}).sum())
"""


def test_a_pass_of_1_0_folds_its_pads():
    path = os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", FOLDING], capture_output=True, text=True, check=False, cwd=ROOT,
                          env=os.environ | {"PYTHONPATH": path}, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False 100.0\n"


def test_every_name_of_1_0_is_still_offered():
    from heald import api

    names = (PLUGINS / "api_names.txt").read_text("utf-8").split()
    assert len(names) == 63
    assert not [name for name in names if not hasattr(api, name)]
