"""Graph passes: they keep what a graph computes, on random graphs, and the properties that they declare.

A pass runs alone, as `heald opt` runs it, or in the stage "pre_placement" as a session does. The values of the graph
after it are compared with those of the graph before it, in sessions that leave the pass out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import heald
import numpy as np
from heald.api import Graph, PassContext
from heald.graphs.compiler import NodeFacts, run_passes
from heald.graphs.graph import compare
from heald.graphs.session import ConstantFolder
from heald.runtime.contract import PRE_PLACEMENT, GraphPass
from heald.runtime.service import Runtime, runtime

from ..case import sentence
from ..hook_subject import HookSubject
from ..random_graphs import RandomGraph, random_graph
from ..subject import whatever_comes
from ..verdict import NotApplicable, expect, expect_close, expect_same_bits

ROUNDING = (1e-4, 1e-5)  # relative, absolute: of float32 through a chain of a few dozen ops
EXACT, ALL_BUT = "exact values", "everything but"  # words of `preserves` that a case holds a pass to


def seeds(on: HookSubject) -> list[str]:
    return [str(seed) for seed in range(on.size(60, 8))]


def default_runtime() -> Runtime:
    heald.default_host()
    default = runtime.process_scope.default
    assert default is not None
    return default


def registered_pass(on: HookSubject) -> GraphPass:
    passes = default_runtime().host.registries.passes
    if on.name not in passes:
        raise heald.errors.NotFound(f"no plugin has a graph pass '{on.name}'",
                                    hint="heald opt --list-passes lists them; --plugin registers a file")
    return passes[on.name]


def apply(on: HookSubject, drawn: RandomGraph, graph: Graph | None = None) -> Graph:
    """The graph after the pass."""
    graph_pass, before = registered_pass(on), drawn.graph if graph is None else graph
    host = default_runtime().host
    facts = NodeFacts(before, {}, {}, host.registries.ops, ConstantFolder(host))
    is_of_session = graph_pass.stage == PRE_PLACEMENT
    kept = frozenset() if is_of_session else frozenset((*drawn.feeds, *drawn.fetches))
    context = PassContext(kept, facts.resolve, facts.infer, (), host.registries.ops,
                          () if is_of_session else tuple(drawn.feeds), () if is_of_session else tuple(drawn.fetches))
    with whatever_comes(f"the pass over a graph of {len(before.nodes)} nodes", expected="a graph that is well formed",
                        rule="pass.graph"):
        ((_, after),) = run_passes(before, [graph_pass], context)
    return after


def values(on: HookSubject, graph: Graph, drawn: RandomGraph) -> list[Any]:
    """The fetched values, in a session that leaves the pass out."""
    with heald.Session(graph, config={"passes": {"disable": [on.name]}}) as session:
        results: list[Any] = session.run(drawn.fetches, drawn.feeds)
    return results


def describe_difference(before: Graph, after: Graph) -> str:
    return str(compare(before, after))[:300]


@sentence(over=seeds)
def a_pass_keeps_the_values_of_random_graphs(on: HookSubject, seed: str) -> None:
    drawn = random_graph(seed)
    after = apply(on, drawn)
    with np.errstate(all="ignore"):
        want = values(on, drawn.graph, drawn)
        with whatever_comes("the graph after the pass runs", expected="values", rule="pass.values"):
            got = values(on, after, drawn)
    is_exact = EXACT in registered_pass(on).preserves
    for name, one, other in zip(drawn.fetches, want, got, strict=True):
        expect_close(other, one, (0.0, 0.0) if is_exact else ROUNDING, f"'{name}' after the pass", "pass.values")


@sentence()
def graphs_that_a_pass_changes_are_counted(on: HookSubject) -> list[str]:
    """A figure, which never fails: the other cases have tried nothing where it is 0."""
    drawn_graphs = [random_graph(seed) for seed in seeds(on)]
    count = sum(bool(compare(drawn.graph, apply(on, drawn))) for drawn in drawn_graphs)
    vacuous = "" if count else ": no case has tried it, since random graphs lack its pattern"
    return [f"changed {count} of {len(drawn_graphs)} graphs{vacuous}"]


@sentence(over=seeds)
def a_second_run_of_a_pass_changes_nothing(on: HookSubject, seed: str) -> None:
    if registered_pass(on).repeats:
        raise NotApplicable(f"it declares that it repeats: {registered_pass(on).repeats}")
    drawn = random_graph(seed)
    once = apply(on, drawn)
    twice = apply(on, drawn, once)
    expect(not compare(once, twice), "a second run of the pass", expected="the same graph",
           got=describe_difference(once, twice), rule="pass.repeats")


@sentence(over=seeds)
def a_pass_returns_the_same_graph_each_time(on: HookSubject, seed: str) -> None:
    first, second = (apply(on, random_graph(seed)) for _ in range(2))
    expect(not compare(first, second) and list(first.nodes) == list(second.nodes), "two runs over equal graphs",
           expected="equal graphs", got=describe_difference(first, second), rule="pass.deterministic")


@sentence(over=seeds)
def a_pass_leaves_its_input_as_it_is(on: HookSubject, seed: str) -> None:
    drawn, copy = random_graph(seed), random_graph(seed)
    apply(on, drawn)
    expect(not compare(copy.graph, drawn.graph) and list(copy.graph.nodes) == list(drawn.graph.nodes),
           "the graph that the pass was given", expected="as before", got=describe_difference(copy.graph, drawn.graph),
           rule="pass.input")
    for node in copy.graph:
        if node.op == "Const":
            expect_same_bits(numbers_of(drawn.graph, node.name), numbers_of(copy.graph, node.name),
                             f"the constant '{node.name}' of the graph that the pass was given", "pass.input")


def numbers_of(graph: Graph, name: str) -> Any:
    value: Any = graph[name].attrs["value"]
    return value if isinstance(value, np.ndarray) else value.array()


@sentence(over=seeds)
def a_pass_keeps_what_it_declares(on: HookSubject, seed: str) -> None:
    """A pass that preserves "everything but ..." keeps nodes and edges; one of a session keeps all names."""
    graph_pass = registered_pass(on)
    for field in ("about", "preserves", "repeats"):
        text = getattr(graph_pass, field)
        expect(isinstance(text, str) and "\n" not in text, f"`{field}`", expected="one line of text", got=repr(text),
               rule="pass.declares")
    keeps_names = graph_pass.stage == PRE_PLACEMENT or ALL_BUT in graph_pass.preserves
    if not keeps_names:
        raise NotApplicable("its `preserves` promises no names of nodes: it has no 'everything but ...'")
    drawn = random_graph(seed)
    after = apply(on, drawn)
    lost = sorted(drawn.graph.nodes.keys() - after.nodes.keys())
    expect(not lost, "nodes of the graph", expected="all are there after the pass", got=f"without {lost[:3]}",
           rule="pass.declares")
    if ALL_BUT in graph_pass.preserves:
        expect(edges(drawn.graph) == edges(after), "ops and edges of the graph", expected="as before",
               got=describe_difference(drawn.graph, after), rule="pass.declares")


def edges(graph: Graph) -> Mapping[str, Any]:
    return {node.name: (node.op, tuple(node.inputs), frozenset(node.controls)) for node in graph}
