"""Memory of networks and runs: the originals of packed weights are freed, and runs leave nothing.

Weights are counted by tracemalloc, which sees NumPy's arrays, over a layer that is much larger than all else.
"""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import numbers
from heald import graphdef
from heald.runtime.values import dtypes

CHANNELS = 512
WEIGHTS = 9 * CHANNELS * CHANNELS * 4  # bytes
CONV = {"T": dtypes.float32, "strides": [1, 1, 1, 1], "padding": "VALID", "data_format": "NHWC"}
X = numbers(1, 6, 6, CHANNELS)


def network(*after: Any) -> heald.Graph:
    """A convolution whose weights stay views of a GraphDef, at an odd address, and the nodes `after`."""
    network_graph = graph(placeholder("x", X.shape), const("w", numbers(3, 3, CHANNELS, CHANNELS)),
                          node("conv", "Conv2D", "x", "w", **CONV), *after)
    return graphdef.loads(graphdef.dumps(network_graph))


@pytest.fixture
def memory_trace() -> Iterator[None]:
    heald.Session(network()).run("conv", {"x": X})  # imports modules, opens devices
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def memory_of_session(network_graph: heald.Graph, fetch: str, *arrays: Any) -> tuple[float, float]:
    """The memory of a session after its runs, and its peak, in parts of the weights."""
    tracemalloc.clear_traces()
    session = heald.Session(network_graph)
    step = session.make_callable(fetch, ["x"])
    for x in arrays:
        step(x)
    gc.collect()
    kept_share, peak = tracemalloc.get_traced_memory()
    return kept_share / WEIGHTS, peak / WEIGHTS


@pytest.mark.usefixtures("memory_trace")
def test_constant_weights_are_kept_as_they_were_packed_alone() -> None:
    kept_share, peak = memory_of_session(network(), "conv", X)
    assert 0.9 < kept_share < 1.2
    assert peak < 1.3


@pytest.mark.usefixtures("memory_trace")
def test_weights_that_passes_scale_are_multiplied_while_they_are_packed() -> None:
    network_graph = network(const("c", numbers(CHANNELS)), node("y", "Mul", "conv", "c"))
    kept_share, peak = memory_of_session(network_graph, "y", X)
    assert 0.9 < kept_share < 1.2
    assert peak < 1.3


@pytest.mark.usefixtures("memory_trace")
def test_links_for_several_shapes_share_packed_weights() -> None:
    network_graph = network(const("c", numbers(CHANNELS)), node("y", "Mul", "conv", "c"))
    of_any_shape = network_graph.replace(nodes=[placeholder("x", (None, None, None, CHANNELS))])
    reloaded = graphdef.loads(graphdef.dumps(of_any_shape))
    kept_share, _ = memory_of_session(reloaded, "y", X, numbers(2, 6, 6, CHANNELS), numbers(3, 6, 6, CHANNELS))
    assert kept_share < 1.4


def test_scaled_weights_give_what_the_plain_network_gives() -> None:
    network_graph = network(const("c", numbers(CHANNELS)), node("y", "Mul", "conv", "c"))
    plain = heald.Session(network_graph, {"plugins": {"block": ["onednn"]}, "passes": {"disable": ["scales"]}})
    expected = plain.run("y", {"x": X})
    assert np.abs(heald.Session(network_graph).run("y", {"x": X}) - expected).max() < 1e-5 * np.abs(expected).max()


def small() -> heald.Graph:
    return graph(placeholder("x", (None, 8, 8, 8)), const("w", numbers(3, 3, 8, 8)), const("c", numbers(8)),
                 node("l", "Conv2D", "x", "w", **CONV), node("m", "Mul", "l", "c"), node("y", "Relu", "m"))


def grown(work: Callable[[], object], rounds: int) -> tuple[int, int]:
    """By how many blocks of Python's memory, and bytes that the process has, so many rounds of it grow when some have
    gone before."""
    for _ in range(rounds // 10 + 2):
        work()
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resident()
    for _ in range(rounds):
        work()
    gc.collect()
    return sys.getallocatedblocks() - blocks, resident() - memory


def resident() -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")


@needs_proc
@pytest.mark.parametrize("batches", [1, 20], ids=["one shape", "more shapes than are linked for themselves"])
def test_ten_thousand_runs_add_nothing(batches: int) -> None:
    step = heald.Session(small()).make_callable("y", ["x"])
    inputs = cycle([numbers(n, 8, 8, 8) for n in range(1, batches + 1)])
    blocks, memory = grown(lambda: step(next(inputs)), 10_000)
    assert blocks < 100
    assert memory < 2_000_000


@needs_proc
def test_sessions_that_come_and_go_leave_nothing() -> None:
    network_graph, x = small(), numbers(1, 8, 8, 8)

    def whole_life() -> None:
        with heald.Session(network_graph) as session:
            session.run("y", {"x": x})

    blocks, memory = grown(whole_life, 200)
    assert blocks < 1000
    assert memory < 4_000_000
