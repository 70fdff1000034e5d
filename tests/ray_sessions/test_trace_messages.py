"""Traces of workers as bytes: the sources of calls, and the clocks of devices."""

from __future__ import annotations

import pytest

pytest.importorskip("ray")

import heald
import numpy as np
from builders.graphs import graph, node, placeholder
from heald_ray.trace_message import merge_traces, pack_trace


def test_sources_and_clocks_of_calls_outlast_the_message():
    nodes = graph(placeholder("x", (3,)), node("y", "Exp", "x", device="SIM:0"), node("i", "Identity", "y",
                                                                                      device="SIM:0"))
    metadata = heald.RunMetadata()
    with heald.Session(nodes) as session:
        session.run("i", {"x": np.ones(3, np.float32)}, options=heald.RunOptions(trace=True), metadata=metadata)
    own, merged = metadata.trace, merge_traces({0: pack_trace(metadata.trace)}, 0, 10**18)
    assert [[source.call.node for source in sources] for _, sources in merged.calls()] == [
        [source.call.node for source in sources] for _, sources in own.calls()] == [[], ["y"], ["y"]]
    assert all(event.clock == event.device for event in merged.events)
    assert [event.duration_ns for event in merged.events] == [event.duration_ns for event in own.events]
