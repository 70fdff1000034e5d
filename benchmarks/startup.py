"""The time from a process's start to the first result of a network, and its memory, in weft and in other runtimes.

    python benchmarks/startup.py mobilenetv2.pb resnet50.pb

Beside each frozen GraphDef lie its input, NAME.npz with an array x0, and NAME.onnx, ONNX Runtime's form of it:
`benchmarks/networks.py` and `python -m tf2onnx.convert` make them. Each runtime has a process of its own, all take
turns, and the numbers are medians over the rounds. `whole` is from the process's start to the first result. `loaded` is
a part of it, from the runtime's import to the first result, with the input already read. `peak` is the most memory of
the process (ru_maxrss, which includes the pages read of a mapped file). Bytecode is written to a folder of the
benchmark's, in a round that does not count. pip does so for packages that it installs; other modules might be compiled
in every process. A peer that is not installed is left out; weft never needs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic

from tabulate import tabulate

BEGIN = """
import json, os, resource, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
model, started = sys.argv[1], float(sys.argv[2])
import numpy as np
x = np.load(model + ".npz")["x0"]
"""
END = """
done = time.monotonic()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"whole": done - started, "loaded": done - imported, "peak": peak * 1024}))
"""
RUNTIMES = {  # packages, and the code of a process from the import to the result
    "weft": ("weft", """
import weft
imported = time.monotonic()
y = weft.load(model + ".pb")(x)
"""),
    "TensorFlow": ("tensorflow", """
import tensorflow as tf
v1 = tf.compat.v1
imported = time.monotonic()
with open(model + ".pb", "rb") as file:
    definition = v1.GraphDef.FromString(file.read())
with tf.Graph().as_default() as graph:
    tf.import_graph_def(definition, name="")
nodes = graph.get_operations()
taken = {tensor.op.name for node in nodes for tensor in node.inputs}
fed = next(node for node in nodes if node.type == "Placeholder").outputs[0]
fetched = next(node for node in reversed(nodes) if node.outputs and node.name not in taken).outputs[0]
y = v1.Session(graph=graph).run(fetched, {fed: x})
"""),
    "OpenVINO": ("openvino", """
import openvino
imported = time.monotonic()
core = openvino.Core()
y = core.compile_model(core.read_model(model + ".pb"), "CPU")(x)[0]
"""),
    "ONNX Runtime": ("onnxruntime", """
import onnxruntime
imported = time.monotonic()
session = onnxruntime.InferenceSession(model + ".onnx", providers=["CPUExecutionProvider"])
y = session.run(None, {session.get_inputs()[0].name: x})[0]
"""),
}
Found = dict[str, float]


def once(name: str, model: Path, environment: dict[str, str]) -> Found:
    """Run one process of this runtime. Returns its seconds and bytes."""
    command = [sys.executable, "-c", BEGIN + RUNTIMES[name][1] + END, str(model.with_suffix("")), str(monotonic())]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(model: Path, names: list[str], rounds: int) -> dict[str, list[Found]]:
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for name in names:
            once(name, model, environment)
        turns = [{name: once(name, model, environment) for name in names} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in names}


def row(model: Path, name: str, found: dict[str, list[Found]]) -> list[str]:
    ours, theirs = found["weft"], found[name]
    whole, loaded, peak = (median(turn[what] for turn in theirs) for what in ("whole", "loaded", "peak"))
    ratio = median(b["whole"] / a["whole"] for a, b in zip(ours, theirs, strict=True))
    return [model.stem, name, f"{whole:.3f} s", f"{ratio:.2f}", f"{loaded:.3f} s", f"{peak / 1e6:.0f} MB"]


def main() -> None:
    parser = ArgumentParser(description="start-up and memory of weft and other runtimes")
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pb")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    rows = []
    for model in args.models:
        names = [name for name, (package, _) in RUNTIMES.items() if find_spec(package)]
        if not model.with_suffix(".onnx").exists() and "ONNX Runtime" in names:
            names.remove("ONNX Runtime")
            print(f"ONNX Runtime is left out: there is no {model.with_suffix('.onnx')}")
        found = measure(model, names, args.rounds)
        rows += [row(model, name, found) for name in names]
    print(tabulate(rows, ["network", "runtime", "whole", "/ weft's", "loaded", "peak"], disable_numparse=True))
    for name, (package, _) in RUNTIMES.items():
        if not find_spec(package):
            print(f"{name} is left out: {package} is not installed")


if __name__ == "__main__":
    main()
