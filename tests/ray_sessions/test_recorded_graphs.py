"""Recorded graphs of TensorFlow that name a second device run in two workers, by `remap`, as in one process.

The folders of data/programs hold a graph, its arrays and TensorFlow's results; data/partitions holds graphs alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from harness.thread_cluster import ThreadCluster
from heald.api import Graph
from heald.errors import Unimplemented
from heald_ray.session import ClusterSession

DATA = Path(__file__).parents[1] / "data"
SECOND = "/job:worker/task:1/device:CPU:0"
REMAP = {"CPU:1": SECOND, "GPU:0": SECOND}


def names_second_device(graph: Graph) -> bool:
    return any(node.device.endswith(("CPU:1", "GPU:0")) for node in graph)


PROGRAMS = {folder.name: graph for folder in sorted((DATA / "programs").iterdir())
            if names_second_device(graph := heald.graphdef.load(folder / "graph.pb"))}


def cluster(graph: Graph, **remap: str) -> ClusterSession:
    return ClusterSession(graph, ThreadCluster, 2, {"placement": {"remap": REMAP | remap, "fallback": "allow"}})


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.dtype, mine.shape, mine.tobytes()) == (other.dtype, other.shape, other.tobytes())


def test_the_recorded_programs_are_here():
    assert {"place_cpus", "place_many_edges", "place_gpu_soft", "place_while_cross_device"} <= {*PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recorded_program_gives_the_bits_of_one_process_and_the_results_of_tensorflow(name):
    case = json.loads((DATA / "programs" / name / "case.json").read_text("utf-8"))
    rtol, atol = case["tol"]
    with (np.load(DATA / "programs" / name / "data.npz") as arrays, cluster(PROGRAMS[name]) as two,
          heald.Session(PROGRAMS[name], {"placement": {"clear": True}}) as one):
        for step in case["runs"]:
            feeds = {tensor: arrays[key] for tensor, key in step["feeds"].items()}
            ours, theirs = (opened.run(step["fetches"], feeds, targets=step["targets"]) for opened in (two, one))
            assert_same(ours, theirs)
            if "error" in step:  # TensorFlow had no such device
                continue
            for mine, key in zip(ours, step["out"], strict=True):
                np.testing.assert_allclose(mine, arrays[key], rtol, atol)
        assert "/job:worker/replica:0/task:1/device:CPU:0" in {row.device for row in two.placement().values()}


def test_a_recorded_loop_whose_devices_are_two_workers_is_unimplemented_with_its_nodes():
    message = r"loop '.*' crosses workers: '.*' on .*task:0, '.*' on .*task:1"
    with (cluster(PROGRAMS["place_while_cross_device"], **{"CPU:0": "/job:worker/task:0/device:CPU:0"}) as two,
          pytest.raises(Unimplemented, match=message)):
        two.run("y", {"n": np.int32(3), "x": np.float32([1, 2])})


@pytest.mark.parametrize("name", sorted(folder.name for folder in (DATA / "partitions").iterdir()))
def test_a_recorded_partitioned_graph_gives_the_bits_of_one_process(name):
    graph = heald.graphdef.load(DATA / "partitions" / name / "graph.pb")
    rng = np.random.default_rng(1)
    with cluster(graph) as two, heald.Session(graph, {"placement": {"clear": True}}) as one:
        feeds = {node.name: _array(rng, node) for node in graph if node.op == "Placeholder"}
        consumed = {source.node for node in graph for source in node.inputs} | {
            control for node in graph for control in node.controls}
        fetches = [node.name for node in graph if node.name not in consumed and one.nodes[node.name].output_tensors]
        assert fetches
        assert_same(two.run(fetches, feeds), one.run(fetches, feeds))


def _array(rng: np.random.Generator, node: Any) -> Any:
    shape = [dim if isinstance(dim, int) and dim >= 0 else 3 for dim in node.attrs["shape"] or ()]
    return (rng.standard_normal(shape) * 3).astype(node.attrs["dtype"].numpy)
