"""Passes of heald against TensorFlow's passes of the TF Graph IR, recorded by workers.tfg_oracle, on 106 graphs."""

from __future__ import annotations

from collections.abc import Callable

import heald
import pytest
from harness.recorded_tfg import recorded_files
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import loads
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald_mlir.tfg.regions.region_passes import functional_to_region

FILES = recorded_files("passes")
NAMES = sorted(name.removesuffix(".pb") for name in FILES if name.endswith(".pb"))
DECLARED = ("output_shapes", "parallel_iterations")  # TensorFlow strips no attribute that its dialect declares
# Where the results differ, by pass, and why. Graphs with a number are random.
KNOWN = {
    "toposort": {"9", "42", "46", "47"},  # another order of nodes that are ready at the same time, in one graph or body
    "name-compress": {  # TensorFlow keeps names of control results, and writes colocations as they were
        "3", "6", "18", "22", "24", "41", "46", "47", "58", "v2_while_grad_tensorlist"},
    "functional-to-region": {"24"},  # TensorFlow drops a stateless node in a function that reads none of its results
}


def requested_pass(name: str) -> Callable[[Graph], Graph]:
    def run(graph: Graph) -> Graph:
        *_, (_, after) = [("", graph), *run_requested_passes(graph, [name], list(graph.nodes), runtime())]
        return after

    return run


PASSES = {"toposort": requested_pass("topological-sort"), "strip-default-attrs": requested_pass("strip-defaults"),
          "name-compress": requested_pass("name-compression"), "functional-to-region": functional_to_region}


def canonical(name: str) -> Graph:
    """The graph as TensorFlow imports it, with the defaults of all ops."""
    return heald.tfg.loads(heald.tfg.dumps(loads(FILES[f"{name}.pb"]), canonical=True), verify=False)


def theirs(name: str, after: str) -> str | None:
    """TensorFlow's text after a pass; None where the pass changed nothing."""
    text = FILES.get(f"{name}.{after}.tfg")
    return None if text is None else text.decode()


@pytest.mark.parametrize("after", ["toposort", "functional-to-region"])
def test_the_text_after_a_pass_is_that_of_tensorflow(after):
    differing = set()
    for name in NAMES:
        graph = canonical(name)
        expected = theirs(name, after) or heald.tfg.dumps(graph, canonical=True)
        if heald.tfg.dumps(PASSES[after](graph), canonical=True) != expected:
            differing.add(name)
    assert differing == KNOWN[after]


@pytest.mark.parametrize("after", ["strip-default-attrs", "name-compress"])
def test_the_graph_after_a_pass_is_that_of_tensorflow(after):
    differing = set()
    for name in NAMES:
        graph, text = canonical(name), theirs(name, after)
        expected = graph if text is None else heald.tfg.loads(text, verify=False)
        difference = heald.graphs.graph.compare(PASSES[after](graph), expected)
        changes = [change for changes_by_name in (difference.changed, difference.functions_changed)
                   for changes in changes_by_name.values() for change in changes]
        fields = {change.field.rpartition(".")[2] for change in changes}
        if difference and not (after == "strip-default-attrs" and fields <= {*DECLARED}):
            differing.add(name)
    assert differing == KNOWN.get(after, set())
