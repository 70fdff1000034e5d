"""Constant folding, the remapper and lifted graphs against TensorFlow's, recorded on 300 random graphs each."""

from __future__ import annotations

import heald
import numpy as np
from harness.recorded_tfg import recorded_files
from harness.shared_runtimes import shared_runtime
from heald.errors import InvalidArgument
from heald.graphs.graph import graphdef
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime

FILES = recorded_files("rewrites")
SEEDS = range(300)
RUN = range(0, 300, 6)  # graphs that run here
PLAIN = {"passes": {"disable": [*runtime().host.registries.passes]}}
FUSED = ("_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul")
# Folds that differ in names or in more folding: TensorFlow's driver reaches some nodes in another order, drops control
# edges of Shape, Rank and ZerosLike, pushes constants through Sub, and stops before some products of constants.
MOST_OTHER_FOLDS = 75
X = np.random.default_rng(0).uniform(-2, 2, (2, 3)).astype(np.float32)


def recorded(kind, seed):
    """The graph, its fetches, and TensorFlow's text after the pass."""
    fetches = FILES[f"{kind}/{seed}.fetches"].decode().split("\n")
    return graphdef.loads(FILES[f"{kind}/{seed}.pb"]), fetches, FILES[f"{kind}/{seed}.txt"].decode()


def after(before, name, fetches):
    feeds = [key for key in ("x", "y") if key in before]
    *_, (_, changed) = run_requested_passes(before, [name], (), runtime(), feeds=feeds, fetches=fetches)
    return changed


def results(graph, fetches, feeds):
    with heald.Session(graph, shared_runtime(PLAIN)) as session:
        return session.run(fetches, {name: value for name, value in feeds.items() if name in graph})


def form(graph):
    """The nodes by name, with values rounded to four digits, and each control edge once."""
    return {node.name: (node.op, node.device, node.inputs, tuple(dict.fromkeys(node.controls)), {
        key: np.round(value.array().astype(np.float64), 4).tolist() if key == "value" else value
        for key, value in node.attrs.items()}) for node in graph}


def assert_close(one, other):
    for first, second in zip(one, other, strict=True):
        np.testing.assert_allclose(second, first, rtol=1e-4, atol=1e-4)


def test_folded_graphs_are_those_of_tensorflow():
    differing = [seed for seed in SEEDS for graph, fetches, text in [recorded("folded", seed)]
                 if form(after(graph, "constant-folding", fetches)) != form(heald.tfg.loads(text))]
    assert len(differing) <= MOST_OTHER_FOLDS


def test_folded_graphs_compute_the_same_as_tensorflows():
    for seed in RUN:
        graph, fetches, text = recorded("folded", seed)
        feeds = {"x": X, "y": X[:1]}
        expected = results(graph, fetches, feeds)
        assert_close(results(after(graph, "constant-folding", fetches), fetches, feeds), expected)
        assert_close(results(heald.tfg.loads(text), fetches, feeds), expected)


def needed(graph, fetches):
    pending, seen = list(fetches), set()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += [source.node for source in graph[name].inputs]
    return seen


def test_layers_that_tensorflow_fuses_are_fused_here_with_equal_attributes():
    fused = 0
    for seed in SEEDS:
        graph, fetches, text = recorded("remapped", seed)
        try:
            theirs = heald.tfg.loads(text)
        except InvalidArgument:  # TensorFlow leaves a batch normalisation and its fused form under one name
            continue
        ours = after(graph, "remapper", fetches)
        for name in needed(theirs, fetches):
            node = theirs[name]
            if node.op in FUSED:
                fused += 1
                attrs = {key: value for key, value in node.attrs.items() if key in ours[name].attrs}
                assert (node.op, node.inputs, attrs) == (ours[name].op, ours[name].inputs, dict(ours[name].attrs)), name
    assert fused > 150


def test_fused_layers_compute_the_same_as_before():
    for seed in RUN:
        graph, fetches, _ = recorded("remapped", seed)
        x = np.random.default_rng(seed).uniform(-2, 2, tuple(graph["x"].attrs["shape"])).astype(np.float32)
        expected = results(graph, fetches, {"x": x})
        assert_close(results(after(graph, "remapper", fetches), fetches, {"x": x}), expected)


def test_lifted_graphs_are_those_of_tensorflow():
    for seed in SEEDS:
        graph, fetches, _ = recorded("folded", seed)
        theirs = graphdef.loads(FILES[f"lifted/{seed}.txt"], text=True).functions["_mlir_lifted_graph"]
        ours = heald.tfg.graph_to_function(graph, ["x", "y"], fetches).functions["_mlir_lifted_graph"]
        assert [(arg.name, arg.dtype) for arg in ours.inputs] == [(arg.name, arg.dtype) for arg in theirs.inputs]
        assert dict(ours.ret) == dict(theirs.ret)
        assert {node.name: (node.op, node.inputs, node.controls) for node in ours.nodes.values()} == {
            node.name: (node.op, node.inputs, node.controls) for node in theirs.nodes.values()}
