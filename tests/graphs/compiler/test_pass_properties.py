"""Every registered pass keeps results and kept nodes, and is idempotent or states why not: laws over random graphs."""

from __future__ import annotations

import os

import heald
import numpy as np
from builders.random_control_flow import programs
from builders.random_models import FEEDS, models
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.contract.graph_pass import PRE_PLACEMENT
from heald.runtime.service.runtime import runtime
from hypothesis import HealthCheck, given, settings

PASSES = {name: entry for name, entry in runtime().host.registries.passes.items() if entry.stage != PRE_PLACEMENT}
EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "10"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
PLAIN = {"passes": {"disable": [*PASSES]}}


def after(before, *names, kept=(), **more):
    graph = before
    for _, after_passes in run_requested_passes(before, names, kept, runtime(), **more):
        graph = after_passes
    return graph


def run(graph, fetches, feeds):
    with heald.Session(graph, PLAIN) as session:
        return session.run(fetches, {name: value for name, value in feeds.items() if name in graph})


@MANY
@given(models())
def test_passes_keep_results_and_kept_nodes_and_change_nothing_the_second_time(program_of_graph):
    before, fetches = program_of_graph
    pass_options = {"kept": [*fetches, *FEEDS], "feeds": [*FEEDS], "fetches": fetches}
    expected = run(before, fetches, FEEDS)
    for name, entry in PASSES.items():
        changed = after(before, name, **pass_options)
        if changed is before:
            continue
        assert set(pass_options["kept"]) <= changed.nodes.keys(), name
        for one, other in zip(expected, run(changed, fetches, FEEDS), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, err_msg=name)
        if not entry.repeats:
            assert after(changed, name, **pass_options) is changed, name


def test_a_pass_states_its_effect_and_what_it_preserves():
    assert [name for name, entry in PASSES.items() if not entry.about or not entry.preserves] == []


FUNCTIONAL = {"If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "PartitionedCall",
              "StatefulPartitionedCall"}
V1 = {"Enter", "Exit", "NextIteration", "LoopCond"}


@MANY
@given(programs())
def test_control_flow_becomes_functional_and_that_of_tensorflow_1_again(program_of_graph):
    graph, keep = program_of_graph
    graph = graph.replace(nodes=[node.replace(op="Identity") for node in graph if node.op == "Log"])
    kept_names = [*{name for name, _ in keep}, *(name for name in ("x", "y") if name in graph)]
    functional = after(graph, "functionalize", kept=kept_names)
    lowered = after(functional, "lower-control-flow", kept=kept_names)
    assert not V1 & {node.op for node in functional}
    assert not FUNCTIONAL & {node.op for node in lowered}
    results = [run(graph_node, [f"{name}:{index}" for name, index in keep], {"x": np.int32(3), "y": np.int32(5)})
               for graph_node in (graph, functional, lowered)]
    assert results[0] == results[1] == results[2]
    assert after(lowered, "lower-control-flow", kept=kept_names) is lowered


@MANY
@given(models())
def test_all_calls_and_control_flow_are_lowered_with_bodies_that_need_no_functions(program_of_graph):
    before, fetches = program_of_graph
    changed = after(before, "lower-control-flow", "dead-nodes", kept=[*fetches, *FEEDS])
    assert not changed.functions
    assert not FUNCTIONAL & {node.op for node in changed}
    for one, other in zip(run(before, fetches, FEEDS), run(changed, fetches, FEEDS), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4)


@MANY
@given(models())
def test_a_graph_that_became_a_function_becomes_the_same_graph_again(program_of_graph):
    before, fetches = program_of_graph
    given_ = {"kept": [*fetches, *FEEDS], "feeds": [*FEEDS], "fetches": fetches}
    start = after(before, "lift-legacy-calls", "dead-nodes", **given_)
    program_of_graph = after(start, "graph-to-function", **given_)
    assert len(program_of_graph.functions) == len(start.functions) + 1
    again = after(program_of_graph, "function-to-graph", **given_)
    assert {node.name: (node.op, node.inputs, node.controls) for node in again} == {
        node.name: (node.op, node.inputs, node.controls) for node in start}
