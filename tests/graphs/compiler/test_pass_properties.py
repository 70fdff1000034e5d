"""Every registered pass keeps results and kept nodes, and is idempotent or states why not: laws over random graphs."""

from __future__ import annotations

import os

import heald
import numpy as np
from builders.random_control_flow import programs
from builders.random_models import FEEDS, models
from heald.graphs.session.requested_passes import requested_graphs
from heald.runtime.contract.graph_pass import PRE_PLACEMENT
from heald.runtime.service.runtime import runtime
from hypothesis import HealthCheck, given, settings

PASSES = {name: entry for name, entry in runtime().host.registries.passes.items() if entry.stage != PRE_PLACEMENT}
EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "10"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
PLAIN = {"passes": {"disable": [*PASSES]}}


def after(before, *names, kept=(), **more):
    graph = before
    for _, found in requested_graphs(before, names, kept, runtime(), **more):
        graph = found
    return graph


def run(graph, fetches, feeds):
    with heald.Session(graph, PLAIN) as session:
        return session.run(fetches, {name: value for name, value in feeds.items() if name in graph})


@MANY
@given(models())
def test_passes_keep_results_and_kept_nodes_and_change_nothing_the_second_time(made):
    before, fetches = made
    told = {"kept": [*fetches, *FEEDS], "feeds": [*FEEDS], "fetches": fetches}
    expected = run(before, fetches, FEEDS)
    for name, entry in PASSES.items():
        found = after(before, name, **told)
        if found is before:
            continue
        assert set(told["kept"]) <= found.nodes.keys(), name
        for one, other in zip(expected, run(found, fetches, FEEDS), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, err_msg=name)
        if not entry.repeats:
            assert after(found, name, **told) is found, name


def test_a_pass_states_its_effect_and_what_it_preserves():
    assert [name for name, entry in PASSES.items() if not entry.about or not entry.preserves] == []


FUNCTIONAL = {"If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "PartitionedCall",
              "StatefulPartitionedCall"}
V1 = {"Enter", "Exit", "NextIteration", "LoopCond"}


@MANY
@given(programs())
def test_control_flow_becomes_functional_and_that_of_tensorflow_1_again(made):
    graph, keep = made
    graph = graph.replace(nodes=[node.replace(op="Identity") for node in graph if node.op == "Log"])
    kept = [*{name for name, _ in keep}, *(name for name in ("x", "y") if name in graph)]
    functional = after(graph, "functionalize", kept=kept)
    lowered = after(functional, "lower-control-flow", kept=kept)
    assert not V1 & {node.op for node in functional}
    assert not FUNCTIONAL & {node.op for node in lowered}
    results = [run(each, [f"{name}:{index}" for name, index in keep], {"x": np.int32(3), "y": np.int32(5)})
               for each in (graph, functional, lowered)]
    assert results[0] == results[1] == results[2]
    assert after(lowered, "lower-control-flow", kept=kept) is lowered


@MANY
@given(models())
def test_all_calls_and_control_flow_are_lowered_with_bodies_that_need_no_functions(made):
    before, fetches = made
    found = after(before, "lower-control-flow", "dead-nodes", kept=[*fetches, *FEEDS])
    assert not found.functions
    assert not FUNCTIONAL & {node.op for node in found}
    for one, other in zip(run(before, fetches, FEEDS), run(found, fetches, FEEDS), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4)


@MANY
@given(models())
def test_a_graph_that_became_a_function_becomes_the_same_graph_again(made):
    before, fetches = made
    given_ = {"kept": [*fetches, *FEEDS], "feeds": [*FEEDS], "fetches": fetches}
    start = after(before, "lift-legacy-calls", "dead-nodes", **given_)
    made = after(start, "graph-to-function", **given_)
    assert len(made.functions) == len(start.functions) + 1
    again = after(made, "function-to-graph", **given_)
    assert {node.name: (node.op, node.inputs, node.controls) for node in again} == {
        node.name: (node.op, node.inputs, node.controls) for node in start}
