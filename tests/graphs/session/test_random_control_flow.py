"""Random programs of TensorFlow 1's control flow: a session has the values and effects of an interpreter."""

from __future__ import annotations

import os

import heald
import pytest
from builders.random_control_flow import programs
from harness.dead_values import DEAD, Ambiguous, Endless, run_frames
from heald.errors import InvalidArgument, Unimplemented
from heald.graphs.graph.traversal import ancestors
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("scalars")]}}
OPS = {"Add": "Scalar>Add", "Mul": "Scalar>Mul", "Log": "Scalar>Log"}  # as the interpreter and the plugin call them
EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "100"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
VALUES = st.integers(0, 9)


def take_log():
    """The nodes and inputs of the Log nodes that have run since the last call."""
    from plugin_of_scalars import logged  # imported by the first session

    lines = sorted(logged)
    logged.clear()
    return lines


def check_against_interpreter(program, x, y):
    """Fetch each kept tensor by itself. A dead one is an error."""
    graph, keep = program
    feeds = {"x": x, "y": y}
    with heald.Session(graph.replace(nodes=[node.replace(op=OPS[node.op]) for node in graph if node.op in OPS]),
                       CONFIG) as session:
        for name, index in keep:
            needed = graph.replace(without=graph.nodes.keys() - ancestors(graph.nodes, [name]))
            try:
                (expected,), log = run_frames(needed, [(name, index)], feeds, exact=True)
            except (Ambiguous, Endless):
                reject()
            fed = {feed: value for feed, value in feeds.items() if feed in needed}
            try:
                session.prepare(f"{name}:{index}", tuple(fed))
            except Unimplemented:  # a loop in general form, in another one, whose variables are not alive together
                reject()
            take_log()
            if expected is DEAD:
                with pytest.raises(InvalidArgument, match="dead"):
                    session.run(f"{name}:{index}", fed)
                continue
            assert int(session.run(f"{name}:{index}", fed)) == expected
            assert take_log() == log


@MANY
@given(programs(), VALUES, VALUES)
def test_structured_programs_run_as_in_the_interpreter(program, x, y):
    check_against_interpreter(program, x, y)


@MANY
@given(programs(wild=True), VALUES, VALUES)
def test_programs_that_mix_values_of_branches_run_as_in_the_interpreter(program, x, y):
    check_against_interpreter(program, x, y)
