"""Graphs as text in the TF Graph IR: time and peak memory of parsing, printing and verifying, beside MLIR's own.

    python benchmarks/tfg.py [--operations N[,N ...]] [--rounds R] [--oracle PROGRAM] [GRAPH.pb ...]

The texts are graphs of N additions, and the given graphs with their constants. PROGRAM is built on TensorFlow's
libraries, as `tests/workers/tfg_oracle.py` describes; `PROGRAM parse FILE` writes `parse T ms` and `print T ms` to
stderr, and its parsing includes verification. Each measurement has a process of its own, heald's and TensorFlow's in
turn. Times are medians; a ratio is the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import heald
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from tabulate import tabulate

WORK = ("parse", "print", "verify")
Times = dict[str, float]  # seconds by work, and the peak in bytes


def chain(count: int) -> Graph:
    """Each node adds the two before it."""
    names = [f"add_{index}" for index in range(count)]
    ends = [Node(name, "Placeholder", attrs={"dtype": dtypes.float32}) for name in names[:2]]
    return Graph([*ends, *(Node(name, "AddV2", [names[i + 1], names[i]], attrs={"T": dtypes.float32})
                           for i, name in enumerate(names[2:]))])


def measure_text(file: Path) -> Times:
    """One measurement, in this process, whose modules are loaded by a small graph first."""
    from heald.graphs.compiler import faulty_nodes

    text, ops = file.read_bytes(), heald.default_host().registries.ops
    assert not faulty_nodes(heald.tfg.loads(heald.tfg.dumps(chain(3), canonical=True)), ops)
    times, at = {}, perf_counter()
    graph = heald.tfg.loads(text)
    times["parse"], at = perf_counter() - at, perf_counter()
    heald.tfg.dumps(graph, canonical=True)
    times["print"], at = perf_counter() - at, perf_counter()
    assert not faulty_nodes(graph, ops)
    times["verify"] = perf_counter() - at
    return times


def ours(file: Path) -> Times:
    output, peak = _run([sys.executable, __file__, "--measure", str(file)], subprocess.PIPE)
    return {**json.loads(output), "peak": peak}


def theirs(program: str, file: Path) -> Times:
    messages, peak = _run([program, "parse", str(file)], subprocess.DEVNULL)
    times = {work: float(ms) / 1e3 for work, ms in re.findall(r"^(parse|print) ([\d.]+) ms", messages, re.MULTILINE)}
    return {**times, "peak": peak}


def _run(command: list[str], stdout: int) -> tuple[str, float]:
    """The output of a process, or its messages where the output is discarded, and its peak memory in bytes."""
    with tempfile.TemporaryFile("w+") as output:
        pipes = {"stdout": output} if stdout == subprocess.PIPE else {"stdout": stdout, "stderr": output}
        process = subprocess.Popen(command, **pipes)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if status:
        sys.exit(f"{' '.join(command)} failed: {text[-500:]}")
    return text, usage.ru_maxrss * 1024


def write(graph: str, file: Path) -> None:
    """Write the text of N additions, or of a GraphDef file."""
    heald.tfg.dump(heald.graphdef.load(graph) if graph.endswith(".pb") else chain(int(graph)), file, canonical=True)


def rows(graphs: list[str], rounds: int, oracle: str | None) -> Iterator[list[str]]:
    """A row for each graph. Texts are written by other processes: a child's peak begins with its parent's memory."""
    with tempfile.TemporaryDirectory() as folder:
        for graph in graphs:
            file = Path(folder) / "graph.tfg"
            _run([sys.executable, __file__, "--write", graph, str(file)], subprocess.PIPE)
            count = int(_run(["grep", "-c", " name(", str(file)], subprocess.PIPE)[0])
            our_times, other = [], []
            for _ in range(rounds):
                our_times.append(ours(file))
                other += [theirs(oracle, file)] if oracle else []
            name = Path(graph).stem if graph.endswith(".pb") else "additions"
            yield [name, f"{count:,}", f"{file.stat().st_size / 1e6:.1f}", *_cells(our_times, other, count)]


def _cells(our_times: list[Times], other: list[Times], count: int) -> Iterator[str]:
    for work in (*WORK, "peak"):
        value = median(times[work] for times in our_times)
        yield f"{value / 1e6:.0f} MB" if work == "peak" else f"{value * 1e3:.1f} ms, {count / value:,.0f}/s"
        if other and work in other[0]:
            against = median(times[work] for times in other)
            ratio = median(a[work] / b[work] for a, b in zip(our_times, other, strict=True))
            yield f"{against / 1e6:.0f} MB" if work == "peak" else f"{against * 1e3:.1f} ms, {ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", type=Path, metavar="GRAPH.pb")
    parser.add_argument("--operations", default="1000,10000,100000", metavar="N[,N ...]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--oracle", metavar="PROGRAM")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure_text(args.measure)))
        return
    if args.write:
        write(args.write[0], Path(args.write[1]))
        return
    graphs = [*filter(None, args.operations.split(",")), *map(str, args.graphs)]
    beside = ["TensorFlow"] if args.oracle else []
    heads = [head for work in WORK for head in [work, *(beside if work != "verify" else [])]]
    print(tabulate(rows(graphs, args.rounds, args.oracle), ["graph", "ops", "MB", *heads, "peak", *beside],
                   disable_numparse=True))


if __name__ == "__main__":
    main()
