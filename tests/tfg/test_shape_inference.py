"""Shapes that heald infers for the nodes of a graph, against those that TensorFlow infers (workers.record_shapes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import heald
import pytest
from harness.recorded_tfg import DATA, recorded_files
from heald.graphs.compiler.infer_node import fed_metadata
from heald.graphs.compiler.pass_manager import NodeFacts
from heald.graphs.compiler.resolve import Resolved, resolve
from heald.graphs.graph.graph import Graph
from heald.runtime.contract.structural import PLACEHOLDERS
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import Shape, ValueInfo, merge_shapes

GRAPHS = sorted(name.removesuffix(".shapes") for name in recorded_files("shapes") if name.endswith(".shapes"))
NETWORKS = ("densenet121", "efficientnetb0", "inceptionv3", "mobilenetv2", "resnet50")
HANDLE = (2,)  # TensorFlow's handles of stacks and arrays of TensorFlow 1 are two strings; here they are scalars


def graph_of(name: str) -> Graph:
    stored = recorded_files("shapes").get(f"{name}.pb")
    return heald.graphdef.loads(stored or (DATA / f"programs/{name}/graph.pb").read_bytes())


def inferred(graph: Graph) -> Mapping[str, tuple[ValueInfo, ...]]:
    ops = heald.default_host().registries.ops
    nodes = resolve(graph, ops)
    fed = {(name, 0): fed_metadata(entry, 0, graph.versions.producer) for name, entry in nodes.items()
           if isinstance(entry, Resolved) and entry.op.name in PLACEHOLDERS}
    return NodeFacts(graph, nodes, fed, ops, lambda entry, inputs, outputs: outputs).infer(graph)


def theirs_of(name: str) -> Iterator[tuple[str, list[Shape]]]:
    for line in recorded_files("shapes")[f"{name}.shapes"].decode().splitlines():
        node, _, shapes = line.partition("\t")
        yield node, [shape(text) for text in shapes.split()]


def shape(text: str) -> Shape:
    if text in ("*", "()"):
        return None if text == "*" else ()
    return tuple(None if dim == "?" else int(dim) for dim in text.split("x"))


@pytest.mark.parametrize("name", GRAPHS)
def test_no_shape_contradicts_tensorflow_or_says_less(name):
    graph = graph_of(name)
    found, compared = inferred(graph), 0
    for node, shapes in theirs_of(name):
        ours = [info.shape for info in found[node]]
        assert len(ours) == len(shapes), node
        for info, expected in zip(found[node], shapes, strict=True):
            compared += 1
            if info.dtype is dtypes.resource and expected == HANDLE:
                assert info.shape == (), node
            else:
                assert merge_shapes(info.shape, expected) == info.shape, (node, graph[node].op, info.shape, expected)
    assert {node for node, _ in theirs_of(name)} == set(graph.nodes)
    assert compared or not any(found[node] for node in graph.nodes)


@pytest.mark.parametrize("name", NETWORKS)
def test_shapes_of_networks_are_known_to_rank_and_channels(name):
    found = inferred(graph_of(name))
    assert all(info.shape is not None for outputs in found.values() for info in outputs)
