"""Rows a second of `heald run` from a table to a table, with pyarrow and without, by processes of their own.

    python benchmarks/rows.py [--rows N] [--batch N] [--rounds R]

The table has 10 columns of floats, which feed a matrix product, and 2 of texts. The result has the 2 columns of the
product beside file and row. `with texts` feeds the model a text, too, and keeps the other. Each run is a process; CPU
seconds and peak memory are those of the process. Times are medians. A run with a tenth of the rows shows whether memory
is flat. Without pyarrow means that importing it fails.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graphdef import dump
from heald.runtime.values import dtypes
from tabulate import tabulate

FLOATS = [f"f{index}" for index in range(10)]
CITIES = np.array(["Aarhus", "Bern", "Cork, Ireland", "Delft"])
WITHOUT_PYARROW = "import sys; sys.modules['pyarrow'] = None; from heald.cli import main; sys.exit(main(sys.argv[1:]))"
WITH_PYARROW = "import sys; from heald.cli import main; sys.exit(main(sys.argv[1:]))"
CHUNK = 100_000  # rows that are written together


class Cost(NamedTuple):
    seconds: float
    cpu: float
    peak: int  # bytes


def write_table(path: Path, count: int) -> None:
    random = np.random.default_rng(7)
    with path.open("w", encoding="utf-8") as out:
        out.write(",".join(["id", *FLOATS, "city"]) + "\n")
        for first in range(0, count, CHUNK):
            rows = range(first, min(first + CHUNK, count))
            numbers = random.normal(size=(len(rows), len(FLOATS))).astype(np.float32).astype(str)
            cities = random.choice(CITIES, len(rows))
            for row, cells, city in zip(rows, numbers, cities, strict=True):
                city_cell = f'"{city}"' if "," in city else city
                out.write(f"customer-{row},{','.join(cells)},{city_cell}\n")


def write_models(folder: Path) -> dict[str, list[str]]:
    """Two models; return the arguments of a run of each."""
    weights = np.random.default_rng(8).normal(size=(len(FLOATS), 2)).astype(np.float32)
    product = [Node("x", "Placeholder", attrs={"dtype": dtypes.float32, "shape": (None, len(FLOATS))}),
               Node("w", "Const", attrs={"dtype": dtypes.float32, "value": weights}),
               Node("both", "MatMul", ["x", "w"], attrs={"T": dtypes.float32}),
               Node("axis", "Const", attrs={"dtype": dtypes.int32, "value": np.array(1, np.int32)}),
               Node("score", "Split", ["axis", "both"], attrs={"T": dtypes.float32, "num_split": 2})]
    texts = [Node("city", "Placeholder", attrs={"dtype": dtypes.string, "shape": (None,)}),
             Node("length", "StringLength", ["city"])]
    dump(Graph(product), folder / "numbers.pb")
    dump(Graph(product + texts), folder / "texts.pb")
    columns = ["--map", f"x={','.join(FLOATS)}"]
    return {"numbers": ["numbers.pb", "--fetch", "score:0", "--fetch", "score:1", *columns],
            "with texts": ["texts.pb", "--fetch", "score:0", "--fetch", "length", "--keep", "id", *columns]}


def run(program: str, arguments: list[str], folder: Path) -> Cost:
    command = [sys.executable, "-c", program, "run", *arguments]
    start = perf_counter()
    with tempfile.TemporaryFile("w+") as messages:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = perf_counter() - start
        messages.seek(0)
        if status:
            sys.exit(f"{' '.join(command)} failed: {messages.read()[-500:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def main() -> None:
    parser = ArgumentParser(description="rows of a table through a model")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="FILE.csv", help="write the table, and run nothing")
    args = parser.parse_args()
    if args.write is not None:
        write_table(args.write, args.rows)
        return
    lines, contents = [], {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        works = write_models(folder)
        for count in (args.rows // 10, args.rows):
            table = folder / f"{count}.csv"
            # A process of its own, for the same reason as below: its memory would count in the peaks.
            subprocess.run([sys.executable, __file__, "--write", table, "--rows", str(count)], check=True)
            for work, arguments in works.items():
                for reader, program in (("pyarrow", WITH_PYARROW), ("plain", WITHOUT_PYARROW)):
                    output = folder / f"{reader}.csv"
                    run_arguments = [*arguments, "--input", table.name, "--batch", str(args.batch),
                                     "--output", output.name]
                    costs = [run(program, run_arguments, folder) for _ in range(args.rounds)]
                    with output.open("rb") as file:  # as the peak of a process begins with the memory of its parent
                        contents[reader] = hashlib.file_digest(file, "sha256").hexdigest()
                    seconds = median(cost.seconds for cost in costs)
                    lines.append([work, reader, f"{count:,}", f"{count / seconds:,.0f}",
                                  f"{median(cost.cpu for cost in costs):.1f}",
                                  f"{max(cost.peak for cost in costs) / 1e6:,.0f} MB"])
                assert contents["pyarrow"] == contents["plain"], "the tables differ"
    headers = ["columns", "reader", "rows", "rows/s", "CPU s", "peak memory"]
    print(tabulate(lines, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
