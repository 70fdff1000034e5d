"""The time to read graphs from text and from the binary form, and of protobuf's own parser for text.

    python benchmarks/formats.py [--nodes N ...] [graph.pb ...]

Chains of N nodes, and graphs of files. `text / binary` is heald's time for the text form over its time for the binary
form, `protobuf / text` the time of protobuf's parser, which gives a message and no graph, over the former. Forms take
turns; times are medians, ratios the medians of the pairs.
"""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import pairwise
from pathlib import Path
from statistics import median

from google.protobuf import text_format
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graphdef import dumps, load, loads
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values import dtypes
from tabulate import tabulate
from timing import in_turn, ratio


def chain(count: int) -> Graph:
    """Each node adds the node before it to itself."""
    first = Node("x", "Placeholder", attrs={"dtype": dtypes.float32})
    names = ["x", *(f"add_{index}" for index in range(1, count))]
    additions = (Node(name, "AddV2", [before, before], attrs={"T": dtypes.float32})
                 for before, name in pairwise(names))
    return Graph([first, *additions])


def row(name: str, graph: Graph, rounds: int) -> list[str]:
    binary, text = dumps(graph), dumps(graph, text=True)
    forms = (lambda: loads(text, text=True), lambda: loads(binary),
             lambda: text_format.Parse(text, message_class("GraphDef")()))
    repeat = 10_000 // len(graph) + 1
    ours, theirs, protobuf = in_turn(forms, [repeat] * 3, rounds)
    times = [f"{median(seconds) * 1e3:.1f} ms" for seconds in (theirs, ours)]
    return [name, f"{len(graph)}", *times, f"{ratio(ours, theirs):.2f}", f"{ratio(protobuf, ours):.2f}"]


def main() -> None:
    parser = ArgumentParser(description="graphs as text and in the binary form")
    parser.add_argument("files", nargs="*", type=Path, metavar="GRAPH.pb")
    parser.add_argument("--nodes", nargs="*", type=int, default=[1000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rows = [row("chain", chain(count), args.rounds) for count in args.nodes]
    rows += [row(file.stem, load(file), args.rounds) for file in args.files]
    headers = ["graph", "nodes", "binary", "text", "text / binary", "protobuf / text"]
    print(tabulate(rows, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
