"""Plugins written against version 1.3 of heald.api work unchanged: a device, kernels, a pass and a loader of that time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "tests" / "data" / "plugins_of_1_3"
PROLOGUE = """
import sys
from pathlib import Path
import numpy as np
import heald
from heald.api import Graph, Node, dtypes

def load(name):
    heald.register(name)
    assert [row.status for row in heald.plugins() if row.id in ("plugin", "outsider_loader")] == ["ok"]

def graph_of(*ops):
    nodes = [Node("x0", "Placeholder", attrs={"dtype": "float32", "shape": (None,)})]
    for op in ops:
        nodes.append(Node(f"x{len(nodes)}", op, [nodes[-1].name], attrs={"T": "float32"}))
    return Graph(nodes), nodes[-1].name
"""
PROGRAMS = {
    "a device": """
load("heald_outsider_device.plugin")
test = np.load("examples/digits/test.npz")
model = heald.load("examples/digits/frozen.pb", outputs=["digit"], device="OUTSIDER_DEVICE:0",
                   config={"placement": {"fallback": "allow"}, "plugins": {"load": ["heald_outsider_device.plugin"]}})
digits = model(test["image"])
assert "OUTSIDER_DEVICE:0" in {row["assigned"] for row in model.placement().table()}
assert (digits == test["label"]).sum() == 529
""",
    "kernels": """
load("heald_outsider_kernels.plugin")
graph = Graph([Node("x", "Placeholder", attrs={"dtype": "float32", "shape": (1, 2)}),
               Node("y", "Softmax", ["x"], attrs={"T": "float32"})])
session = heald.Session(graph)
rows = {row["node"]: row for row in session.placement().table()}
assert rows["y"]["kernel"] == "plugin.Softmax", rows["y"]
assert session.run("y", {"x": [[1, 1]]}).tolist() == [[0.5, 0.5]]
""",
    "a pass": """
load("heald_outsider_pass.plugin")
graph, fetch = graph_of("Neg", "Neg", "Relu")
session = heald.Session(graph)
steps = dict(session.graphs_by_pass([fetch], ["x0"]))
assert any("outsider-pass" in str(name) for name in steps), list(steps)
assert session.run(fetch, {"x0": [-1, 2]}).tolist() == [0, 2]
""",
    "a loader": """
load(sys.path[1] + "/outsider_loader.py")
Path(sys.argv[1], "model.outsider_loader").write_text("outsider_loader 3")
model = heald.load(Path(sys.argv[1], "model.outsider_loader"))
assert model(x=[1, 2]).tolist() == [3, 6]
""",
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_plugin_of_1_3_works_unchanged(kind, tmp_path):
    path = os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROLOGUE + PROGRAMS[kind], str(tmp_path)],
                          capture_output=True, text=True, check=False, cwd=ROOT, timeout=60,
                          env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr


def test_every_name_of_1_3_is_still_offered():
    from heald import api

    names = (PLUGINS / "api_names.txt").read_text("utf-8").split()
    assert len(names) == 124
    assert not [name for name in names if not hasattr(api, name)]


def test_every_hook_parameter_and_option_of_1_3_is_still_taken():
    """The registrars' methods take the keyword arguments of 1.3."""
    import inspect

    from heald import api

    parameters = {
        (api.PassRegistrar, "add"): {"name", "function", "stage", "after", "before", "about", "preserves", "repeats"},
        (api.DeviceRegistrar, "device"): {"type", "scan", "kernels", "priority"},
        (api.KernelPackRegistrar, "kernels"): {"device_type", "register", "priority"},
        (api.CommandRegistrar, "add"): {"name", "help", "add_arguments", "run"},
        (api.LoaderRegistrar, "add"): {"name", "loader"},
        (api.SessionRegistrar, "add"): {"prefix", "factory"},
    }
    missing = {f"{registrar.__name__}.{method}": names - {*inspect.signature(getattr(registrar, method)).parameters}
               for (registrar, method), names in parameters.items()}
    assert {key: names for key, names in missing.items() if names} == {}
