"""Split: a graph divided between the device and the CPU has the results of the CPU alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from heald.api import Node, dtypes

from ..arrays import generator
from ..case import sentence
from ..elementwise import OPS, ops_of
from ..subject import REFERENCE, Subject, constant, placeholder
from ..verdict import expect_close

SHAPE = (3, 5)


@dataclass
class Divided:
    """A random graph with each node on the device or on the CPU. Equal seeds give equal graphs."""

    on: Subject
    seed: str
    nodes: list[Node] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = generator("split", self.seed)
        names = ["a", "b", "c"]
        self.nodes += [placeholder("a"), placeholder("b"), constant("c", rng.normal(size=SHAPE).astype(np.float32))]
        device_ops, depth = ops_of(self.on), int(rng.integers(3, 30))
        for i in range(depth):
            here = rng.random() < 0.5
            ops = device_ops if here else OPS
            op = ops[rng.integers(len(ops))]
            recent = names[-6:]
            inputs = [recent[rng.integers(len(recent))] for _ in range(op.arity)]
            self.nodes.append(Node(f"n{i}", op.name, inputs, attrs={"T": dtypes.float32},
                                   device=self.on.name if here else REFERENCE))
            names.append(f"n{i}")
        self.fetches = list(dict.fromkeys([names[-1], *(names[rng.integers(len(names))] for _ in range(3))]))

    def on_the_reference(self) -> Iterable[Node]:
        return [n.replace(device=REFERENCE) if n.device else n for n in self.nodes]

    def feeds(self, turn: int) -> dict[str, Any]:
        rng = generator("feeds", self.seed, turn)
        return {name: rng.normal(size=SHAPE).astype(np.float32) for name in ("a", "b")}


@sentence(over=lambda on: [str(seed) for seed in range(on.size(100, 8))])
def a_divided_graph_gives_what_the_cpu_gives_alone(on: Subject, seed: str) -> None:
    graph = Divided(on, seed)
    with on.session(graph.nodes) as divided, on.reference.session(graph.on_the_reference()) as alone:
        for turn in range(3):  # later runs use the buffers of earlier ones
            feeds = graph.feeds(turn)
            copies = {name: x.copy() for name, x in feeds.items()}
            results = divided.run(graph.fetches, feeds)
            for name, got, want in zip(graph.fetches, results, alone.run(graph.fetches, copies), strict=True):
                expect_close(got, want, on.settings.tolerance("float32"), f"'{name}' in run {turn} of graph {seed}",
                             "kernels")
            for name, x in feeds.items():
                expect_close(x, copies[name], (0.0, 0.0), f"feed '{name}' after run {turn} of graph {seed}", "feeds")
        on.expect_placed(divided)
