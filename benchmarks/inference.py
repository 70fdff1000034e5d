"""Real networks, timed against TensorFlow, ONNX Runtime and OpenVINO: the numbers that the README shows.

    python benchmarks/inference.py [--networks NAME ...] [--batches N ...] [--threads N ...] [--repeats N] [--seconds S]
                                   [--folder DIR] [--output DIR] [--results FILE]

It runs in an environment of its own, which heald never needs: tensorflow-cpu and tf2onnx make the networks and run
them, onnxruntime and openvino run them, heald-report draws. A missing package is left out. Each combination of network,
batch and threads is a process of its own, since libraries read their number of threads when they are loaded. The
process is `heald bench --against`, where the runtimes take turns. All combinations are measured before they are
repeated, so that a disturbance of the machine falls into one repeat only. The results are medians over the repeats.
heald's logits are checked against TensorFlow's, recorded when the network was made (networks.py).

Writes inference.json (after each process, so that little is lost), inference.md, inference.svg and inference-dark.svg.
Without --output they go into docs/, and the README's section is renewed. --results takes an earlier JSON and makes only
the other files from it; the JSON may join several of one machine and day.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import heald
import inference_plot
import inference_table
import numpy as np
from heald.api import Graph, Node, constant, pruned
from heald.runtime.support.install import install_command
from heald_tools.peers import OPENERS, difference
from networks import NETWORKS, TOLERANCE
from tqdm import tqdm

HERE = Path(__file__).parent
ROOT = HERE.parent
DIGITS = ROOT / "examples" / "digits"
NAMES = (*NETWORKS, "digits")
TIMES = ("min", "median", "p90", "p99")  # milliseconds
DISTRIBUTIONS = ("heald-core", "heald-onednn", "heald-simplify", "numpy", "tensorflow-cpu", "tensorflow", "onnxruntime",
                 "openvino")
INSTRUCTIONS = {"avx512f": "AVX-512", "amx_tile": "AMX"}  # extensions that some CPUs have, by Linux's names

Result = dict[str, Any]


def prepare(name: str, folder: Path, peers: Sequence[str]) -> bool:
    """Make NAME.pb and NAME.npz in the folder, and NAME.onnx if a peer needs it. False if they cannot be made."""
    path = folder / f"{name}.pb"
    if not (path.exists() and path.with_suffix(".npz").exists()):
        if name == "digits":
            make_digits(path)
        elif find_spec("tensorflow") is None or not _ran(str(HERE / "networks.py"), "--folder", str(folder), name):
            tell(f"{name} is not in {folder} and cannot be made: that needs tensorflow (pip install tensorflow-cpu)")
            return False
    onnx = path.with_suffix(".onnx")
    if "onnxruntime" in peers and not onnx.exists():
        convert(path, onnx)
    return True


def convert(path: Path, onnx: Path) -> None:
    """Make the network's ONNX file, if tf2onnx can convert it."""
    model = heald.load(path)
    with TemporaryDirectory() as folder:
        sayable = Path(folder) / path.name
        heald.graphdef.dump(without_erfc(heald.graphdef.load(path)), sayable)
        _ran("-m", "tf2onnx.convert", "--graphdef", str(sayable), "--output", str(onnx), "--opset", "17",
             "--inputs", ",".join(f"{t}:0" for t in model.fed.values()),
             "--outputs", ",".join(f"{t}:0" for t in model.fetched.values()))


def without_erfc(graph: Graph) -> Graph:
    """Replace Erfc, which ONNX lacks. Keras' Gelu has Erfc(-x * c), which is 1 + Erf(x / (1 / c)). ONNX Runtime finds
    Gelu in this form."""
    replaced, removed = [], []
    for node in graph:
        if node.op == "Erfc":
            scaled = graph[node.inputs[0].node]
            negative, factor = (graph[source.node] for source in scaled.inputs)
            removed += [scaled.name, negative.name]
            by = np.asarray(1 / factor.attrs["value"].array(), np.float32)
            of = {"T": node.attrs["T"]}
            replaced += [constant(f"{node.name}/by", by), constant(f"{node.name}/one", np.ones_like(by))]
            replaced += [Node(f"{node.name}/scaled", "RealDiv", [negative.inputs[0], f"{node.name}/by"], attrs=of),
                         Node(f"{node.name}/erf", "Erf", [f"{node.name}/scaled"], attrs=of),
                         Node(node.name, "AddV2", [f"{node.name}/erf", f"{node.name}/one"], attrs=of)]
    return graph.replace(nodes=replaced, without=removed)


def make_digits(path: Path) -> None:
    """Write the network of examples/digits up to its logits, with two images and TensorFlow's logits for them."""
    graph = heald.graphdef.load(DIGITS / "frozen.pb")
    heald.graphdef.dump(pruned(graph, ["logits"]), path)
    test = np.load(DIGITS / "test.npz")
    np.savez(path.with_suffix(".npz"), **{f"x{i}": test["image"][i : i + 1] for i in range(2)},
             **{f"y{i}": test["logits"][i : i + 1] for i in range(2)})


def batch_of(stored: Mapping[str, Any], letter: str, batch: int) -> np.ndarray:
    """A batch of the two examples in turn: inputs for letter x, logits for y."""
    return np.concatenate([stored[f"{letter}{i % 2}"] for i in range(batch)])


def accuracy(path: Path, batch: int) -> float:
    """The largest difference from TensorFlow's logits, in standard deviations of these."""
    stored = np.load(path.with_suffix(".npz"))
    return difference([heald.load(path)(batch_of(stored, "x", batch))], [batch_of(stored, "y", batch)])


def bench(path: Path, batch: int, threads: int, seconds: float, peers: Sequence[str], folder: Path) -> Result | None:
    """The figures of `heald bench` in a process of its own. None if it fails; its message is on stderr then."""
    fed = folder / "x.npy"
    np.save(fed, batch_of(np.load(path.with_suffix(".npz")), "x", batch))
    there = [peer for peer in peers if peer != "onnxruntime" or path.with_suffix(".onnx").exists()]
    against = ["--against", ",".join(there)] if there else []
    done = subprocess.run(
        [sys.executable, "-m", "heald", "bench", str(path), "--input", str(fed), "--batch", str(batch), "--threads",
         str(threads), "--duration", str(seconds), "--json", *against], check=False, capture_output=True, text=True)
    if done.returncode:
        tell(f"{path.stem}, batch {batch}, {threads} threads: {done.stderr.strip()}")
        return None
    report = json.loads(done.stdout)
    for row in report["runtimes"]:
        row["median"] = row.pop("p50")
    return report


def summary(repeats: Sequence[Result]) -> dict[str, Result]:
    """For each runtime: medians over the repeats, the least time of all, and the least and largest ratio."""
    rows = [{row["runtime"]: row for row in repeat["runtimes"]} for repeat in repeats]
    merged = {}
    for runtime in rows[0]:
        runs = [row[runtime] for row in rows]
        merged[runtime] = {key: median(row[key] for row in runs) for key in TIMES} | {
            "min": min(row["min"] for row in runs)}
        if "ratio" in runs[0]:
            ratios = sorted(row["ratio"] for row in runs)
            merged[runtime] |= {"ratio": median(ratios), "ratios": ratios, "difference": runs[0]["difference"]}
    return merged


def measure(
    options: argparse.Namespace, names: Sequence[str], peers: Sequence[str], work: Path
) -> Iterator[list[Result]]:
    """Yield the results so far after each process: one for each combination that could be measured."""
    off = {(name, batch): accuracy(options.folder / f"{name}.pb", batch)
           for name in names for batch in options.batches}
    results: dict[tuple[str, int, int], list[Result]] = {
        (name, batch, threads): [] for threads in options.threads for batch in options.batches for name in names}
    with tqdm([key for _ in range(options.repeats) for key in results], disable=None) as bar:
        for name, batch, threads in bar:
            bar.set_description(f"{name}, batch {batch}, {threads} threads")
            repeat = bench(options.folder / f"{name}.pb", batch, threads, options.seconds, peers, work)
            if repeat is not None:
                results[name, batch, threads].append(repeat)
            yield [result(key, off[key[:2]], options.seconds, repeats) for key, repeats in results.items() if repeats]


def result(key: tuple[str, int, int], off: float, seconds: float, repeats: Sequence[Result]) -> Result:
    """The JSON's entry for a network, batch and number of threads. JSONs of one machine may be put together."""
    name, batch, threads = key
    return {"network": name, "batch": batch, "threads": threads, "difference": off,
            "others_difference": max(repeat.get("others_difference", 0.0) for repeat in repeats),
            "repeats": len(repeats), "seconds": seconds, "runtimes": summary(repeats)}


def machine() -> Result:
    """The origin of the numbers: day, CPU, versions."""
    cpu, flags = platform.processor(), ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
        entries = {key.strip(): value.strip() for key, value in lines.items()}
        cpu, flags = entries.get("model name", cpu), entries.get("flags", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"date": datetime.date.today().isoformat(), "cpu": cpu, "cores": cores, "system": platform.system(),
            "instructions": [name for flag, name in INSTRUCTIONS.items() if flag in flags.split()],
            "python": platform.python_version(), "versions": _versions()}


def _versions() -> dict[str, str]:
    versions = {}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def tell(message: str) -> None:
    tqdm.write(message, file=sys.stderr)


def _ran(*arguments: str) -> bool:
    """True if python with these arguments succeeds. Its output is printed only if it fails."""
    done = subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        tell(f"{' '.join(arguments[:3])}: {done.stderr.strip()[-1000:]}")
    return not done.returncode


def differing(results: Sequence[Result]) -> list[Result]:
    """The results in which heald's logits differ from TensorFlow's, or are not finite."""
    return [row for row in results if not row["difference"] <= TOLERANCE]


def write(results: Result, folder: Path, readme: Path | None) -> None:
    """Write the tables and the plots, and renew the README's section if `readme` is given."""
    (folder / "inference.md").write_text(inference_table.page(results))
    if find_spec("heald_report") is None:
        tell(f"no plot: that needs heald's plugin report ({install_command('heald-report')})")
    else:
        inference_plot.draw(results, folder)
    if readme is not None:
        readme.write_text(inference_table.renew_section(readme.read_text(), results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NAMES, default=NAMES, metavar="NAME",
                        help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16], metavar="N", help="1 16")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="1 2")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="3")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="for each runtime in a repeat: 5")
    parser.add_argument("--folder", type=Path, default=HERE / "networks", metavar="DIR",
                        help="where the networks are, or are made")
    parser.add_argument("--output", type=Path, metavar="DIR", help="docs, and the README is renewed")
    parser.add_argument("--results", type=Path, metavar="FILE", help="measure nothing: show what is in this JSON")
    return parser.parse_args()


def main() -> int:
    options = _options()
    folder, readme = (ROOT / "docs", ROOT / "README.md") if options.output is None else (options.output, None)
    folder.mkdir(parents=True, exist_ok=True)
    if options.results is not None:
        write(json.loads(options.results.read_text()), folder, readme)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    peers = [name for name in OPENERS if find_spec(name) is not None]
    names = [name for name in options.networks if prepare(name, options.folder, peers)]
    results = {**machine(), "results": []}
    with TemporaryDirectory() as work:
        for results["results"] in measure(options, names, peers, Path(work)):
            (folder / "inference.json").write_text(json.dumps(results, indent=1) + "\n")
    rows = results["results"]
    if not rows:
        return 1
    write(results, folder, readme)
    print(inference_table.text(results))
    wrong = differing(rows)
    for row in wrong:
        tell(f"{row['network']}, batch {row['batch']}: {row['difference']:.1e} standard deviations from TensorFlow")
    is_complete = len(rows) == len(options.networks) * len(options.batches) * len(options.threads)
    return int(bool(wrong) or not is_complete)


if __name__ == "__main__":
    sys.exit(main())
