"""The time from a process's start to the first result of a network, and its memory, in weft and in other runtimes.

    python benchmarks/startup.py mobilenetv2.pb resnet50.pb [--peers PYTHON] [--parts] [--cold]

Beside each frozen GraphDef lie its input, NAME.npz with an array x0, and NAME.onnx: `benchmarks/networks.py` and
`python -m tf2onnx.convert` make them. What a runtime compiles ahead of time is made before anything is timed: weft's
.bef (for the input's shape, with prepared weights), ONNX Runtime's optimised .ort, OpenVINO's exported blob. PYTHON is
that of an environment with the other runtimes, each of which may be missing; weft never needs them.

Each form has a process of its own, all take turns, and the numbers are medians over the rounds. `whole` is from the
process's start to the first result. `loaded` is a part of it, from the runtime's import to the first result, with the
input already read. `peak` is the most memory of the process (ru_maxrss, which includes the pages read of a mapped
file). Bytecode is written to a folder of the benchmark's, in a round that does not count. pip does so for packages that
it installs; other modules might be compiled in every process. Results are compared with weft's from the .pb.

--parts: where weft's own time goes. --cold: one core, 512 MB of data (RLIMIT_DATA), and pages of the model, of Python
and of all packages dropped from the system's cache before each process, as a function has it that starts in a cloud.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple

import numpy as np
from tabulate import tabulate

BEGIN = """
import json, os, resource, sys, time
begun = time.monotonic()
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
folder, model, started = sys.argv[1], sys.argv[2], float(sys.argv[3])
import numpy as np
numpy_there = time.monotonic()
x = np.load(model + ".npz")["x0"]
made = folder + "/" + os.path.basename(model)
"""
END = """
done = time.monotonic()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
np.save(folder + "/found.npy", y)
parts = {"interpreter": begun - started, "NumPy": numpy_there - begun, **globals().get("parts", {})}
print(json.dumps({"whole": done - started, "loaded": done - imported, "peak": peak * 1024, "parts": parts}))
"""


class Form(NamedTuple):
    """`package`: the runtime's. `run`: the code of a process, from the import to the result `y`. `make`: the code that
    makes what it loads."""

    package: str
    run: str
    make: str = ""


FORMS = {
    "weft .bef": Form("weft", """
a = time.monotonic()
import weft
imported = time.monotonic()
loaded = weft.load(made + ".bef")
b = time.monotonic()
y = loaded(x)
c = time.monotonic()
loaded(x)
parts = {"import weft": imported - a, "map, plugins, device": b - imported, "link and first run": c - b,
         "second run": time.monotonic() - c}
""", """
import subprocess
import weft
(name,) = weft.load(model + ".pb").inputs
subprocess.run([sys.executable, "-m", "weft", "compile", model + ".pb", "-o", made + ".bef",
                "--input", name + ":" + ",".join(map(str, x.shape))], check=True, capture_output=True)
"""),
    "weft .pb": Form("weft", """
a = time.monotonic()
import weft
imported = time.monotonic()
loaded = weft.load(model + ".pb")
b = time.monotonic()
y = loaded(x)
parts = {"import weft": imported - a, "load": b - imported, "link and first run": time.monotonic() - b}
"""),
    "ONNX Runtime .ort": Form("onnxruntime", """
import onnxruntime
imported = time.monotonic()
session = onnxruntime.InferenceSession(made + ".ort", providers=["CPUExecutionProvider"])
y = session.run(None, {session.get_inputs()[0].name: x})[0]
""", """
import onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = made + ".ort"
options.add_session_config_entry("session.save_model_format", "ORT")
onnxruntime.InferenceSession(model + ".onnx", options, providers=["CPUExecutionProvider"])
"""),
    "ONNX Runtime .onnx": Form("onnxruntime", """
import onnxruntime
imported = time.monotonic()
session = onnxruntime.InferenceSession(model + ".onnx", providers=["CPUExecutionProvider"])
y = session.run(None, {session.get_inputs()[0].name: x})[0]
"""),
    "OpenVINO blob": Form("openvino", """
import openvino
imported = time.monotonic()
with open(made + ".blob", "rb") as file:
    compiled = openvino.Core().import_model(file.read(), "CPU")
y = compiled(x)[0]
""", """
import openvino
core = openvino.Core()
read = core.read_model(model + ".onnx")
read.reshape(list(x.shape))
with open(made + ".blob", "wb") as file:
    file.write(core.compile_model(read, "CPU").export_model().getvalue())
"""),
    "OpenVINO .onnx": Form("openvino", """
import openvino
imported = time.monotonic()
core = openvino.Core()
y = core.compile_model(core.read_model(model + ".onnx"), "CPU")(x)[0]
"""),
    "TensorFlow .pb": Form("tensorflow", """
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
}
COLD = """
import os, resource
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
resource.setrlimit(resource.RLIMIT_DATA, (512 << 20, 512 << 20))
"""
CLOSE = 1e-3  # of the standard deviation of a network's outputs
BASE = "weft .bef"


class Found(NamedTuple):
    """Of one process: seconds, bytes, and seconds by part."""

    whole: float
    loaded: float
    peak: float
    parts: dict[str, float]


class Measured:
    """The forms of one model. `folder` has what the runtimes compiled ahead of time."""

    def __init__(self, model: Path, peers: str, folder: Path, *, cold: bool) -> None:
        self.model, self.left_out = model, dict[str, str]()
        self._peers, self._folder, self._cold = peers, folder, cold
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._wanted: np.ndarray | None = None
        for name in ("weft .pb", *(name for name in FORMS if name != "weft .pb")):
            self._begin(name)

    def names(self) -> list[str]:
        return [name for name in FORMS if name not in self.left_out]

    def once(self, name: str) -> Found:
        """Run one process of this form."""
        if self._cold:
            drop_pages([self._folder, self.model.parent, *self._packages(name)])
        code = (COLD if self._cold else "") + BEGIN + FORMS[name].run + END
        return Found(**json.loads(self._run(name, code).splitlines()[-1]))

    def _begin(self, name: str) -> None:
        """Make what the form loads, and check its result. A form that cannot run is left out."""
        try:
            self._run(name, f"import {FORMS[name].package}")
            if FORMS[name].make:
                self._run(name, BEGIN + FORMS[name].make)
            self.once(name)
        except subprocess.CalledProcessError as error:
            self.left_out[name] = (error.stderr.strip().splitlines() or ["no message"])[-1]
            return
        found = np.load(self._folder / "found.npy")
        if self._wanted is None:
            self._wanted = found
        np.testing.assert_allclose(found, self._wanted, atol=CLOSE * float(np.std(self._wanted)), err_msg=name)

    def _python(self, name: str) -> str:
        return sys.executable if FORMS[name].package == "weft" else self._peers

    def _packages(self, name: str) -> list[Path]:
        code = "import sysconfig; print(sysconfig.get_paths()['purelib'], sysconfig.get_paths()['stdlib'])"
        own = [Path(path) for path in self._run(name, code).split()]
        return [*own, *map(Path, sys.path)] if self._python(name) == sys.executable else own

    def _run(self, name: str, code: str) -> str:
        command = [self._python(name), "-c", code, str(self._folder), str(self.model.with_suffix("")), str(monotonic())]
        return subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True).stdout


def drop_pages(folders: list[Path]) -> None:
    """Drop the pages of all files in these folders from the system's cache."""
    for file in {file for folder in folders if folder.is_dir() for file in _files(folder)}:
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _files(folder: Path) -> Iterator[str]:
    for at, _, names in os.walk(folder):
        yield from (os.path.join(at, name) for name in names)  # noqa: PTH118 - a Path for each of 10,000 is slow


def rows(measured: Measured, found: dict[str, list[Found]]) -> list[list[str]]:
    made = []
    for name, theirs in found.items():
        whole, loaded, peak = (median(getattr(turn, what) for turn in theirs) for what in ("whole", "loaded", "peak"))
        ratio = median(b.whole / a.whole for a, b in zip(found[BASE], theirs, strict=True))
        made.append([measured.model.stem, name, f"{whole:.3f} s", f"{ratio:.2f}", f"{loaded:.3f} s",
                     f"{peak / 1e6:.0f} MB"])
    return made


def parts(measured: Measured, found: dict[str, list[Found]]) -> list[list[str]]:
    return [[measured.model.stem, name, part, f"{median(turn.parts[part] for turn in theirs) * 1e3:.1f} ms"]
            for name, theirs in found.items() if FORMS[name].package == "weft" for part in theirs[0].parts]


def main() -> None:
    parser = ArgumentParser(description="start-up and memory of weft and other runtimes")
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pb")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="7")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the Python that runs weft")
    parser.add_argument("--parts", action="store_true", help="where weft's own time goes")
    parser.add_argument("--cold", action="store_true", help="one core, 512 MB, files not in the system's cache")
    args = parser.parse_args()
    table, by_part, left_out = [], [], dict[str, str]()
    for model in args.models:
        with TemporaryDirectory() as folder:
            measured = Measured(model.resolve(), args.peers, Path(folder), cold=args.cold)
            names = measured.names()
            turns = [{name: measured.once(name) for name in names} for _ in range(args.rounds)]
        found = {name: [turn[name] for turn in turns] for name in names}
        table += rows(measured, found)
        by_part += parts(measured, found)
        left_out |= measured.left_out
    print(tabulate(table, ["network", "runtime", "whole", f"/ {BASE}", "loaded", "peak"], disable_numparse=True))
    if args.parts:
        print("\n" + tabulate(by_part, ["network", "runtime", "part", "time"], disable_numparse=True))
    for name, why in left_out.items():
        print(f"{name} is left out: {why}")


if __name__ == "__main__":
    main()
