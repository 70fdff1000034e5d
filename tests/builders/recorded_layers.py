"""Recurrent layers that TensorFlow has made and run: frozen graphs, inputs and results, from files of tests/data."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import heald
import numpy as np
from harness.shared_runtimes import shared_runtime
from heald.errors import HealdError
from heald.graphs.graph import graphdef

DATA = Path(__file__).parent.parent / "data"
ON_NUMPY = {"plugins": {"block": ["onednn"]}}
UNFUSED = ON_NUMPY | {"passes": {"disable": ["loops"]}}
SEQUENCES = {"gru": "_GRUSequence", "lstm": "_LSTMSequence", "rnn": "_RNNSequence"}
LOOPS = frozenset({"While", "StatelessWhile"})


class RecordedLayer(NamedTuple):
    """`results` are flat."""

    name: str
    graph: heald.Graph
    feeds: dict
    outputs: list
    results: list

    def run(self, config, feeds=None, outputs=()):
        with heald.Session(self.graph, shared_runtime(config)) as session:
            return session.run([*self.outputs, *outputs], {**self.feeds, **(feeds or {})})

    def outcome(self, config, feeds=None, outputs=()):
        """The results of a run, or the class of its error."""
        try:
            return self.run(config, feeds, outputs)
        except HealdError as error:
            return type(error)

    def check_unfused(self, feeds=None, outputs=()):
        """Assert that the loop gives what the op gives. Return the outcome."""
        fused, plain = (self.outcome(config, feeds, outputs) for config in (ON_NUMPY, UNFUSED))
        if isinstance(fused, type) or isinstance(plain, type):
            assert fused is plain
        else:
            for a, b in zip(fused, plain, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
        return fused

    def loop_ops(self, outputs=()):
        """The numbers of loops and of the ops that stand for them, behind all passes."""
        with heald.Session(self.graph, shared_runtime(ON_NUMPY)) as session:
            *_, (_, rewritten) = session.graphs_by_pass([*self.outputs, *outputs], tuple(self.feeds))
        counted = Counter(node.op for node in rewritten)
        return {op: counted[op] for op in (*SEQUENCES.values(), *LOOPS) if counted[op]}

    def sequence_ops(self, count=1):
        """The value of `loop_ops` where each loop has become the op that the name of the layer states."""
        return {op: count for cell, op in SEQUENCES.items() if cell in self.name.split("_")}


def recorded_layers(file):
    """The layers of a file, by name."""
    return {name: _layer(name, entry) for name, entry in json.loads((DATA / file).read_text("utf-8")).items()}


def _layer(name, entry):
    feeds = {tensor: np.array(value, dtype) for tensor, (dtype, value) in entry["feeds"].items()}
    graph = graphdef.loads(zlib.decompress(base64.b64decode(entry["graph"])))
    return RecordedLayer(name, graph, feeds, entry["outputs"], entry["results"])
