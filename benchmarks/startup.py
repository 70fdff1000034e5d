"""The time from a process's start to the first result of a network, and its memory, in heald and in other runtimes.

    python benchmarks/startup.py mobilenetv2.pb resnet50.pb [--rounds N] [--peer-python PYTHON] [--parts] [--cold]

Beside each frozen GraphDef lie its input, NAME.npz with an array x0, and NAME.onnx, ONNX Runtime's form of it:
`benchmarks/networks.py` and `python -m tf2onnx.convert` make them. The other forms are made here, for the shape of x0:
heald's compiled model, ONNX Runtime's optimised .ort, OpenVINO's IR and its compiled blob. A form is a row.

Each form has a process of its own, all take turns, and the numbers are medians over the rounds. `whole` is from the
process's start to the first result. `loaded` is a part of it, from the end of the runtime's import to the first result.
`peak` is VmHWM, the most memory that the process had, with the pages it read of mapped files. The first results of all
forms must be equal but for rounding. Bytecode is written to a folder of the benchmark's, in a round that does not
count; pip does so for packages that it installs. Peers run in `--peer-python`, by default the Python that runs heald. A
peer that is not installed is left out; heald never needs them.

`--parts` shows what heald's own time for a compiled model consists of.
`--cold` measures a start as serverless functions have it: on one core (taskset), with 512 MB of address space (prlimit
--as), and without the page cache of the files that the process reads: its modules, its libraries, the model and the
bytecode (posix_fadvise). Pages that another process maps at the time stay. A form that fails there has its error as its
row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from tabulate import tabulate

SPACE = 512 << 20  # bytes of address space of a cold start
TOLERANCE = 1e-3  # of the largest logit
COLD = ("prlimit", f"--as={SPACE}", "taskset", "-c", "0")

BEGIN = """
import time
began = time.monotonic()
import sys
model, started, result, *shape = sys.argv[1:]
import numpy as np
x = np.fromfile(model + ".input", np.float32).reshape([int(size) for size in shape])
numpy_imported = time.monotonic()
"""
END = """
done = time.monotonic()
import json
np.asarray(y, np.float32).tofile(result)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
files = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
for module in list(sys.modules.values()):
    files |= {getattr(module, name, None) or "" for name in ("__file__", "__cached__")}
found = {"whole": done - float(started), "loaded": done - imported, "peak": peak * 1024}
print(json.dumps({**found, "parts": globals().get("parts", {}), "files": sorted(files)}))
"""

PARTS = """
parts = {"interpreter": began - float(started), "NumPy, input": numpy_imported - began}
last = numpy_imported
def end(part):
    global last
    now = time.monotonic()
    parts[part], last = now - last, now
import heald
from heald.runtime.service.compiled_model import LoadedCompiledModel
end("import heald")
imported = last
compiled = heald.bef.load(model + ".bef")
end("mapping")
try:
    from heald_onednn.library import open_library
    open_library(0)
    end("oneDNN")
except ImportError:
    pass
loaded = LoadedCompiledModel(compiled)
end("plugins, devices")
from heald.runtime.service.prepared_step import PreparedStep
link, linked = PreparedStep.executable, []
def timed(*args):
    before = time.monotonic()
    try:
        return link(*args)
    finally:
        linked.append(time.monotonic() - before)
PreparedStep.executable = timed
y = loaded(x)
end("first run")
parts["link"] = sum(linked)
parts["first run"] -= parts["link"]
loaded(x)
end("second run")
"""


class Form(NamedTuple):
    """A form of the network that one runtime loads. The codes make it (with the model's path, the input `x` and the
    module of the runtime), and run it from the import to the first result `y`."""

    name: str
    package: str
    source: str  # suffix of the file that it is made from
    make: str
    run: str


HEALD_PB = Form("heald, .pb", "heald", ".pb", "", """
import heald
imported = time.monotonic()
y = heald.load(model + ".pb")(x)
""")
HEALD_BEF = Form("heald, .bef", "heald", ".pb", """
import subprocess
import heald
shapes = [name + ":" + ",".join(map(str, x.shape)) for name in heald.load(model + ".pb").inputs]
inputs = [word for shape in shapes for word in ("--input", shape)]
subprocess.run([sys.executable, "-m", "heald", "compile", model + ".pb", "-o", model + ".bef", *inputs], check=True)
""", """
import heald
imported = time.monotonic()
y = heald.load(model + ".bef")(x)
""")
ONNXRUNTIME = """
import onnxruntime
imported = time.monotonic()
session = onnxruntime.InferenceSession(model + "{suffix}", providers=["CPUExecutionProvider"])
y = session.run(None, {session.get_inputs()[0].name: x})[0]
"""
OPENVINO_SETTINGS = """
import openvino
settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}  # as all others
"""
READ_ONNX = OPENVINO_SETTINGS + """
core = openvino.Core()
network = core.read_model(model + ".onnx")
network.reshape(list(x.shape))
"""
OPENVINO = OPENVINO_SETTINGS + """
imported = time.monotonic()
core = openvino.Core()
y = core.compile_model(core.read_model(model + "{suffix}"), "CPU", settings)(x)[0]
"""
FORMS = (
    HEALD_BEF, HEALD_PB,
    Form("ONNX Runtime, .onnx", "onnxruntime", ".onnx", "", ONNXRUNTIME.replace("{suffix}", ".onnx")),
    Form("ONNX Runtime, optimised .ort", "onnxruntime", ".onnx", """
import onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = model + ".ort"
options.add_session_config_entry("session.save_model_format", "ORT")
onnxruntime.InferenceSession(model + ".onnx", options, providers=["CPUExecutionProvider"])
""", ONNXRUNTIME.replace("{suffix}", ".ort")),
    Form("OpenVINO, .onnx", "openvino", ".onnx", "", OPENVINO.replace("{suffix}", ".onnx")),
    Form("OpenVINO, IR", "openvino", ".onnx", READ_ONNX + """
openvino.save_model(network, model + ".xml", compress_to_fp16=False)
""", OPENVINO.replace("{suffix}", ".xml")),
    Form("OpenVINO, compiled blob", "openvino", ".onnx", READ_ONNX + """
with open(model + ".blob", "wb") as file:
    file.write(core.compile_model(network, "CPU", settings).export_model().getvalue())
""", OPENVINO_SETTINGS + """
imported = time.monotonic()
core = openvino.Core()
blob = openvino.Tensor(np.memmap(model + ".blob", np.uint8, "c"), shared_memory=True)
y = core.import_model(blob, "CPU", settings)(x)[0]
"""),
    Form("TensorFlow, .pb", "tensorflow", ".pb", "", """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
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
)
Found = dict[str, Any]


class Failure(Exception):
    """The last line that a process wrote before it failed."""


class Bench:
    """A network in its forms, which lie in `folder` beside links to its files."""

    def __init__(self, model: Path, peer_python: str, folder: Path) -> None:
        self.model, self._peer_python, self._folder = folder / model.stem, peer_python, folder
        for suffix in (".pb", ".onnx"):
            if model.with_suffix(suffix).exists() and not self._at(suffix).exists():
                self._at(suffix).symlink_to(model.with_suffix(suffix).resolve())
        with np.load(model.with_suffix(".npz")) as file:
            x = file["x0"].astype(np.float32)
        x.tofile(self._at(".input"))
        self._shape = [str(size) for size in x.shape]
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._files: dict[str, list[str]] = {}

    def run_forms(self, forms: Sequence[Form]) -> list[Form]:
        """Make the forms and run each once. Return the forms with a result, and print why the others have none."""
        usable, expected = [], None
        for form in forms:
            if not self._at(form.source).exists():
                print(f"{self.model.name}: {form.name} is left out: there is no {self.model.name}{form.source}")
                continue
            try:
                if form.make:
                    self._process(form, BEGIN + form.make + "imported = y = 0" + END, ())
                self._files[form.name] = self.once(form)["files"]
            except Failure as failure:
                print(f"{self.model.name}: {form.name} is left out: {failure}")
                continue
            y = np.fromfile(self._at(".result"), np.float32)
            expected = y if expected is None else expected
            if y.shape != expected.shape or abs(y - expected).max() > TOLERANCE * abs(expected).max():
                raise SystemExit(f"{self.model.name}: {form.name} has another result than {usable[0].name}")
            usable.append(form)
        return usable

    def once(self, form: Form, *, cold: bool = False) -> Found:
        """Run one process. Returns its seconds, bytes, and the files that it had. Raises Failure."""
        if cold:
            suffixes = [path for path in self._folder.glob(self.model.name + ".*") if path.is_file()]
            for path in [*map(Path, self._files[form.name]), *suffixes]:
                forget(path)
        return self._process(form, BEGIN + form.run + END, COLD if cold else ())

    def _process(self, form: Form, code: str, prefix: Sequence[str]) -> Found:
        python = sys.executable if form.package == "heald" else self._peer_python
        command = [*prefix, python, "-c", code, str(self.model)]
        done = subprocess.run([*command, str(monotonic()), str(self._at(".result")), *self._shape], check=False,
                              env=self._environment, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
            raise Failure(lines[-1][:100])
        measured: Found = json.loads(done.stdout.splitlines()[-1])
        return measured

    def _at(self, suffix: str) -> Path:
        return self.model.with_name(self.model.name + suffix)


def forget(path: Path) -> None:
    """Drop the file's clean pages from the page cache."""
    if path.is_file():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)  # dirty pages stay
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def rows(bench: Bench, forms: Sequence[Form], rounds: int, *, cold: bool) -> list[list[str]]:
    turns: dict[Form, list[Found]] = {form: [] for form in forms}
    failures: dict[Form, Failure] = {}
    for _ in range(rounds):
        for form in forms:
            if form not in failures:
                try:
                    turns[form].append(bench.once(form, cold=cold))
                except Failure as failure:
                    failures[form] = failure
    network = bench.model.name + (", cold" if cold else "")
    return [[network, form.name, str(failures[form])] if form in failures else
            [network, form.name, *figures(turns[form], turns[forms[0]])] for form in forms]


def figures(turns: Sequence[Found], first: Sequence[Found]) -> list[str]:
    total, loaded, peak = (median(turn[what] for turn in turns) for what in ("whole", "loaded", "peak"))
    pairs = [turn["whole"] / other["whole"] for turn, other in zip(turns, first, strict=False)]
    ratio = f"{median(pairs):.2f}" if pairs else "-"
    return [f"{total * 1e3:.0f} ms", ratio, f"{loaded * 1e3:.0f} ms", f"{peak / 1e6:.0f} MB"]


def parts(bench: Bench, rounds: int) -> list[list[str]]:
    """A row for each part of heald's time, in milliseconds."""
    form = HEALD_BEF._replace(run=PARTS)
    bench.once(form)
    turns = [bench.once(form)["parts"] for _ in range(rounds)]
    return [[bench.model.name, part, f"{median(turn[part] for turn in turns) * 1e3:.1f} ms"] for part in turns[0]]


def is_installed(python: str, package: str) -> bool:
    code = f"from importlib.util import find_spec; raise SystemExit(find_spec('{package}') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def main() -> None:
    parser = ArgumentParser(description="start-up and memory of heald and other runtimes")
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pb")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer-python", default=sys.executable, metavar="PYTHON", help="the Python that runs heald")
    parser.add_argument("--parts", action="store_true", help="the parts of heald's time, and nothing else")
    parser.add_argument("--cold", action="store_true", help="one core, 512 MB, no page cache")
    args = parser.parse_args()
    forms = [HEALD_BEF] if args.parts else [
        form for form in FORMS if form.package == "heald" or is_installed(args.peer_python, form.package)]
    table = []
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    with TemporaryDirectory() as folder:
        for model in args.models:
            bench = Bench(model, args.peer_python, Path(folder))
            usable = bench.run_forms(forms)
            table += parts(bench, args.rounds) if args.parts else rows(bench, usable, args.rounds, cold=args.cold)
    head = ["network", "part", "time"] if args.parts else ["network", "form", "whole", "/ first", "loaded", "peak"]
    print(tabulate(table, head, disable_numparse=True))
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")
    for package in dict.fromkeys(form.package for form in FORMS):
        if not args.parts and package not in {form.package for form in forms}:
            print(f"{package} is left out: it is not installed")


if __name__ == "__main__":
    main()
