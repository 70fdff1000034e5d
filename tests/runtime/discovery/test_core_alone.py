"""Core without any other distribution: it imports, lists and explains, and runs graphs of a third party's ops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from heald.runtime.support.install import install_hint

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "tests" / "data" / "plugins" / "tiny_plugin.py"
LIBRARIES = ("numpy", "numpy.libs", "google", "pluggy", "tabulate", "tqdm")  # what heald-core depends on
GRAPH = """
import json
import numpy as np
import heald
from heald.graphs.graph.graph import Graph, Node
F = heald.api.dtypes.float32
def plus(op):
    return Graph([
        Node("x", "Placeholder", attrs={"dtype": F, "shape": None}),
        Node("c", "Const", attrs={"dtype": F, "value": np.array([1, 2], "f4")}),
        Node("done", "NoOp", controls=["x"]),
        Node("y", op, ["x", "c"], attrs={"T": F}),
        Node("z", "Identity", ["y"], controls=["done"], attrs={"T": F})])
"""


class Alone:
    """Interpreters that see heald-core and the libraries that it depends on, and no installed distribution."""

    def __init__(self, folder: Path) -> None:
        site = Path(find_spec("numpy").origin).parent.parent
        for name in LIBRARIES:
            if (site / name).exists():
                (folder / name).symlink_to(site / name)
        manifest = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text("utf-8"))["project"]
        info = folder / "installed" / f"heald_core-{manifest['version']}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: heald-core\nVersion: {manifest['version']}\n")
        rows = (f"{name} = {module}" for name, module in manifest["entry-points"]["heald.plugins"].items())
        (info / "entry_points.txt").write_text("\n".join(["[heald.plugins]", *rows]))
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("HEALD_", "PYTHON"))}
        paths = [str(ROOT / "core"), str(folder), str(folder / "installed")]
        self.environ = variables | {"PYTHONPATH": os.pathsep.join(paths), "XDG_CONFIG_HOME": str(folder)}
        self.folder = folder

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-S", "-W", "error", *arguments], cwd=self.folder, env=self.environ,
                              capture_output=True, text=True, timeout=60, check=False)

    def facts(self, code: str) -> dict:
        """Run `code` behind the graph's definition; returns its dict `facts`."""
        done = self.run("-c", f"{GRAPH}\nfacts = {{}}\n{code}\nprint(json.dumps(facts))")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Alone:
    return Alone(tmp_path_factory.mktemp("alone"))


def test_a_third_partys_device_op_set_and_kernels_run_their_graph(alone):
    facts = alone.facts(f"""
heald.register({str(PLUGIN)!r})
text = heald.graphdef.dumps(plus("Tiny>Plus"))
with heald.Session(heald.graphdef.loads(text)) as session:
    facts["z"] = session.run("z", {{"x": np.array([3, 4], "f4")}}).tolist()
    facts["placed"] = {{row.node: row.device for row in session.placement().values()}}
facts["devices"] = [(d.name, d.status) for d in heald.devices()]
""")
    assert facts["z"] == [4, 6]
    assert facts["placed"] == {"x": "", "c": "", "done": "", "y": "TINY:0", "z": "TINY:0"}
    assert facts["devices"] == [["TINY:0", "ok"]]


def test_an_unknown_op_tells_which_distribution_brings_tensorflows(alone):
    facts = alone.facts(f"""
try:
    heald.Session(plus("AddV2")).run("z", {{"x": np.array([3, 4], "f4")}})
except heald.errors.NotFound as error:
    facts["error"] = str(error)
heald.register({str(PLUGIN)!r})
try:
    heald.Session(plus("Tiny>Plsu")).run("z", {{"x": np.array([3, 4], "f4")}})
except heald.errors.NotFound as error:
    facts["near"] = str(error)
""")
    assert "no op is called 'AddV2'" in facts["error"]
    assert install_hint("heald-tf-ops") in facts["error"]
    assert "did you mean Tiny>Plus?" in facts["near"]
    assert "pip install" not in facts["near"]


@pytest.mark.parametrize(("arguments", "expected_text"), [
    (["ops"], "0 ops, 0 with a kernel"),
    (["ops", "--all"], "39 ops, 31 with a kernel"),
    (["ops", "While"], "While(input: T) -> output: T"),
    (["plugins"], "heald-core"),
    (["devices"], "no plugin brings a device"),
    (["ops", "--plugin", str(PLUGIN)], "Tiny>Plus"),
    (["devices", "--check", "--plugin", str(PLUGIN)], "PASS"),
])
def test_commands_list_the_parts_of_core(alone, arguments, expected_text):
    done = alone.run("-m", "heald", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected_text in done.stdout


def test_a_graph_of_unknown_ops_is_explained(alone):
    alone.facts("""
heald.graphdef.dump(plus("AddV2"), "plus.pb")
""")
    done = alone.run("-m", "heald", "ops", "--missing", "plus.pb", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    reasons = {row["op"]: row["reason"] for row in json.loads(done.stdout)}
    assert reasons["Identity"] == "no kernel"
    assert install_hint("heald-tf-ops") in reasons["AddV2"]


def test_a_probe_by_the_op_sets_own_op_finds_a_device_that_computes_wrongly(alone, tmp_path):
    for name in ("tiny_plugin.py", "tiny_ops.tsv"):
        text = PLUGIN.with_name(name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace("x + y", "x - y"), "utf-8")
    done = alone.run("-m", "heald", "devices", "--check", "--json", "--plugin", str(tmp_path / "tiny_plugin.py"))
    assert done.returncode == 1
    assert json.loads(done.stdout)[0]["reason"].startswith("a probe on TINY returned")
